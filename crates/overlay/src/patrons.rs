//! For whom the authority lets a machine act, by name.

use std::{collections::BTreeSet, fmt};

use base::Malformed;
use borsh::{BorshDeserialize, BorshSerialize, io};

/// What a user of a cell is called: a small letter or an underscore, then small letters, digits, dots, dashes
/// and underscores.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize)]
pub struct UserName(String);

impl UserName {
    /// The most letters.
    pub const BYTES_MAX: usize = 32;
    /// The most bytes that one takes: its length, and itself.
    pub(crate) const SIZE_MAX: usize = 4 + UserName::BYTES_MAX;
    /// What people say instead of names.
    const RESERVED: [&str; 2] = ["any", "none"];

    /// The name, if it can be one.
    pub fn new(text: &str) -> Option<UserName> {
        let (first, rest) = text.as_bytes().split_first()?;
        let is_fit = |letter: &u8| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || b"._-".contains(letter)
        };
        let is_name = (first.is_ascii_lowercase() || *first == b'_')
            && rest.iter().all(is_fit)
            && text.len() <= UserName::BYTES_MAX
            && !UserName::RESERVED.contains(&text);
        is_name.then(|| UserName(text.to_owned()))
    }

    /// It as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl BorshDeserialize for UserName {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<UserName> {
        let count = u32::deserialize_reader(reader)? as usize;
        if count > UserName::BYTES_MAX {
            return Err(Malformed::new("a user's name is longer than any may be").into());
        }
        let mut bytes = vec![0; count];
        reader.read_exact(&mut bytes)?;
        let name = str::from_utf8(&bytes).ok().and_then(UserName::new);
        name.ok_or_else(|| Malformed::new("what can't be a user's name").into())
    }
}

/// For whom a machine may act, as the authority says. Of those that it names each has to agree besides.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Patrons {
    /// Any user, the superuser among them, whether they agree or not.
    Any,
    /// These and no others. At most [`Patrons::COUNT_MAX`].
    These(#[borsh(deserialize_with = "read_names")] BTreeSet<UserName>),
}

impl Patrons {
    /// The most names: they have to fit into a code that people pass on. Who acts for more acts for any.
    pub const COUNT_MAX: usize = 64;
    /// The most bytes that they take.
    pub(crate) const BYTES_MAX: usize = 1 + 4 + Patrons::COUNT_MAX * UserName::SIZE_MAX;

    /// Whether there are no more of them than may be.
    pub fn is_bounded(&self) -> bool {
        match self {
            Patrons::Any => true,
            Patrons::These(names) => names.len() <= Patrons::COUNT_MAX,
        }
    }
}

fn read_names<R: io::Read>(reader: &mut R) -> io::Result<BTreeSet<UserName>> {
    let names = BTreeSet::deserialize_reader(reader)?;
    match names.len() <= Patrons::COUNT_MAX {
        true => Ok(names),
        false => Err(Malformed::new("a permit names more users than it may").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_plain_and_not_a_word_that_means_something_else() {
        for name in ["a", "_x", "alice", "bob.b-2_", &"a".repeat(32)] {
            assert_eq!(UserName::new(name).unwrap().as_str(), name);
        }
        for none in ["", "any", "none", "Alice", "2bob", "-a", "a b", "a,b", "ä", &"a".repeat(33)]
        {
            assert_eq!(UserName::new(none), None, "{none}");
            let bytes = base::encode(&none.to_owned());
            assert!(base::decode::<UserName>(&bytes, 100).is_err(), "{none}");
        }
    }
}
