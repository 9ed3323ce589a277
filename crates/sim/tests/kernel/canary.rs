//! A reference that is wrong in one rule is found out.

use sim::reference::{Actor, Change, Errno, FileSystem, Stamp};

use crate::{
    duel::{Tamper, fight},
    memory,
    model::touched,
    op::{Op, Outcome},
    place::{self, Quirks},
};

/// Says of a directory that is not empty that it is not there.
struct WrongErrno;

impl Tamper for WrongErrno {
    fn answer(&self, op: &Op, outcome: Outcome) -> Outcome {
        match (op, outcome) {
            (Op::Rmdir(..), Err(number)) if number == Errno::ENOTEMPTY.number() => {
                Err(Errno::ENOENT.number())
            }
            (_, outcome) => outcome,
        }
    }
}

/// Writes as many bytes as it should, but other ones.
struct WrongBytes;

impl Tamper for WrongBytes {
    fn tree(&self, op: &Op, outcome: &Outcome, fs: &mut FileSystem) {
        if let (Op::Write(handle, offset, data), Ok(_)) = (op, outcome)
            && let Ok(attr) = fs.getattr(touched(fs, op)[0])
        {
            let data = vec![0xee; data.len()];
            let _ = fs.write(&Actor::root(), attr.mtime, *handle, *offset, &data);
        }
    }
}

/// Leaves the time of a directory alone in which a name is made.
struct WrongTime;

impl Tamper for WrongTime {
    fn tree(&self, op: &Op, outcome: &Outcome, fs: &mut FileSystem) {
        if let (Op::Mkdir(dir, ..), Ok(_)) = (op, outcome)
            && let Ok(attr) = fs.getattr(*dir)
        {
            let times = Change::Times { atime: Stamp::Omit, mtime: Stamp::At(7) };
            fs.setattr(&Actor::root(), attr.ctime, *dir, times).expect("the superuser may");
        }
    }
}

/// What is said about the first difference.
fn difference(tamper: &impl Tamper) -> String {
    place::prepare();
    let quirks = Quirks::probe(&memory());
    let found = (1..20).find_map(|seed| fight(&memory(), &quirks, seed, 2_000, tamper).err());
    found.expect("the difference is found").to_string()
}

#[test]
fn a_wrong_error_is_found_out() {
    let text = difference(&WrongErrno);
    assert!(text.contains("the kernel answers ENOTEMPTY"), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.ends_with(": ENOENT")), "{text}");
}

#[test]
fn wrong_bytes_are_found_out_where_they_were_written() {
    let text = difference(&WrongBytes);
    assert!(text.contains("has other bytes") || text.contains("bytes:"), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.contains(" write ")), "{text}");
}

#[test]
fn a_wrong_time_is_found_out() {
    if Quirks::probe(&memory()).has_fine_times {
        let text = difference(&WrongTime);
        assert!(text.contains("the time of modification"), "{text}");
        assert!(text.lines().last().is_some_and(|line| line.contains(" mkdir ")), "{text}");
    }
}
