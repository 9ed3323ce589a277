//! How the world lets a machine down.

use std::{error::Error, io, path::PathBuf};

use base::Malformed;
use rustix::io::Errno;

/// What the operating system says when there is no room.
const FULL: [i32; 2] = [Errno::NOSPC.raw_os_error(), Errno::DQUOT.raw_os_error()];

/// Something outside this program did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file could not be used.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was tried, as in "can't write".
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// A file says what it can't say.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, and what can be done.
        what: String,
    },
    /// The embedded store let us down.
    #[error("the store failed: {0}")]
    Store(#[from] fjall::Error),
    /// Bytes that ought to be ours make no sense.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Another machine can't be reached, or does not do what it should.
    #[error("{who}: {what}")]
    Peer {
        /// Its key or address.
        who: String,
        /// What is wrong, and what can be done.
        what: String,
    },
    /// Another machine has sent bytes, and the directory says that they are others.
    #[error(
        "{who}: the bytes that it sends are not those that were written; look at its disk, and whether it is mounted \
         there"
    )]
    Unlike {
        /// Its key.
        who: String,
    },
    /// An earlier failure has put this out of use.
    #[error(
        "stopped after an earlier failure; look at its message, mend the cause and start again"
    )]
    Stopped,
    /// What was asked for makes no sense here.
    #[error("{0}")]
    Unfit(String),
}

impl Failure {
    /// Of a file, for `map_err`.
    pub fn of(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Failure {
        let path = path.into();
        move |source| Failure::File { what, path, source }
    }

    /// Whether there was no room: what failed may be tried again when there is.
    pub fn is_full(&self) -> bool {
        FULL.contains(&self.errno())
    }

    /// What a program is told whose call this failure ended.
    pub fn errno(&self) -> i32 {
        let mut cause: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let number = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
            if let Some(full) = number.filter(|number| FULL.contains(number)) {
                return full;
            }
            cause = error.source();
        }
        Errno::IO.raw_os_error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_from_all_else_however_deep_it_lies() {
        let full = || io::Error::from_raw_os_error(FULL[0]);
        assert_eq!(Failure::of("can't write", "x")(full()).errno(), FULL[0]);
        assert_eq!(Failure::Store(fjall::Error::Io(full())).errno(), FULL[0]);
        let deep = fjall::Error::Storage(full().into());
        assert_eq!(Failure::Store(deep).errno(), FULL[0]);
        assert_eq!(Failure::Stopped.errno(), Errno::IO.raw_os_error());
    }
}
