//! Files of which the bytes change on another machine without a word: what is to be done to them is done there. See
//! [`super::home`].

use std::{
    thread,
    time::{Duration, Instant},
};

use base::FileId;
use directory::{File as Record, record::Content};
use host::{Io, IoReply};
use lease::Client;

use crate::{
    errno,
    front::{Change, Errno, Manner},
};

use super::{
    Tree,
    home::{ASK_MAX, DEED_MAX, Stay, TELL_MAX},
    lock,
    opens::Open,
};

/// Whoever is told that bytes do not change where the directory says asks again for so long, and this often.
const DOUBT: Duration = Duration::from_secs(10);
const DOUBT_PAUSE: Duration = Duration::from_millis(5);
/// A home that did not answer is asked no more for so long by whoever only looks, and waited for as long as
/// [`ASK_MAX`] by others.
const SILENCE: Duration = Duration::from_secs(10);

impl Tree {
    /// The machine where bytes change without a word, if that is another one.
    pub(super) fn home_elsewhere(&self, content: &Content) -> Option<Client> {
        content.home.filter(|home| self.is_shared && content.is_live && *home != self.desk.me())
    }

    /// Somebody does not answer: they are not asked for a while by whoever can do without.
    pub(super) fn note_silent(&self, who: Client) {
        let now = Instant::now();
        let mut silent = lock(&self.silent);
        silent.retain(|_, since| now - *since < SILENCE);
        silent.insert(who, now);
    }

    pub(super) fn is_silent(&self, who: Client) -> bool {
        lock(&self.silent).get(&who).is_some_and(|since| since.elapsed() < SILENCE)
    }

    /// Has something done where the bytes of a file change. Nothing, if they change nowhere without a word: then it
    /// is to be done here.
    pub(super) fn do_at_home(&self, open: &Open, io: &Io) -> Result<Option<IoReply>, Errno> {
        if !self.is_shared || open.lock().stay == Stay::Home {
            return Ok(None);
        }
        let start = Instant::now();
        loop {
            let held = self.desk.holds(&open.file, false);
            let content = held.map_or_else(|| self.held(&open.file, false), Ok)?;
            let Some(home) = self.home_elsewhere(&content) else { return Ok(None) };
            let who = {
                let inner = open.lock();
                if inner.has_given_up(&content) {
                    return Ok(None);
                }
                inner.writer
            };
            let patience = if self.is_silent(home) { ASK_MAX } else { DEED_MAX };
            let which = (open.inode, &open.file);
            match self.neighbours.do_at_home(home, which, who, io, patience) {
                Ok(IoReply::Away | IoReply::Busy) if start.elapsed() < DOUBT => {
                    thread::park_timeout(DOUBT_PAUSE);
                }
                // It looks after its bytes, and still the directory has not heard.
                Ok(IoReply::Away) => open.lock().forsaken = Some(content),
                Ok(IoReply::Busy) => return Err(Errno::AGAIN),
                Ok(IoReply::Refused(errno)) => return Err(errno::of_peer(errno)),
                Ok(done) => return Ok(Some(done)),
                Err(failure) => {
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
        if content.is_some_and(|content| self.home_elsewhere(&content).is_some()) {
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
        let Some(home) = self.home_elsewhere(&record.content) else { return Ok(record) };
        // Nobody is told when it changes.
        self.contend(record.serial);
        if self.is_silent(home) {
            return Ok(record);
        }
        let (which, start) = ((record.serial, file), Instant::now());
        loop {
            match self.neighbours.do_at_home(home, which, (0, 0), &Io::Tell, TELL_MAX) {
                Ok(IoReply::Away | IoReply::Busy) if start.elapsed() < TELL_MAX => {
                    thread::park_timeout(DOUBT_PAUSE);
                }
                Ok(_) => return self.record(file),
                Err(_) => {
                    self.note_silent(home);
                    return Ok(record);
                }
            }
        }
    }

    /// Pages of a file that changes elsewhere may be old: memory that is mapped is not looked at again by itself.
    pub(super) fn refresh_mapped(&self, open: &Open) {
        let is_elsewhere = |content: Content| self.home_elsewhere(&content).is_some();
        if open.has_pages() && self.desk.holds(&open.file, false).is_some_and(is_elsewhere) {
            self.tell(Change::Bytes(open.inode));
        }
    }
}
