//! Bytes that the directory does not know of, because it had not heard yet when the session was lost or the machine
//! died. They are told again, or kept aside if others were faster.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Weak, mpsc},
    thread,
};

use base::FileId;
use client::{Call, Reply};
use content::{Look as Found, Need};
use directory::{Actor, record::Content};
use host::Neighbours;

use crate::{
    errno,
    front::{Change, Errno},
};

use super::{
    Tree,
    body::{Body, Held},
    opens::Inner,
};

/// A file to be looked at.
pub(super) struct Look {
    pub(super) file: FileId,
    /// Its number, if the kernel remembered it when there was something to look at. It may forget it before
    /// anybody looks.
    pub(super) inode: Option<u64>,
    /// What the directory was told of it may be lost.
    pub(super) is_lost: bool,
}

/// The most files that wait to be looked at. What does not fit is asked for again by whoever misses it.
const LOOKS_MAX: usize = 10_000;

impl Tree {
    /// Starts the thread that looks at files: who asks for that may not wait.
    pub(super) fn start_looking(tree: Weak<Tree>) -> std::io::Result<mpsc::SyncSender<Look>> {
        let (ask, asked) = mpsc::sync_channel::<Look>(LOOKS_MAX);
        thread::Builder::new().name("mount-looks".to_owned()).spawn(move || {
            while let Ok(Look { file, inode, is_lost }) = asked.recv() {
                let Some(tree) = tree.upgrade() else { return };
                let looked = catch_unwind(AssertUnwindSafe(|| tree.look(&file, inode, is_lost)));
                if let Ok(Err(errno)) = looked {
                    eprintln!("croft: can't look at the bytes of {file} ({errno})");
                }
            }
        })?;
        Ok(ask)
    }

    /// Tells the directory of the bytes that a file has here, if it says something else.
    /// `is_lost` says that what it was told may be lost.
    pub(super) fn look(
        &self,
        file: &FileId,
        inode: Option<u64>,
        is_lost: bool,
    ) -> Result<(), Errno> {
        let hold = Call::Hold { file: file.clone(), writes: true };
        let inode = match self.ask(&Actor::ROOT, hold) {
            Ok(Reply::File(record)) => record.serial,
            // It was to be made by what is lost, or others have removed it.
            Err(Errno::STALE) => return inode.map_or(Ok(()), |inode| self.keep_aside(inode)),
            Ok(_) => return Err(Errno::IO),
            Err(errno) => return Err(errno),
        };
        let hold = self.hold_file(inode, file);
        let mut inner = self.ready(&hold, Need::Tell)?;
        let said = self.said(file);
        let is_old = self.is_outlived(inode) && !self.was_written_past_us(inode);
        match inner.bytes.look(&said, is_old) {
            Found::Nothing => return Ok(()),
            Found::Drop => return self.drop_old(inode),
            Found::Aside => return self.keep_aside(inode),
            Found::Compare => {}
        }
        let Some(now) = inner.bytes.base().cloned() else { return Ok(()) };
        let has_changed = self.was_written_past_us(inode);
        if now.is_live || has_changed {
            self.outlive(inode, file);
        }
        let is_other = self.is_other(inode, &mut inner, &now)?;
        // Of what is large nothing shows whether it is what was told before.
        let is_large = now.size > Content::SMALL_MAX && inner.bytes.body().is_file();
        inner.bytes.found(is_other || has_changed || is_lost && is_large);
        if self.settle(&hold, &mut inner)? {
            // The kernel here has not heard of it either.
            self.tell_now(Change::Inode(inode));
        } else if now.is_live || now.lacks_digest() {
            self.end_rumour(&hold, &mut inner, &now)?;
        }
        Ok(())
    }

    /// Compares what is here of a file with what the directory says.
    fn is_other(&self, inode: u64, inner: &mut Inner, now: &Content) -> Result<bool, Errno> {
        if inner.bytes.body().is_at_rest() {
            if let Some(file) = self.content.backing(inode).map_err(errno::of_host)? {
                inner.bytes.load(Tree::file_body(file, now.size)?);
            } else if let Some(bytes) = self.content.get(inode).map_err(errno::of_host)? {
                inner.bytes.load(Body::Memory(Held::new(bytes, &self.reservoir)));
            }
        }
        Ok(match inner.bytes.body() {
            Body::Rest => false,
            Body::File { .. } => now.digest.is_some(),
            // What was written while there was nobody else has no hash; that is told without another time.
            Body::Memory(held) if now.lacks_digest() => held.len() as u64 != now.size,
            Body::Memory(held) => now.digest != Some(Neighbours::digest(held.bytes())),
        })
    }

    /// Keeps what is here of a file that is another one by now, or none, for whoever wrote it.
    pub(super) fn keep_aside(&self, inode: u64) -> Result<(), Errno> {
        let mut kept = self.content.rescue_backing(inode).map_err(errno::of_host)?;
        if kept.is_none()
            && let Some(bytes) = self.content.get(inode).map_err(errno::of_host)?
        {
            kept = Some(self.content.rescue(inode, &mut &*bytes).map_err(errno::of_host)?);
            self.content.remove(inode).map_err(errno::of_host)?;
        }
        if let Some(path) = kept {
            eprintln!(
                "croft: what was written to inode {inode} was lost before the group had heard of it; it is in {}",
                path.display()
            );
        }
        Ok(())
    }
}
