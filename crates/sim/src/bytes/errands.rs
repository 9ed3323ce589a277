//! What a simulated machine does for others.

use client::Call;
use content::{Body, DEED_MAX, TELL_MAX};

use crate::Node;

use super::{
    actor::{Answer, Deed, Note, Query},
    house::House,
    shell::{No, Slot},
    tamper::Tamper,
};

impl<T: Tamper> House<T> {
    /// Another machine asks something.
    pub(crate) async fn serve(self, from: Node, number: u64, query: Query) {
        let answer = match query {
            Query::Fetch { file, serial, version, size } => {
                let open = self.state().opens.get(&file).cloned();
                let may = |open: Slot| open.borrow().bytes.may_be_fetched(open.borrow().seen());
                let is_that = self.state().disk.versions.get(&serial) == Some(&version);
                let may = self.tamper().is_fetched(open.is_none_or(may) && is_that);
                let bytes = self.state().disk.bytes(serial);
                match bytes {
                    _ if !may => {
                        self.mark("bytes are asked for that the directory has not heard of");
                        self.state().looks.push((file, true));
                        Answer::Busy
                    }
                    Some(mut bytes) => {
                        bytes.resize(size as usize, 0);
                        Answer::Bytes(bytes)
                    }
                    None => Answer::Refused,
                }
            }
            Query::Look(file) => {
                self.state().looks.push((file, true));
                Answer::Done
            }
            Query::Do { file, deed } => {
                let open = self.state().opens.get(&file).cloned();
                let answer = match open {
                    Some(open) => self.do_here(&open, deed, (from, number)).await,
                    None => Ok(Answer::Away),
                };
                let answer = answer.unwrap_or(Answer::Refused);
                if answer == Answer::Away {
                    // The directory says otherwise.
                    self.state().looks.push((file, false));
                }
                answer
            }
        };
        self.answer(from, number, answer);
    }

    async fn do_here(
        &self,
        open: &Slot,
        deed: Deed,
        (by, number): (Node, u64),
    ) -> Result<Answer, No> {
        let locked = self.lock(open).await;
        if !self.tamper().serves(locked.is_home()) {
            return Ok(Answer::Away);
        }
        if !self.is_awaited(by, number) {
            return Ok(Answer::Busy);
        }
        let file = locked.file();
        let is_change = matches!(deed, Deed::Write { .. } | Deed::Resize { .. });
        if is_change {
            let serial = locked.serial();
            self.state().contests.note(serial);
        }
        self.spill(&locked);
        let Body::File { file: backing, .. } = locked.open().bytes.body().clone() else {
            return Ok(Answer::Refused);
        };
        let before = backing.borrow().bytes.clone();
        match deed {
            Deed::Read => {
                self.note(Note::Read { file, is_home: true, bytes: before.clone() });
                Ok(Answer::Bytes(before))
            }
            Deed::Write { tag, offset, bytes } => {
                let after = written(&before, offset, &bytes);
                backing.borrow_mut().set(after.clone());
                self.note(Note::Wrote { file, is_home: true, tag, before, after });
                Ok(Answer::Done)
            }
            Deed::Resize { tag, size } => {
                let mut after = before.clone();
                after.resize(size as usize, 0);
                backing.borrow_mut().set(after.clone());
                self.note(Note::Wrote { file, is_home: true, tag, before, after });
                locked.open().bytes.must_tell();
                self.settle(&locked).await?;
                Ok(Answer::Done)
            }
            Deed::Sync => {
                let ticket = self.tag();
                self.note(Note::Syncing { file: file.clone(), ticket });
                drop(locked);
                self.tell_home(open, TELL_MAX).await?;
                self.make_safe(open).await?;
                self.call_within(Call::Settle, DEED_MAX).await?;
                self.note(Note::Synced { file, ticket });
                Ok(Answer::Done)
            }
            Deed::Tell => {
                drop(locked);
                self.tell_home(open, TELL_MAX).await?;
                Ok(Answer::Done)
            }
        }
    }
}

/// Bytes after others were written into them; at the end, if it is not said where.
pub(crate) fn written(before: &[u8], offset: Option<u64>, bytes: &[u8]) -> Vec<u8> {
    let mut after = before.to_vec();
    let offset = offset.map_or(after.len(), |offset| offset as usize);
    after.resize(after.len().max(offset + bytes.len()), 0);
    after[offset..offset + bytes.len()].copy_from_slice(bytes);
    after
}
