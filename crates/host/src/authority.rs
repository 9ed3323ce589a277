//! The keys of a cell's authority in files: the root key, which can be sealed with a passphrase, and issuers.
//!
//! A root key that lies open is a file like that of any key: 64 hexadecimal digits. A sealed one is a line of words:
//! what it is, how much memory and how many passes it takes to try a passphrase, and in hexadecimal digits salt,
//! nonce and the key under AES-256-GCM. An issuer's file has its key in the first line and its warrant in the second.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base::{PublicKey, SecretKey};
use group::{Ed25519, Notary as _, Rescue, Sealable as _, Sealed};
use overlay::{Decree, Issuer, IssuerRevocation, Power, Tenure, Warrant};
use zeroize::{Zeroize as _, Zeroizing};

use crate::{
    Failure, Key,
    cell::{Membership, seconds_now},
    key,
};

/// What a sealed root key's file begins with.
const SEALED: &str = "croft-root-sealed-1";
/// What it costs to try a passphrase: more than what OWASP asks for, and about a third of a second.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
/// What a file that somebody has made up may cost us at the most.
const MEMORY_KIB_MAX: u32 = 1 << 20;
const PASSES_MAX: u32 = 32;
const SALT_SIZE: usize = 16;
const TAG_SIZE: usize = 16;

/// Text that is overwritten when it is dropped.
pub type Secret = Zeroizing<String>;

/// Where a passphrase comes from, asked for only if one is needed; and for which file.
pub type Ask<'a> = &'a mut dyn FnMut(&Path) -> Result<Secret, Failure>;

/// An issuer that has only just been made.
pub struct NewIssuer {
    /// What it is known by.
    pub key: Key,
    /// What is written into its file.
    pub text: Secret,
}

/// How a root key lies in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Custody {
    /// Whoever reads the file has it.
    Open,
    /// Whoever reads the file needs a passphrase besides.
    Sealed,
}

/// The root key of a cell, at hand. It names the cell, certifies issuers, and lets a group go on from one survivor.
pub struct Root(SecretKey);

impl Root {
    /// Where it is if nobody says where, and nobody has moved it.
    pub fn usual(directory: &Path) -> PathBuf {
        directory.join("root")
    }

    /// How it lies there, if it does.
    pub fn custody(path: &Path) -> Result<Option<Custody>, Failure> {
        if !path.exists() {
            return Ok(None);
        }
        let text =
            Zeroizing::new(fs::read_to_string(path).map_err(Failure::of("can't read", path))?);
        let is_sealed = text.starts_with(SEALED);
        Ok(Some(if is_sealed { Custody::Sealed } else { Custody::Open }))
    }

    /// The one in a file that has only just been made.
    pub(crate) fn made(path: &Path) -> Result<Root, Failure> {
        key::read(path).map(Root)
    }

    /// The one in a file.
    pub fn open(path: &Path, ask: Ask<'_>) -> Result<Root, Failure> {
        match Root::custody(path)? {
            None => Err(Failure::Unfit(format!(
                "the cell's root key is not at {}; name its file with --root, or do this where it is",
                path.display()
            ))),
            Some(Custody::Open) => Ok(Root(key::read(path)?)),
            Some(Custody::Sealed) => {
                let text = key::read_secret(path)?;
                let passphrase = ask(path)?;
                open_sealed(path, &text, &passphrase).map(Root)
            }
        }
    }

    /// Seals the one in a file, which may be sealed already, with a new passphrase.
    pub fn seal(path: &Path, ask: Ask<'_>, new: Ask<'_>) -> Result<(), Failure> {
        let Root(root) = Root::open(path, ask)?;
        let passphrase = new(path)?;
        if passphrase.is_empty() {
            return Err(Failure::Unfit("an empty passphrase seals nothing; choose another".into()));
        }
        let text = sealed(&root, &passphrase)?;
        key::write_over(path, &text)
    }

    /// Its public half, which names the cell.
    pub fn public(&self) -> PublicKey {
        self.0.public()
    }

    /// Makes an issuer, for a time.
    pub fn new_issuer(
        &self,
        powers: BTreeSet<Power>,
        span: Duration,
    ) -> Result<NewIssuer, Failure> {
        let mut seed = key::fresh_seed()?;
        let issuer = SecretKey::from_seed(seed);
        let expires = seconds_now().saturating_add(span.as_secs());
        let warrant = Warrant::new(&self.0, issuer.public(), powers, expires);
        let digits = Zeroizing::new(key::digits(&seed));
        seed.zeroize();
        let text = format!("{}\n{}\n", *digits, key::digits(&base::encode(&warrant)));
        Ok(NewIssuer { key: Key(issuer.public()), text: Secret::new(text) })
    }

    /// Its word that an issuer may issue nothing more, for [`Registrar::revoke_issuer`].
    ///
    /// [`Registrar::revoke_issuer`]: crate::Registrar::revoke_issuer
    pub fn revoke_issuer(&self, issuer: &Key) -> String {
        let revocation = IssuerRevocation::new(&self.0, issuer.0, seconds_now());
        key::digits(&base::encode(&Decree::RevokeIssuer(revocation)))
    }

    /// Its word that the group of the machine in a directory goes on from one survivor, for [`Recoverer::recover`],
    /// which has said what there is to say.
    ///
    /// [`Recoverer::recover`]: crate::Recoverer::recover
    pub fn rescue(&self, directory: &Path, rescue: &str) -> Result<String, Failure> {
        let membership = Membership::read(directory)?;
        self.must_be_of(&membership.authority)?;
        let what: Rescue = read_digits(rescue, "that is no rescue; say the same again")?;
        let seal = Ed25519::new(self.0.clone()).seal(&what.sealed_bytes(&membership.group()));
        Ok(key::digits(&base::encode(&Sealed { what, seal })))
    }

    /// Refuses the root key of another cell than that of the machine in a directory.
    pub fn must_be_of_machine(&self, directory: &Path) -> Result<(), Failure> {
        self.must_be_of(&Membership::read(directory)?.authority)
    }

    fn must_be_of(&self, authority: &PublicKey) -> Result<(), Failure> {
        match self.public() == *authority {
            true => Ok(()),
            false => Err(Failure::Unfit(
                "that is not the root key of this cell: name the file `root` that came to be with this \
                 cell, or your copy of it"
                    .into(),
            )),
        }
    }
}

/// What a machine has in its directory of the authority of its cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Powers {
    /// How the root key lies there, if it does.
    pub root: Option<Custody>,
    /// The issuer whose key is there, if one is.
    pub issuer: Option<IssuerStanding>,
}

/// An issuer whose key is at hand.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct IssuerStanding {
    /// What it is known by.
    pub key: Key,
    /// Until when it may issue, in seconds since 1970.
    pub expires: u64,
    /// What it may do.
    pub may: Vec<String>,
}

impl Powers {
    /// Those of the machine in a directory.
    pub(crate) fn of(directory: &Path) -> Powers {
        let standing = |issuer: Issuer| {
            let Tenure { issuer: key, until } = issuer.tenure();
            let may = issuer.warrant().powers().iter().map(ToString::to_string).collect();
            IssuerStanding { key: Key(key), expires: until, may }
        };
        let path = issuer_path(directory);
        Powers {
            root: Root::custody(&Root::usual(directory)).ok().flatten(),
            issuer: read_issuer(&path, None).ok().map(standing),
        }
    }
}

/// Where a machine keeps its issuer's key.
pub(crate) fn issuer_path(directory: &Path) -> PathBuf {
    directory.join("issuer")
}

/// Lets the machine in a directory issue with what [`Root::new_issuer`] has made. Who it is, and until when it may.
pub fn take_issuer(directory: &Path, text: &str) -> Result<IssuerStanding, Failure> {
    let authority = Membership::read(directory)?.authority;
    let issuer = parse_issuer(text, Some(&authority))?;
    let may = issuer.warrant().powers().first().copied().unwrap_or(Power::Invite);
    issuer.check(may, seconds_now()).map_err(|refused| Failure::Unfit(refused.to_string()))?;
    key::write_over(&issuer_path(directory), text)?;
    let standing = Powers::of(directory).issuer;
    standing.ok_or_else(|| Failure::Unfit("the issuer can't be read back; try again".into()))
}

/// The issuer of the machine in a directory, to do this with it.
pub(crate) fn issuer_for(
    path: &Path,
    authority: &PublicKey,
    power: Power,
) -> Result<Issuer, Failure> {
    if !path.exists() {
        let what = format!(
            "this machine has no issuer's key ({}), which it takes to {power}; do it where one is, or make \
             one where the root key is (`croft issuer new`) and bring it here (`croft issuer take`)",
            path.display()
        );
        return Err(Failure::Unfit(what));
    }
    let issuer = read_issuer(path, Some(authority))?;
    issuer.check(power, seconds_now()).map_err(|refused| Failure::Unfit(refused.to_string()))?;
    Ok(issuer)
}

/// The issuer in a file; of this cell, if it is said which.
fn read_issuer(path: &Path, authority: Option<&PublicKey>) -> Result<Issuer, Failure> {
    parse_issuer(&key::read_secret(path)?, authority)
}

fn parse_issuer(text: &str, authority: Option<&PublicKey>) -> Result<Issuer, Failure> {
    let none = "that is no issuer; take the two lines that `croft issuer new` has printed";
    let unfit = || Failure::Unfit(none.into());
    let (key, warrant) = text.trim_end().split_once('\n').ok_or_else(unfit)?;
    let mut seed = Zeroizing::new([0; 32]);
    if !key::read_digits(key.trim_end(), &mut *seed) {
        return Err(unfit());
    }
    let warrant: Warrant = read_digits(warrant, none)?;
    let authority = authority.copied().unwrap_or(*warrant.authority());
    Issuer::new(SecretKey::from_seed(*seed), warrant, &authority)
        .map_err(|refused| Failure::Unfit(refused.to_string()))
}

/// What these digits say, if they say anything.
pub(crate) fn read_digits<T: borsh::BorshDeserialize>(
    digits: &str,
    none: &str,
) -> Result<T, Failure> {
    let mut bytes = vec![0; digits.len() / 2];
    let read = key::read_digits(digits, &mut bytes).then(|| base::decode(&bytes, bytes.len()));
    match read {
        Some(Ok(read)) => Ok(read),
        _ => Err(Failure::Unfit(none.into())),
    }
}

/// The key that a passphrase leads to.
fn stretch(
    passphrase: &str,
    salt: &[u8],
    (memory, passes): (u32, u32),
) -> Result<LessSafeKey, Failure> {
    let unfit = |_| Failure::Unfit("the parameters of the seal make no sense; use a copy".into());
    let params = Params::new(memory, passes, 1, Some(32)).map_err(unfit)?;
    let mut bytes = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), salt, &mut *bytes)
        .map_err(unfit)?;
    let key = UnboundKey::new(&AES_256_GCM, &*bytes).expect("it has the size of a key");
    Ok(LessSafeKey::new(key))
}

/// A root key's file, sealed. What comes before the nonce is vouched for too.
fn sealed(root: &SecretKey, passphrase: &str) -> Result<String, Failure> {
    let fresh = key::fresh_seed()?;
    let (salt, nonce) = (&fresh[..SALT_SIZE], &fresh[SALT_SIZE..SALT_SIZE + NONCE_LEN]);
    let head = format!("{SEALED} {MEMORY_KIB} {PASSES} {}", key::digits(salt));
    let key = stretch(passphrase, salt, (MEMORY_KIB, PASSES))?;
    let mut bytes = root.as_seed().to_vec();
    let nonce_bytes = Nonce::try_assume_unique_for_key(nonce).expect("it has the size of a nonce");
    key.seal_in_place_append_tag(nonce_bytes, Aad::from(head.as_bytes()), &mut bytes)
        .expect("32 bytes are not too many");
    Ok(format!("{head} {} {}\n", key::digits(nonce), key::digits(&bytes)))
}

fn open_sealed(path: &Path, text: &str, passphrase: &str) -> Result<SecretKey, Failure> {
    let damaged = || Failure::Damaged {
        path: path.into(),
        what: "it is no sealed root key; put it back from a copy".into(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let [SEALED, memory, passes, salt, nonce, key] = words[..] else { return Err(damaged()) };
    let cost = (memory.parse().ok(), passes.parse().ok());
    let (Some(memory @ ..=MEMORY_KIB_MAX), Some(passes @ ..=PASSES_MAX)) = cost else {
        return Err(damaged());
    };
    let head = format!("{SEALED} {memory} {passes} {salt}");
    let (mut salt_bytes, mut nonce_bytes) = ([0; SALT_SIZE], [0; NONCE_LEN]);
    let mut bytes = Zeroizing::new([0; 32 + TAG_SIZE]);
    if !key::read_digits(salt, &mut salt_bytes)
        || !key::read_digits(nonce, &mut nonce_bytes)
        || !key::read_digits(key, &mut *bytes)
    {
        return Err(damaged());
    }
    let key = stretch(passphrase, &salt_bytes, (memory, passes))?;
    let nonce = Nonce::assume_unique_for_key(nonce_bytes);
    let opened = key.open_in_place(nonce, Aad::from(head.as_bytes()), &mut *bytes);
    let opened = opened.ok().and_then(|seed| <[u8; 32]>::try_from(&*seed).ok());
    let Some(mut seed) = opened else {
        return Err(Failure::Unfit(format!(
            "that passphrase does not open {}: try again, and put the file back from a copy if the \
             passphrase is right",
            path.display()
        )));
    };
    let root = SecretKey::from_seed(seed);
    seed.zeroize();
    Ok(root)
}

#[cfg(test)]
mod tests {
    use overlay::Refused;

    use super::*;
    use crate::log::scratch::Scratch;

    fn says(passphrase: &str) -> impl FnMut(&Path) -> Result<Secret, Failure> {
        move |_: &Path| Ok(Zeroizing::new(passphrase.to_owned()))
    }

    fn never() -> impl FnMut(&Path) -> Result<Secret, Failure> {
        |_: &Path| panic!("nothing is to be asked")
    }

    #[test]
    fn a_sealed_root_key_can_not_be_used_without_its_passphrase() {
        let scratch = Scratch::new("root");
        let path = scratch.path.join("root");
        key::make(&path).unwrap();
        let public = Root::open(&path, &mut never()).unwrap().public();
        let digits = fs::read_to_string(&path).unwrap();
        assert_eq!(Root::custody(&path).unwrap(), Some(Custody::Open));
        Root::seal(&path, &mut never(), &mut says("correct horse")).unwrap();
        assert_eq!(Root::custody(&path).unwrap(), Some(Custody::Sealed));
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(digits.trim()));
        for wrong in ["", "correct horsf", "Correct horse"] {
            let refused = Root::open(&path, &mut says(wrong)).err().unwrap().to_string();
            assert!(refused.contains("does not open"), "{refused}");
        }
        let read = Root::open(&path, &mut says("correct horse")).unwrap();
        assert_eq!(read.public(), public);
        // Another passphrase from now on, and the old one is of no use.
        Root::seal(&path, &mut says("correct horse"), &mut says("battery staple")).unwrap();
        assert!(Root::open(&path, &mut says("correct horse")).is_err());
        let read = Root::open(&path, &mut says("battery staple")).unwrap();
        assert_eq!(read.public(), public);
        assert!(Root::seal(&path, &mut says("battery staple"), &mut says("")).is_err());
    }

    #[test]
    fn a_changed_or_made_up_seal_is_refused_and_costs_little() {
        let scratch = Scratch::new("root");
        let path = scratch.path.join("root");
        let root = SecretKey::from_seed([7; 32]);
        let text = sealed(&root, "x").unwrap();
        assert!(open_sealed(&path, &text, "x").is_ok());
        let words: Vec<&str> = text.split_whitespace().collect();
        let with = |index: usize, word: &str| {
            let mut words = words.clone();
            words[index] = word;
            open_sealed(&path, &words.join(" "), "x").is_err()
        };
        assert!(with(1, "4294967295") && with(2, "4294967295") && with(1, "-1") && with(1, "0"));
        assert!(with(0, "croft-root-sealed-2") && with(2, "2") && with(1, "65537"));
        for (index, word) in words.iter().enumerate().skip(3) {
            let first = if word.starts_with('0') { "1" } else { "0" };
            assert!(with(index, &format!("{first}{}", &word[1..])), "word {index}");
            assert!(with(index, &word[1..]) && with(index, "zz"), "word {index}");
        }
        assert!(open_sealed(&path, "", "x").is_err());
    }

    #[test]
    fn an_issuers_file_has_to_be_what_the_root_key_of_the_cell_has_made() {
        let root = Root(SecretKey::from_seed([1; 32]));
        let (own, other) = (root.public(), SecretKey::from_seed([2; 32]).public());
        let text = root.new_issuer([Power::Renew].into(), Duration::from_secs(60)).unwrap().text;
        let issuer = parse_issuer(&text, Some(&own)).unwrap();
        let now = seconds_now();
        assert_eq!(issuer.check(Power::Renew, now), Ok(()));
        assert_eq!(issuer.check(Power::Invite, now), Err(Refused::PowerMissing(Power::Invite)));
        assert!(issuer.check(Power::Renew, now + 61).is_err());
        assert!(parse_issuer(&text, Some(&other)).is_err(), "it is of another cell");
        let second = root.new_issuer([Power::Renew].into(), Duration::from_secs(60)).unwrap().text;
        let (key, _) = text.split_once('\n').unwrap();
        let (_, warrant) = second.split_once('\n').unwrap();
        assert!(parse_issuer(&format!("{key}\n{warrant}"), Some(&own)).is_err(), "mixed");
        for none in ["", "x", key, "x\ny", &format!("{key}\n00")] {
            assert!(parse_issuer(none, Some(&own)).is_err(), "{none}");
        }
    }
}
