//! The users of a cell: who they are, in an issuer's words, and for which machines they have agreed.

use std::collections::{BTreeMap, BTreeSet};

use base::{Domain, Malformed, PublicKey, SecretKey};
use borsh::{BorshDeserialize, BorshSerialize, io};

use crate::{
    cell::check_cell,
    issuer::{Issuable, Issued, Issuer, Power, Tenure},
    patrons::UserName,
    refused::Refused,
    signed::{Signed, Statement},
};

/// Who a user is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Profile {
    /// What they are called.
    pub name: UserName,
    /// The key that is theirs alone.
    pub key: PublicKey,
    /// Their number, the same on all machines.
    pub uid: u32,
    /// The group that their new files are of.
    pub gid: u32,
    /// The further groups that they are in. At most [`Profile::GROUPS_MAX`].
    #[borsh(deserialize_with = "read_groups")]
    pub groups: BTreeSet<u32>,
}

impl Profile {
    /// The most further groups: with their own, as many as whoever acts may have.
    pub const GROUPS_MAX: usize = 63;
    const BYTES_MAX: usize = UserName::SIZE_MAX + 32 + 4 + 4 + 4 + 4 * Profile::GROUPS_MAX;

    /// All groups that they are in.
    pub fn gids(&self) -> BTreeSet<u32> {
        self.groups.iter().copied().chain([self.gid]).collect()
    }
}

/// What an issuer says of a user.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Entry {
    authority: PublicKey,
    profile: Profile,
    at: u64,
}

impl Statement for Entry {
    const SIGNED: Domain = Domain::new("enrolment of a user v2");
    const NAMED: Domain = Domain::new("name of an enrolment v1");
    const BYTES_MAX: usize = 32 + Profile::BYTES_MAX + 8;
}

impl Issuable for Entry {
    const POWER: Power = Power::Enrol;
    const FORGED: Refused = Refused::EnrolmentForged;

    fn authority(&self) -> &PublicKey {
        &self.authority
    }
}

/// An issuer's word on who a user is. Of two on the same user the later counts.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Enrolment(Issued<Entry>);

impl Enrolment {
    /// The most bytes that one takes.
    pub const BYTES_MAX: usize = Issued::<Entry>::BYTES_MAX;

    /// Enrols a user, at this moment in seconds since 1970.
    pub fn new(issuer: &Issuer, profile: Profile, at: u64) -> Result<Enrolment, Refused> {
        if profile.groups.len() > Profile::GROUPS_MAX {
            return Err(Refused::GroupsTooMany);
        }
        let entry = Entry { authority: *issuer.authority(), profile, at };
        Ok(Enrolment(Issued::new(entry, issuer)))
    }

    /// Who the user is, when that was said and by whom, if that is an issuer of this cell.
    pub fn verify(&self, authority: &PublicKey) -> Result<(&Profile, u64, Tenure), Refused> {
        let (entry, tenure) = self.0.verify(authority)?;
        Ok((&entry.profile, entry.at, tenure))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Agreement {
    authority: PublicKey,
    user: PublicKey,
    machine: PublicKey,
}

impl Statement for Agreement {
    const SIGNED: Domain = Domain::new("consent of a user v1");
    const NAMED: Domain = Domain::new("name of a consent v1");
    const BYTES_MAX: usize = 96;
}

/// A user's word that a machine may act for them. Without it neither an issuer nor any machine can make one do
/// so that no issuer has let act for any.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Consent(Signed<Agreement>);

impl Consent {
    /// The most bytes that one takes.
    pub const BYTES_MAX: usize = 4 + Agreement::BYTES_MAX + 64;

    /// The user with this key agrees that a machine of the cell with this authority acts for them.
    pub fn new(user: &SecretKey, authority: PublicKey, machine: PublicKey) -> Consent {
        let agreement = Agreement { authority, user: user.public(), machine };
        Consent(Signed::new(agreement, user))
    }

    /// The key of the user, if they agree that this machine acts for them in this cell.
    pub fn verify(&self, authority: &PublicKey, machine: &PublicKey) -> Result<PublicKey, Refused> {
        let claim = self.0.claim();
        check_cell(&claim.authority, authority)?;
        if claim.machine != *machine {
            return Err(Refused::ConsentOther);
        }
        let agreement = self.0.verify(&claim.user).map_err(|_| Refused::ConsentForged)?;
        Ok(agreement.user)
    }
}

/// The users that a cell has agreed on. None is ever forgotten: neither their name nor their number goes to
/// anybody else, who could act for them then.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct People {
    /// And when an issuer has said so. At most [`People::COUNT_MAX`].
    #[borsh(deserialize_with = "read_people")]
    people: BTreeMap<UserName, (Profile, u64)>,
}

impl People {
    /// The most users that a cell has ever had.
    pub const COUNT_MAX: usize = 2_048;

    /// The user of this name.
    pub fn get(&self, name: &UserName) -> Option<&Profile> {
        self.people.get(name).map(|(profile, _)| profile)
    }

    /// The user with this key.
    pub fn with_key(&self, key: &PublicKey) -> Option<&Profile> {
        self.iter().find(|profile| profile.key == *key)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.people.values().map(|(profile, _)| profile)
    }

    /// Whether this would be said of a user for the first time, if it may be said at all.
    pub fn check(&self, profile: &Profile, at: u64) -> Result<bool, Refused> {
        if let Some((known, since)) = self.people.get(&profile.name) {
            if (known.key, known.uid) != (profile.key, profile.uid) {
                return Err(Refused::NameTaken(profile.name.clone()));
            }
            return Ok(at > *since && known != profile);
        }
        let other = self.iter().find(|known| known.uid == profile.uid || known.key == profile.key);
        match other {
            Some(other) => Err(Refused::UserTaken(other.name.clone())),
            None if self.people.len() >= People::COUNT_MAX => Err(Refused::PeopleTooMany),
            None => Ok(true),
        }
    }

    /// Takes a user in, or notes what groups they are in now. Whether that is news.
    pub fn enrol(&mut self, profile: &Profile, at: u64) -> Result<bool, Refused> {
        let is_news = self.check(profile, at)?;
        if is_news {
            self.people.insert(profile.name.clone(), (profile.clone(), at));
        }
        Ok(is_news)
    }
}

fn read_groups<R: io::Read>(reader: &mut R) -> io::Result<BTreeSet<u32>> {
    let groups = BTreeSet::deserialize_reader(reader)?;
    match groups.len() <= Profile::GROUPS_MAX {
        true => Ok(groups),
        false => Err(Malformed::new("a user in more groups than may be").into()),
    }
}

fn read_people<R: io::Read>(reader: &mut R) -> io::Result<BTreeMap<UserName, (Profile, u64)>> {
    let people: BTreeMap<UserName, (Profile, u64)> = BTreeMap::deserialize_reader(reader)?;
    match people.len() <= People::COUNT_MAX {
        true if people.iter().all(|(name, (profile, _))| profile.name == *name) => Ok(people),
        true => Err(Malformed::new("a user under another's name").into()),
        false => Err(Malformed::new("more users than a cell may have").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_seed([seed; 32])
    }

    fn profile(name: &str, seed: u8, uid: u32) -> Profile {
        let name = UserName::new(name).unwrap();
        Profile { name, key: key(seed).public(), uid, gid: uid, groups: BTreeSet::from([20, 7]) }
    }

    fn issuer(root: u8) -> Issuer {
        Issuer::by(&key(root), key(root + 50), 1_000)
    }

    #[test]
    fn only_an_issuer_says_who_a_user_is() {
        let alice = profile("alice", 5, 1_000);
        let enrolment = Enrolment::new(&issuer(1), alice.clone(), 9).unwrap();
        assert_eq!(enrolment.verify(&key(1).public()), Ok((&alice, 9, issuer(1).tenure())));
        let other = enrolment.verify(&key(2).public()).unwrap_err();
        assert!(matches!(other, Refused::CellOther { .. }), "{other}");
        // One of another cell who has the warrant of one of this.
        let bytes = base::encode(&Enrolment::new(&issuer(1), alice.clone(), 9).unwrap());
        let warrant = &bytes[bytes.len() - crate::Warrant::BYTES_MAX..];
        let mut bytes = base::encode(&Enrolment::new(&issuer(2), alice, 9).unwrap());
        let from = bytes.len() - crate::Warrant::BYTES_MAX;
        bytes[from..].copy_from_slice(warrant);
        bytes[4..36].copy_from_slice(key(1).public().as_bytes());
        let forged: Enrolment = base::decode(&bytes, Enrolment::BYTES_MAX).unwrap();
        assert_eq!(forged.verify(&key(1).public()), Err(Refused::EnrolmentForged));
    }

    #[test]
    fn only_a_user_agrees_and_only_for_one_machine_of_one_cell() {
        let (cell, machine) = (key(1).public(), key(3).public());
        let consent = Consent::new(&key(5), cell, machine);
        assert_eq!(consent.verify(&cell, &machine), Ok(key(5).public()));
        assert_eq!(consent.verify(&cell, &key(4).public()), Err(Refused::ConsentOther));
        assert!(consent.verify(&key(2).public(), &machine).is_err());
        // Nobody agrees in another's name: neither does the root key.
        for liar in [1, 3] {
            let mut bytes = base::encode(&Consent::new(&key(liar), cell, machine));
            bytes[4 + 32..4 + 64].copy_from_slice(key(5).public().as_bytes());
            let forged: Consent = base::decode(&bytes, Consent::BYTES_MAX).unwrap();
            assert_eq!(forged.verify(&cell, &machine), Err(Refused::ConsentForged));
        }
    }

    #[test]
    fn a_name_a_number_and_a_key_are_one_users_for_ever() {
        let mut people = People::default();
        let alice = profile("alice", 5, 1_000);
        assert_eq!(people.enrol(&alice, 9), Ok(true));
        let taken = |name: &str| Err(Refused::UserTaken(UserName::new(name).unwrap()));
        assert_eq!(people.enrol(&profile("bob", 6, 1_000), 10), taken("alice"));
        assert_eq!(people.enrol(&profile("bob", 5, 1_001), 10), taken("alice"));
        let renamed = Err(Refused::NameTaken(alice.name.clone()));
        assert_eq!(people.enrol(&profile("alice", 6, 1_000), 10), renamed);
        assert_eq!(people.enrol(&profile("alice", 5, 1_001), 10), renamed);
        assert_eq!(people.enrol(&profile("bob", 6, 1_001), 10), Ok(true));
        assert_eq!(people.iter().count(), 2);
        assert_eq!(people.with_key(&key(5).public()), Some(&alice));
    }

    #[test]
    fn of_two_words_on_a_users_groups_the_later_counts() {
        let mut people = People::default();
        let narrow = Profile { groups: BTreeSet::new(), ..profile("alice", 5, 1_000) };
        let wide = profile("alice", 5, 1_000);
        people.enrol(&wide, 9).unwrap();
        assert_eq!(people.enrol(&narrow, 10), Ok(true));
        assert_eq!(people.enrol(&wide, 9), Ok(false), "an old word that somebody says again");
        assert_eq!(people.get(&wide.name).unwrap().gids(), BTreeSet::from([1_000]));
    }

    #[test]
    fn more_users_or_groups_than_may_be_are_refused_and_malformed() {
        let mut alice = profile("alice", 5, 1_000);
        alice.groups = (0..Profile::GROUPS_MAX as u32 + 1).collect();
        assert_eq!(Enrolment::new(&issuer(1), alice.clone(), 9), Err(Refused::GroupsTooMany));
        assert!(base::decode::<Profile>(&base::encode(&alice), 10_000).is_err());
        let mut people = People::default();
        for uid in 0..People::COUNT_MAX as u32 {
            let name = UserName::new(&format!("u{uid}")).unwrap();
            let mut key = [7; 32];
            key[..4].copy_from_slice(&uid.to_le_bytes());
            let (key, groups) = (PublicKey::from_bytes(key), BTreeSet::new());
            people.people.insert(name.clone(), (Profile { name, key, uid, gid: uid, groups }, 1));
        }
        let one_more = profile("one-more", 5, u32::MAX);
        assert_eq!(people.check(&one_more, 2), Err(Refused::PeopleTooMany));
        let bytes = base::encode(&people);
        assert_eq!(base::decode::<People>(&bytes, bytes.len()).unwrap(), people);
        people.people.insert(one_more.name.clone(), (one_more, 2));
        let bytes = base::encode(&people);
        assert!(base::decode::<People>(&bytes, bytes.len()).is_err());
    }

    #[test]
    fn every_flipped_bit_of_an_enrolment_or_a_consent_is_refused() {
        let (authority, machine) = (key(1).public(), key(3).public());
        let enrolment = Enrolment::new(&issuer(1), profile("alice", 5, 1_000), 9).unwrap();
        let enrolment = base::encode(&enrolment);
        let consent = base::encode(&Consent::new(&key(5), authority, machine));
        for bit in 0..8 * enrolment.len() {
            let mut bytes = enrolment.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(read) = base::decode::<Enrolment>(&bytes, Enrolment::BYTES_MAX) else {
                continue;
            };
            assert!(read.verify(&authority).is_err(), "bit {bit}");
        }
        for bit in 0..8 * consent.len() {
            let mut bytes = consent.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(read) = base::decode::<Consent>(&bytes, Consent::BYTES_MAX) else { continue };
            assert!(read.verify(&authority, &machine).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_largest_of_each_fits_into_its_bound_exactly() {
        let mut alice = profile(&"a".repeat(UserName::BYTES_MAX), 5, 1_000);
        alice.groups = (0..Profile::GROUPS_MAX as u32).collect();
        let enrolment = Enrolment::new(&issuer(1), alice, 9).unwrap();
        assert_eq!(base::encode(&enrolment).len(), Enrolment::BYTES_MAX);
        let consent = Consent::new(&key(5), key(1).public(), key(3).public());
        assert_eq!(base::encode(&consent).len(), Consent::BYTES_MAX);
    }
}
