//! What a log has when it is opened, one record at a time.

use std::path::PathBuf;

use super::{
    FORMAT,
    frame::Framer,
    scan::{Scanner, Step, damaged},
    segment_path,
};
use crate::Failure;

/// What a crash had torn, and is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// How many bytes.
    pub bytes: u64,
    /// How many whole records among them, behind one that was lost. Nobody was told that these were safe.
    pub records: u64,
}

/// What a log had when it was opened. Holds one record of it in memory.
pub struct Recovered {
    directory: PathBuf,
    /// Segments not begun yet, the next one last.
    firsts: Vec<u64>,
    /// Records with smaller numbers are passed over.
    from: u64,
    /// What was appended since is not asked for.
    end: u64,
    scanner: Option<Scanner>,
    torn: Option<Torn>,
}

impl Recovered {
    pub(super) fn new(
        directory: PathBuf,
        firsts: &[u64],
        end: u64,
        torn: Option<Torn>,
    ) -> Recovered {
        let firsts = firsts.iter().rev().copied().collect();
        Recovered { directory, firsts, from: 0, end, scanner: None, torn }
    }

    /// What a crash had torn off, if anything.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }

    /// Passes over the records before this number. Files that have only such are not read.
    pub fn pass_before(&mut self, number: u64) {
        self.from = number;
        while let [.., second, _] = self.firsts[..]
            && second <= number
        {
            self.firsts.pop();
        }
    }

    /// The next record. Comes to an end after a failure.
    pub fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        let stepped = self.step();
        if !matches!(stepped, Ok(Some(_))) {
            self.firsts.clear();
            self.scanner = None;
        }
        stepped
    }

    fn step(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        loop {
            if self.from >= self.end {
                return Ok(None);
            }
            let scanner = match &mut self.scanner {
                Some(scanner) => scanner,
                None => {
                    let Some(first) = self.firsts.pop() else { return Ok(None) };
                    let path = segment_path(&self.directory, first);
                    let mut scanner = Scanner::open(&path, Framer::new(FORMAT), first, 0)?;
                    if !scanner.header()? {
                        return Err(damaged(&path, 0, "has lost its header since it was opened"));
                    }
                    self.scanner.insert(scanner)
                }
            };
            match scanner.next()? {
                Step::Record { number, .. } if number >= self.from => {
                    self.from = number + 1;
                    return Ok(Some((number, scanner.bytes().to_vec())));
                }
                Step::Record { .. } => {}
                Step::Bad { offset } => {
                    return Err(scanner.damaged(offset, "has gone bad since it was opened"));
                }
                Step::End => self.scanner = None,
            }
        }
    }
}
