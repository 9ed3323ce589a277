//! What a machine keeps of the codes that it has made, until they expire: each leads to a file, by its digest.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base::Digest;
use overlay::{Code, Invitation, Patrons, Secret, Text};
use wire::Pin;

use crate::{Failure, key, machine::replace};

use super::{Membership, Terms, seconds_now, unfit};

/// The most codes that have not expired.
const COUNT_MAX: usize = 1_000;
/// The most bytes of one.
const BYTES_MAX: usize = 64 << 10;

impl Membership {
    /// Invites machines to where this one listens, on these terms. If it is not said for whom they are to act, it is for
    /// any user where this one may; where only named users are acted for, it has to be said.
    pub(crate) fn invite(&self, directory: &Path, terms: Terms) -> Result<Text, Failure> {
        let vouched = self.certificate.verify(&self.authority, 0).map_err(unfit)?;
        let patrons = match (terms.patrons.clone(), vouched.patrons()) {
            (None, Patrons::These(_)) => {
                let what = "in this cell machines act only for users that are named: say for whom, as in \
                            `--users alice,bob`, or `--users none`";
                return Err(Failure::Unfit(what.into()));
            }
            (Some(Patrons::Any), Patrons::These(_)) => {
                return Err(unfit(overlay::Refused::AnyUser));
            }
            (patrons, _) => patrons.unwrap_or(Patrons::Any),
        };
        let secret = key::fresh_secret()?;
        let terms = Terms { patrons: Some(patrons), ..terms };
        let invitation = Membership::invitation(directory, &self.authority, &secret, terms)?;
        self.code(directory, secret, &invitation)
    }

    /// The code of an invitation, by which this machine is asked for the rest.
    pub(crate) fn code(
        &self,
        directory: &Path,
        secret: Secret,
        invitation: &Invitation,
    ) -> Result<Text, Failure> {
        let Some(listen) = self.listen else {
            let what = "this machine does not listen, so nobody can join; start it with \
                        `croft run --listen ADDRESS`";
            return Err(Failure::Unfit(what.into()));
        };
        let (offer, inviter) = (invitation.offer(), *self.certificate.machine());
        let pin = Pin { offer, inviter, founder: self.founder, roll: self.roll.clone() };
        let code = Code::new(secret, pin.digest(), &[listen]).map_err(unfit)?;
        keep(directory, &pin)?;
        Ok(code.text())
    }
}

/// Keeps a pin, and lets go of those that are of no use any more.
fn keep(directory: &Path, pin: &Pin) -> Result<(), Failure> {
    let place = place(directory);
    fs::create_dir_all(&place).map_err(Failure::of("can't make", &place))?;
    let (now, mut count) = (seconds_now(), 0);
    for entry in fs::read_dir(&place).map_err(Failure::of("can't read", &place))? {
        let path = entry.map_err(Failure::of("can't read", &place))?.path();
        match read(&path).filter(|pin| pin.offer.permit().expires > now) {
            Some(_) => count += 1,
            None => fs::remove_file(&path).map_err(Failure::of("can't remove", &path))?,
        }
    }
    if count >= COUNT_MAX {
        let what = format!(
            "this machine has made {COUNT_MAX} codes that have not expired; wait until some have, or have one \
             serve several machines (--count)"
        );
        return Err(Failure::Unfit(what));
    }
    replace(&file(directory, &pin.digest()), &base::encode(pin))
}

/// What this machine has pinned by this digest, if that has not expired.
pub(crate) fn recall(directory: &Path, digest: &Digest) -> Option<Pin> {
    let pin = read(&file(directory, digest))?;
    (pin.digest() == *digest && pin.offer.permit().expires > seconds_now()).then_some(pin)
}

fn read(path: &Path) -> Option<Pin> {
    base::decode(&fs::read(path).ok()?, BYTES_MAX).ok()
}

fn place(directory: &Path) -> PathBuf {
    directory.join("invited")
}

fn file(directory: &Path, digest: &Digest) -> PathBuf {
    place(directory).join(key::digits(digest.as_bytes()))
}
