//! The files of a log after anything that can happen to them: what is read is what was written, from the first on.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a log is files, so this has files"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use host::Log;

use crate::script::Script;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A directory that is removed again.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("croft-fuzz-{}-{number}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Plays the bytes: a log is written, then its file is changed, then it is opened. Says how many records were found.
pub fn disk(bytes: &[u8]) -> usize {
    let scratch = Scratch::new();
    let mut script = Script::new(bytes);
    let written = write(&scratch.0, &mut script);
    if script.byte().is_some_and(|kind| kind & 1 == 1) {
        // Nothing that anybody has written.
        fs::write(segment(&scratch.0), script.rest())
            .expect("a scratch directory can be written to");
    } else {
        change(&segment(&scratch.0), &mut script);
    }
    let Ok((mut log, mut recovered)) = Log::open(&scratch.0) else { return 0 };
    let mut found = 0;
    while let Ok(Some((number, record))) = recovered.next() {
        let meant = written.get(found).map(|record| (found as u64 + 1, *record));
        assert_eq!(Some((number, &record[..])), meant, "a record that nobody has written");
        found += 1;
    }
    // It goes on from there.
    let next = log.next().max(1);
    assert!(log.append(next, b"more").and_then(|()| log.sync()).is_ok());
    found
}

fn segment(directory: &Path) -> PathBuf {
    directory.join(format!("{:020}", 1))
}

/// Writes records, and syncs now and then.
fn write<'a>(directory: &Path, script: &mut Script<'a>) -> Vec<&'a [u8]> {
    let (mut log, _) = Log::open(directory).expect("an empty log can be opened");
    let mut written = Vec::new();
    let count = script.below(12).unwrap_or(0);
    for _ in 0..count {
        let Some(record) = script.bytes() else { break };
        written.push(record);
        log.append(written.len() as u64, record).expect("it is small and next");
        if record.len() % 3 == 0 {
            log.sync().expect("a scratch directory can be written to");
        }
    }
    log.sync().expect("a scratch directory can be written to");
    written
}

/// Changes bytes of a file, cuts it, or adds to it.
fn change(path: &Path, script: &mut Script<'_>) {
    let Ok(mut bytes) = fs::read(path) else { return };
    while let (Some(kind), Some(high), Some(low)) = (script.byte(), script.byte(), script.byte()) {
        let at = usize::from(u16::from_be_bytes([high, low])) % bytes.len().max(1);
        match kind % 4 {
            0 => bytes.truncate(at),
            1 => bytes.extend_from_slice(script.bytes().unwrap_or_default()),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= kind | 1;
                }
            }
        }
    }
    fs::write(path, bytes).expect("a scratch directory can be written to");
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    #[test]
    fn what_was_written_is_found_and_a_cut_takes_the_last() {
        let written = [&[3, 2, 7, 7, 2, 8, 8, 1, 9][..], &[0]].concat();
        assert_eq!(disk(&written), 3);
        let changed = [&written[..], &[2, 0, 100]].concat();
        assert!(disk(&changed) < 3);
    }

    #[test]
    fn seeded_changes_show_nothing_that_was_not_written() {
        let mut rng = Rng::new(16);
        for _ in 0..300 {
            let count = rng.index(400);
            let bytes: Vec<u8> = (0..count).map(|_| rng.next_u64() as u8).collect();
            disk(&bytes);
        }
    }
}
