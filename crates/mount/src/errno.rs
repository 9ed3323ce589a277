//! What a program is told, as a number.

use rustix::io::Errno;

/// Every name that a refusal or a failure of the client goes by.
const NAMES: [(&str, Errno); 23] = [
    ("ENOENT", Errno::NOENT),
    ("EEXIST", Errno::EXIST),
    ("ENOTDIR", Errno::NOTDIR),
    ("EISDIR", Errno::ISDIR),
    ("ELOOP", Errno::LOOP),
    ("EOPNOTSUPP", Errno::OPNOTSUPP),
    ("ENOTEMPTY", Errno::NOTEMPTY),
    ("EACCES", Errno::ACCESS),
    ("EPERM", Errno::PERM),
    ("EINVAL", Errno::INVAL),
    ("ENAMETOOLONG", Errno::NAMETOOLONG),
    ("EMLINK", Errno::MLINK),
    ("ENOSPC", Errno::NOSPC),
    ("EDQUOT", Errno::DQUOT),
    ("EFBIG", Errno::FBIG),
    ("ENODATA", Errno::NODATA),
    ("E2BIG", Errno::TOOBIG),
    ("EAGAIN", Errno::AGAIN),
    ("ENOLCK", Errno::NOLCK),
    ("EBUSY", Errno::BUSY),
    ("ESTALE", Errno::STALE),
    ("ENFILE", Errno::NFILE),
    ("EIO", Errno::IO),
];

/// Of a call that failed.
pub(crate) fn of_call(failure: client::Failure) -> Errno {
    if failure == client::Failure::Cancelled {
        // Nobody was interrupted: it took too long, and may yet be done.
        return Errno::TIMEDOUT;
    }
    let name = failure.errno();
    NAMES.iter().find(|(known, _)| *known == name).map_or(Errno::IO, |(_, errno)| *errno)
}

/// Of bytes that are another machine's by now.
pub(crate) fn of_anothers(_: content::Anothers) -> Errno {
    Errno::IO
}

/// Of bytes that could not be kept or had.
pub(crate) fn of_host(failure: host::Failure) -> Errno {
    Errno::from_raw_os_error(failure.errno())
}

/// As another machine says it, which may say anything.
pub(crate) fn of_peer(errno: u16) -> Errno {
    /// The last that there is on Linux.
    const LAST: u16 = Errno::HWPOISON.raw_os_error() as u16;
    match errno {
        1..=LAST => Errno::from_raw_os_error(i32::from(errno)),
        _ => Errno::IO,
    }
}

/// Of a file that could not be used.
pub(crate) fn of_file(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use client::Failure;
    use directory::Refusal;

    use super::*;

    #[test]
    fn every_failure_of_a_call_has_a_number() {
        let refusals = Refusal::ALL.into_iter().map(Failure::Refused);
        for failure in refusals.chain([Failure::Lost, Failure::Busy, Failure::TooManyOpen]) {
            let is_named = NAMES.iter().any(|(name, _)| *name == failure.errno());
            assert!(is_named, "{failure:?} is {} to a program", failure.errno());
        }
    }

    #[test]
    fn whatever_another_machine_says_is_a_number_that_programs_know() {
        assert_eq!(of_peer(28), Errno::NOSPC);
        assert_eq!(of_peer(133), Errno::HWPOISON);
        for unknown in [0, 134, 512, 4_095, 4_096, u16::MAX] {
            assert_eq!(of_peer(unknown), Errno::IO, "{unknown}");
        }
    }

    #[test]
    fn a_call_that_takes_too_long_is_not_told_as_an_interruption() {
        assert_eq!(of_call(Failure::Cancelled), Errno::TIMEDOUT);
        assert_eq!(of_call(Failure::TooManyOpen), Errno::NFILE);
        assert_eq!(of_call(Failure::Busy), Errno::AGAIN);
    }
}
