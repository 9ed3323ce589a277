//! The file in which a machine keeps for its next start who was sent away.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base::PublicKey;
use overlay::{Decree, Decrees};

use crate::{Failure, machine::replace};

use super::{Group, SENT_AWAY};

/// The most bytes of the file: more than as many decrees have as a cell remembers.
const BYTES_MAX: usize = 64 << 20;

/// Those that were kept in a directory.
pub(super) fn open(
    directory: &Path,
    authority: PublicKey,
    me: PublicKey,
) -> Result<Decrees, Failure> {
    let path = path(directory);
    let kept = match path.exists() {
        true => {
            let bytes = fs::read(&path).map_err(Failure::of("can't read", &path))?;
            base::decode(&bytes, BYTES_MAX).map_err(|malformed| {
                let what = format!("{malformed}; remove it: the others say it again");
                Failure::Damaged { path: path.clone(), what }
            })?
        }
        false => Vec::new(),
    };
    let decrees = Decrees::new(authority, me, kept);
    match decrees.is_revoked(&me) {
        true => Err(Failure::Unfit(SENT_AWAY.into())),
        false => Ok(decrees),
    }
}

/// Machines and users that were sent away.
pub(super) fn gone(decrees: &Decrees) -> Vec<PublicKey> {
    let gone = decrees.known().filter_map(|decree| match decree {
        Decree::Revoke(revocation) => Some(revocation.subject()),
        _ => None,
    });
    gone.collect()
}

fn path(directory: &Path) -> PathBuf {
    directory.join("decrees")
}

impl Group {
    pub(super) fn keep_decrees(&self) -> Result<(), Failure> {
        let known: Vec<&Decree> = self.server.decrees().collect();
        replace(&path(&self.home), &base::encode(&known))
    }
}
