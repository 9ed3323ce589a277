//! Files that other machines want too: what the kernel may believe of them, and when its pages may go. See
//! [`content::Contests`].

use crate::{front::Change, time};

use super::{Tree, lock};

/// Somebody is being answered about a file.
pub struct Asking<'a> {
    tree: &'a Tree,
    inode: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        lock(&self.tree.contended).end(self.inode, time::now());
    }
}

impl Tree {
    /// Notes that the kernel asks for the size of a file, or for pages of it, until it is answered.
    pub fn asking(&self, inode: u64) -> Option<Asking<'_>> {
        self.is_shared.then(|| {
            lock(&self.contended).begin(inode);
            Asking { tree: self, inode }
        })
    }

    /// Whether pages of an inode may be taken away now. If not, that is asked again later.
    pub fn may_take_pages(&self, inode: u64) -> bool {
        lock(&self.contended).may_take_pages(inode, time::now())
    }

    /// Others want a file.
    pub(super) fn contend(&self, inode: u64) {
        let is_news = lock(&self.contended).note(inode);
        if is_news && self.tell_now(Change::Inode(inode)) {
            lock(&self.contended).note_told(inode);
        }
    }

    /// Whether the kernel believes nothing of a file.
    pub(super) fn is_doubted(&self, inode: u64) -> bool {
        self.is_shared && lock(&self.contended).is_doubted(inode)
    }

    /// Whether others have wanted a file lately, so that nothing may rest on what the kernel has of it.
    pub(super) fn is_contended(&self, inode: u64) -> bool {
        self.is_shared && lock(&self.contended).is_recent(inode)
    }

    /// Whether the kernel may believe what it is told of an inode, which was found out when so much had been
    /// forgotten.
    pub(super) fn may_be_believed(&self, inode: u64, forgotten: u64) -> bool {
        let is_fresh = self.forgotten() == forgotten;
        !self.is_shared || lock(&self.contended).may_be_believed(inode, is_fresh)
    }

    /// Returns soon, and before that if nobody was answered about a file a moment ago.
    pub(super) fn await_quiet(&self, inode: u64) {
        let since = time::now();
        loop {
            let again = lock(&self.contended).await_quiet(inode, since, time::now());
            let Some(again) = again else { return };
            time::wait_until(again);
        }
    }

    /// Time has passed.
    pub(super) fn tidy_contended(&self) {
        let (pages, untold) = lock(&self.contended).grow_older();
        pages.into_iter().for_each(|inode| self.tell(Change::Bytes(inode)));
        // It may have been on its way to the kernel.
        untold.into_iter().for_each(|inode| self.tell(Change::Inode(inode)));
    }
}
