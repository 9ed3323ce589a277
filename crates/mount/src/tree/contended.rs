//! Files that other machines want too, or have wanted a short while ago.
//!
//! The kernel numbers what it hears of an inode. If it is told to forget something of one that it has just asked
//! about, it drops the answer, and whoever reads through its cache sees the file up to the old end. So of a file
//! that others want it may believe nothing for a while, and then needs not be told to forget; its pages are taken
//! away while nobody asks; and whoever opens it reads past the cache, where no size is looked at.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::front::Change;

use super::{Tree, lock};

/// So many are remembered; of more, those that were left alone for longest are forgotten. Of these the kernel has
/// to be told again what to forget, and they are opened as if nobody else had wanted them.
const CONTESTS_MAX: usize = 4_096;
/// Rounds of tidying, of about a second each, after which a file is like any other again.
const AGE_MAX: u32 = 60;
/// Pages go when nobody has asked about the file for so long.
const QUIET: Duration = Duration::from_secs(1);

/// A file that others want.
#[derive(Default)]
struct Contest {
    /// Since when, in rounds.
    age: u32,
    /// The kernel has heard that it must not believe anything of it, and was told nothing to be believed since.
    is_told: bool,
    /// Its pages could not be taken away yet.
    owes_pages: bool,
    /// When somebody was last answered.
    answered: Option<Instant>,
}

#[derive(Default)]
struct Inner {
    contests: BTreeMap<u64, Contest>,
    /// What is just being asked about, once for each who asks. At most as many as there are threads that serve.
    asking: Vec<u64>,
}

impl Inner {
    fn is_quiet(&self, inode: u64, now: Instant, quiet: Duration) -> bool {
        let answered = self.contests.get(&inode).and_then(|contest| contest.answered);
        !self.asking.contains(&inode)
            && answered.is_none_or(|answered| now.saturating_duration_since(answered) >= quiet)
    }
}

/// At most [`CONTESTS_MAX`].
#[derive(Default)]
pub(super) struct Contended(Mutex<Inner>);

impl Contended {
    /// Others want a file; whether the kernel may believe something of it, and has to be told.
    fn note(&self, inode: u64) -> bool {
        let mut inner = lock(&self.0);
        if !inner.contests.contains_key(&inode) && inner.contests.len() >= CONTESTS_MAX {
            let oldest = inner.contests.iter().max_by_key(|(_, contest)| contest.age);
            if let Some(oldest) = oldest.map(|(inode, _)| *inode) {
                inner.contests.remove(&oldest);
            }
        }
        let contest = inner.contests.entry(inode).or_default();
        contest.age = 0;
        !contest.is_told
    }

    /// The kernel has heard that nothing of it may be believed.
    fn note_told(&self, inode: u64) {
        if let Some(contest) = lock(&self.0).contests.get_mut(&inode) {
            contest.is_told = true;
        }
    }

    /// Whether others have wanted it lately.
    fn is_recent(&self, inode: u64) -> bool {
        lock(&self.0).contests.get(&inode).is_some_and(|contest| contest.age <= AGE_MAX)
    }

    /// Whether the kernel may believe what it is told now. `is_fresh` says that nothing was forgotten since that
    /// was found out: then a file that others have left alone is like any other from now on.
    fn may_be_believed(&self, inode: u64, is_fresh: bool) -> bool {
        let mut inner = lock(&self.0);
        match inner.contests.get(&inode) {
            None => true,
            Some(contest) if is_fresh && contest.age > AGE_MAX && !contest.owes_pages => {
                inner.contests.remove(&inode);
                true
            }
            Some(_) => false,
        }
    }

    /// Whether pages may go now; else they are owed. Of what others have left alone the kernel has heard the
    /// present size long ago, so it may drop an answer that says the same.
    fn may_take_pages(&self, inode: u64, now: Instant) -> bool {
        let mut inner = lock(&self.0);
        let is_quiet = inner.is_quiet(inode, now, QUIET);
        let Some(contest) = inner.contests.get_mut(&inode) else { return true };
        contest.owes_pages = !is_quiet && contest.age <= AGE_MAX;
        !contest.owes_pages
    }

    fn begin(&self, inode: u64) {
        lock(&self.0).asking.push(inode);
    }

    fn end(&self, inode: u64, now: Instant) {
        let mut inner = lock(&self.0);
        if let Some(at) = inner.asking.iter().position(|asking| *asking == inode) {
            inner.asking.swap_remove(at);
        }
        if let Some(contest) = inner.contests.get_mut(&inode) {
            contest.answered = Some(now);
        }
    }

    /// The kernel does not know it any more.
    pub(super) fn remove(&self, inode: u64) {
        lock(&self.0).contests.remove(&inode);
    }

    /// A round has passed: which pages are owed, and of which files the kernel did not know when it was told.
    fn grow_older(&self) -> (Vec<u64>, Vec<u64>) {
        let (mut pages, mut untold) = (Vec::new(), Vec::new());
        for (inode, contest) in &mut lock(&self.0).contests {
            contest.age = contest.age.saturating_add(1);
            if contest.owes_pages {
                pages.push(*inode);
            }
            if !std::mem::replace(&mut contest.is_told, true) {
                untold.push(*inode);
            }
        }
        (pages, untold)
    }
}

/// Somebody is being answered about a file.
pub struct Asking<'a> {
    tree: &'a Tree,
    inode: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.tree.contended.end(self.inode, Instant::now());
    }
}

impl Tree {
    /// Notes that the kernel asks for the size of a file, or for pages of it, until it is answered.
    pub fn asking(&self, inode: u64) -> Option<Asking<'_>> {
        self.is_shared.then(|| {
            self.contended.begin(inode);
            Asking { tree: self, inode }
        })
    }

    /// Whether pages of an inode may be taken away now. If not, that is asked again later.
    pub fn may_take_pages(&self, inode: u64) -> bool {
        self.contended.may_take_pages(inode, Instant::now())
    }

    /// Others want a file.
    pub(super) fn contend(&self, inode: u64) {
        if self.contended.note(inode) && self.tell_now(Change::Inode(inode)) {
            self.contended.note_told(inode);
        }
    }

    /// Whether the kernel believes nothing of a file.
    pub(super) fn is_doubted(&self, inode: u64) -> bool {
        self.is_shared && lock(&self.contended.0).contests.contains_key(&inode)
    }

    /// Whether others have wanted a file lately, so that nothing may rest on what the kernel has of it.
    pub(super) fn is_contended(&self, inode: u64) -> bool {
        self.is_shared && self.contended.is_recent(inode)
    }

    /// Whether the kernel may believe what it is told of an inode, which was found out when so much had been
    /// forgotten.
    pub(super) fn may_be_believed(&self, inode: u64, forgotten: u64) -> bool {
        !self.is_shared || self.contended.may_be_believed(inode, self.forgotten() == forgotten)
    }

    /// Returns soon, and before that if nobody was answered about a file a moment ago.
    pub(super) fn await_quiet(&self, inode: u64) {
        /// As long as whoever was answered may take to hear it.
        const HEARS: Duration = Duration::from_millis(1);
        const PATIENCE: Duration = Duration::from_millis(20);
        const PAUSE: Duration = Duration::from_micros(200);
        let start = Instant::now();
        while start.elapsed() < PATIENCE
            && !lock(&self.contended.0).is_quiet(inode, Instant::now(), HEARS)
        {
            std::thread::park_timeout(PAUSE);
        }
    }

    /// Time has passed.
    pub(super) fn tidy_contended(&self) {
        let (pages, untold) = self.contended.grow_older();
        pages.into_iter().for_each(|inode| self.tell(Change::Bytes(inode)));
        // It may have been on its way to the kernel.
        untold.into_iter().for_each(|inode| self.tell(Change::Inode(inode)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age(contended: &Contended, rounds: u32) {
        (0..rounds).for_each(|_| _ = contended.grow_older());
    }

    #[test]
    fn the_kernel_is_told_once_to_forget_and_then_believes_nothing_until_others_leave_it_alone() {
        let contended = Contended::default();
        assert!(contended.may_be_believed(7, true) && !contended.is_recent(7));
        assert!(contended.note(7));
        contended.note_told(7);
        assert!(!contended.note(7) && contended.is_recent(7));
        age(&contended, AGE_MAX);
        assert!(!contended.may_be_believed(7, true) && contended.is_recent(7));
        age(&contended, 1);
        assert!(!contended.is_recent(7));
        assert!(!contended.may_be_believed(7, false), "what is told may be old");
        assert!(!contended.note(7), "it was not told anything to be believed");
        age(&contended, AGE_MAX + 1);
        assert!(contended.may_be_believed(7, true));
        assert!(contended.note(7), "it was");
    }

    #[test]
    fn whom_the_kernel_did_not_know_it_is_told_of_again() {
        let contended = Contended::default();
        assert!(contended.note(7) && contended.note(7));
        assert_eq!(contended.grow_older().1, [7]);
        assert!(contended.grow_older().1.is_empty());
    }

    #[test]
    fn so_many_are_remembered_and_those_left_alone_for_longest_go_first() {
        let contended = Contended::default();
        contended.note(0);
        contended.note(1);
        age(&contended, 1);
        contended.note(0);
        (2..=CONTESTS_MAX as u64).for_each(|inode| _ = contended.note(inode));
        assert!(contended.is_recent(0) && !contended.is_recent(1));
        assert_eq!(lock(&contended.0).contests.len(), CONTESTS_MAX);
    }

    #[test]
    fn pages_go_while_nobody_asks() {
        let (contended, now) = (Contended::default(), Instant::now());
        contended.begin(7);
        assert!(contended.may_take_pages(7, now), "nobody else wants it");
        contended.note(7);
        assert!(!contended.may_take_pages(7, now));
        contended.end(7, now);
        assert!(!contended.may_take_pages(7, now));
        assert_eq!(contended.grow_older().0, [7]);
        assert!(contended.may_take_pages(7, now + QUIET));
        assert!(contended.grow_older().0.is_empty());
    }

    #[test]
    fn pages_that_are_owed_go_in_the_end_even_if_somebody_always_asks() {
        let (contended, now) = (Contended::default(), Instant::now());
        contended.note(7);
        contended.begin(7);
        assert!(!contended.may_take_pages(7, now));
        age(&contended, AGE_MAX + 1);
        assert!(!contended.may_be_believed(7, true), "not before");
        assert!(contended.may_take_pages(7, now));
        assert!(contended.may_be_believed(7, true));
    }
}
