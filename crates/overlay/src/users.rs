//! For whom a machine may act, by number: what a group makes of a machine's patrons.

use std::collections::{BTreeMap, BTreeSet};

use base::Malformed;
use borsh::{BorshDeserialize, BorshSerialize, io};

/// For which users a machine may act.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum Users {
    /// Any, the superuser among them, in any groups.
    Any,
    /// These and no others, each in these groups and no others; the superuser is one like any other. At
    /// most [`Users::COUNT_MAX`] users, and as many memberships of groups.
    These(#[borsh(deserialize_with = "read_users")] BTreeMap<u32, BTreeSet<u32>>),
}

impl Users {
    /// The most users of one machine, and the most groups that they are in, counted for each user.
    pub const COUNT_MAX: usize = 65_536;

    /// Whether there are no more of them than may be.
    pub fn is_bounded(&self) -> bool {
        match self {
            Users::Any => true,
            Users::These(users) => do_fit(users),
        }
    }
}

fn do_fit(users: &BTreeMap<u32, BTreeSet<u32>>) -> bool {
    let memberships = users.values().map(BTreeSet::len);
    users.len() <= Users::COUNT_MAX && memberships.sum::<usize>() <= Users::COUNT_MAX
}

/// Strict as all decoding is: users and groups come in rising order, each once.
fn read_users<R: io::Read>(reader: &mut R) -> io::Result<BTreeMap<u32, BTreeSet<u32>>> {
    let users = BTreeMap::deserialize_reader(reader)?;
    match do_fit(&users) {
        true => Ok(users),
        false => Err(Malformed::new("more users than a machine may act for").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_out_of_order_or_too_many_are_malformed() {
        let check = |users: Vec<(u32, Vec<u32>)>| {
            let bytes = [&[1][..], &base::encode(&users)].concat();
            base::decode::<Users>(&bytes, bytes.len()).is_ok()
        };
        assert!(check(vec![(7, vec![7, 20]), (8, vec![])]));
        assert!(!check(vec![(8, vec![]), (7, vec![])]) && !check(vec![(7, vec![]), (7, vec![])]));
        assert!(!check(vec![(7, vec![20, 7])]) && !check(vec![(7, vec![7, 7])]));
        let max = Users::COUNT_MAX as u32;
        let count = |count: u32| (0..count).map(|uid| (uid, vec![])).collect();
        assert!(check(count(max)) && !check(count(max + 1)));
        assert!(!check(vec![(7, (0..max).collect()), (8, vec![1])]));
    }
}
