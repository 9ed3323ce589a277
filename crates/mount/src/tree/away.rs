//! Files of which the bytes change on another machine without a word: what is to be done to them is done there. See
//! [`super::home`].

use base::FileId;
use content::{Heard, TELL_MAX, Then, Visit, Way};
use directory::File as Record;
use host::{Failure, Io, IoReply};
use lease::Client;

use crate::{
    errno,
    front::{Change, Errno, Manner},
    time,
};

use super::{Tree, lock, opens::Open};

/// What the other machine says.
fn heard(answer: &Result<IoReply, Failure>) -> Heard {
    match answer {
        Ok(IoReply::Away) => Heard::Away,
        Ok(IoReply::Busy) => Heard::Busy,
        Ok(_) => Heard::Done,
        Err(_) => Heard::Nothing,
    }
}

impl Tree {
    /// Somebody does not answer: they are not asked for a while by whoever can do without.
    pub(super) fn note_silent(&self, who: Client) {
        lock(&self.silence).note(who, time::now());
    }

    pub(super) fn is_silent(&self, who: Client) -> bool {
        lock(&self.silence).is_silent(who, time::now())
    }

    /// Has something done where the bytes of a file change. Nothing, if they change nowhere without a word: then it
    /// is to be done here.
    pub(super) fn do_at_home(&self, open: &Open, io: &Io) -> Result<Option<IoReply>, Errno> {
        if !self.is_shared {
            return Ok(None);
        }
        let (mut visit, said) = (Visit::new(time::now()), self.said(&open.file));
        loop {
            let (way, who) = {
                let (inner, silence) = (open.lock(), lock(&self.silence));
                (visit.way(time::now(), &inner.bytes, &said, &silence), inner.writer)
            };
            let (home, patience) = match way {
                Way::Here => return Ok(None),
                Way::Hold => {
                    visit.held(self.held(&open.file, false)?);
                    continue;
                }
                Way::There { home, patience } => (home, patience),
            };
            let which = (open.inode, &open.file);
            let answer = self.neighbours.do_at_home(home, which, who, io, patience);
            let then = visit.answered(time::now(), &mut open.lock().bytes, heard(&answer));
            match (then, answer) {
                (Then::Again(at), _) => time::wait_until(at),
                (Then::Look, _) => {}
                (Then::Busy, _) => return Err(Errno::AGAIN),
                (_, Ok(IoReply::Refused(errno))) => return Err(errno::of_peer(errno)),
                (_, Ok(done)) => return Ok(Some(done)),
                (_, Err(failure)) => {
                    self.note_silent(home);
                    eprintln!(
                        "croft: inode {} is open on another machine, which does not answer: {failure}",
                        open.inode
                    );
                    return Err(errno::of_host(failure));
                }
            }
        }
    }

    /// Has a range of bytes read where they change.
    pub(super) fn read_at_home(
        &self,
        open: &Open,
        offset: u64,
        size: usize,
    ) -> Result<Option<Vec<u8>>, Errno> {
        let mut all = Vec::new();
        while all.len() < size {
            let length = (size - all.len()).min(Io::BYTES_MAX);
            let (offset, length) = (offset.saturating_add(all.len() as u64), length as u64);
            let Some(done) = self.do_at_home(open, &Io::Read { offset, length })? else {
                return Ok(None);
            };
            let IoReply::Bytes(bytes) = done else { return Err(Errno::IO) };
            let is_end = (bytes.len() as u64) < length;
            all.extend_from_slice(&bytes[..bytes.len().min(length as usize)]);
            if is_end {
                break;
            }
        }
        Ok(Some(all))
    }

    /// Has bytes written where they change; how many. What is left is to be written here.
    pub(super) fn write_at_home(
        &self,
        open: &Open,
        offset: Option<u64>,
        data: &[u8],
        manner: &Manner,
    ) -> Result<usize, Errno> {
        let content = self.desk.holds(&open.file, false);
        let said = self.said(&open.file);
        if content.is_some_and(|content| content::live_elsewhere(&content, &said).is_some()) {
            // Whoever is at home does not see who writes.
            let mut inner = open.lock();
            if let Some(caller) = manner.tamed_by.filter(|_| inner.has_suid) {
                self.tame(open, &mut inner, &caller)?;
            }
            if inner.has_capability {
                self.drop_capability(open, &mut inner)?;
            }
        }
        let mut written = 0;
        for piece in data.chunks(Io::BYTES_MAX) {
            let offset = offset.map(|offset| offset.saturating_add(written as u64));
            if self.do_at_home(open, &Io::Write { offset, bytes: piece.to_vec() })?.is_none() {
                break;
            }
            written += piece.len();
        }
        Ok(written)
    }

    /// What the directory says of a file whose bytes change elsewhere, after it has heard of them. If their home does
    /// not answer, what is known.
    pub(super) fn ask_home(
        &self,
        file: &FileId,
        record: triomphe::Arc<Record>,
    ) -> Result<triomphe::Arc<Record>, Errno> {
        let home = content::live_elsewhere(&record.content, &self.said(file));
        let Some(home) = home else { return Ok(record) };
        // Nobody is told when it changes.
        self.contend(record.serial);
        if self.is_silent(home) {
            return Ok(record);
        }
        let (which, visit) = ((record.serial, file), Visit::to_tell(time::now()));
        loop {
            let answer = self.neighbours.do_at_home(home, which, (0, 0), &Io::Tell, TELL_MAX);
            match visit.told(time::now(), heard(&answer)) {
                Then::Again(at) => time::wait_until(at),
                Then::Silent => {
                    self.note_silent(home);
                    return Ok(record);
                }
                _ => return self.record(file),
            }
        }
    }

    /// Pages of a file that changes elsewhere may be old: memory that is mapped is not looked at again by itself.
    pub(super) fn refresh_mapped(&self, open: &Open) {
        let said = self.said(&open.file);
        let held = self.desk.holds(&open.file, false);
        let is_elsewhere = held.is_some_and(|now| content::live_elsewhere(&now, &said).is_some());
        if open.has_pages() && is_elsewhere {
            self.tell(Change::Bytes(open.inode));
        }
    }
}
