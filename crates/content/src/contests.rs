//! Files that other machines want too, or have wanted a short while ago.
//!
//! The kernel numbers what it hears of an inode. If it is told to forget something of one that it has just asked
//! about, it drops the answer, and whoever reads through its cache sees the file up to the old end. So of a file
//! that others want it may believe nothing for a while, and then needs not be told to forget; its pages are taken
//! away while nobody asks; and whoever opens it reads past the cache, where no size is looked at.

use std::collections::BTreeMap;

use base::{Duration, Instant};

/// So many are remembered; of more, those that were left alone for longest are forgotten. Of these the kernel has
/// to be told again what to forget, and they are opened as if nobody else had wanted them.
pub const CONTESTS_MAX: usize = 4_096;
/// Rounds of tidying, of about a second each, after which a file is like any other again.
const AGE_MAX: u32 = 60;
/// Pages go when nobody has asked about the file for so long.
const QUIET: Duration = Duration::from_secs(1);

/// Somebody was answered so short a while ago that they may not have heard it; and for so long that is waited for, and
/// looked at this often.
const HEARS: Duration = Duration::from_millis(1);
const HEARS_PATIENCE: Duration = Duration::from_millis(20);
const HEARS_PAUSE: Duration = Duration::from_micros(200);

/// A file that others want.
#[derive(Debug, Default)]
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

/// Files that others want, or have wanted a short while ago. At most [`CONTESTS_MAX`].
#[derive(Debug, Default)]
pub struct Contests {
    contests: BTreeMap<u64, Contest>,
    /// What is just being asked about, once for each who asks. At most as many as there are threads that serve.
    asking: Vec<u64>,
}

impl Contests {
    fn is_quiet(&self, inode: u64, now: Instant, quiet: Duration) -> bool {
        let answered = self.contests.get(&inode).and_then(|contest| contest.answered);
        !self.asking.contains(&inode)
            && answered.is_none_or(|answered| now.since(answered) >= quiet)
    }

    /// Others want a file; whether the kernel may believe something of it, and has to be told.
    pub fn note(&mut self, inode: u64) -> bool {
        if !self.contests.contains_key(&inode) && self.contests.len() >= CONTESTS_MAX {
            let oldest = self.contests.iter().max_by_key(|(_, contest)| contest.age);
            if let Some(oldest) = oldest.map(|(inode, _)| *inode) {
                self.contests.remove(&oldest);
            }
        }
        let contest = self.contests.entry(inode).or_default();
        contest.age = 0;
        !contest.is_told
    }

    /// The kernel has heard that nothing of it may be believed.
    pub fn note_told(&mut self, inode: u64) {
        if let Some(contest) = self.contests.get_mut(&inode) {
            contest.is_told = true;
        }
    }

    /// Whether others have wanted it lately.
    pub fn is_recent(&self, inode: u64) -> bool {
        self.contests.get(&inode).is_some_and(|contest| contest.age <= AGE_MAX)
    }

    /// Whether the kernel may believe what it is told now. `is_fresh` says that nothing was forgotten since that
    /// was found out: then a file that others have left alone is like any other from now on.
    pub fn may_be_believed(&mut self, inode: u64, is_fresh: bool) -> bool {
        match self.contests.get(&inode) {
            None => true,
            Some(contest) if is_fresh && contest.age > AGE_MAX && !contest.owes_pages => {
                self.contests.remove(&inode);
                true
            }
            Some(_) => false,
        }
    }

    /// Whether pages may go now; else they are owed. Of what others have left alone the kernel has heard the
    /// present size long ago, so it may drop an answer that says the same.
    pub fn may_take_pages(&mut self, inode: u64, now: Instant) -> bool {
        let is_quiet = self.is_quiet(inode, now, QUIET);
        let Some(contest) = self.contests.get_mut(&inode) else { return true };
        contest.owes_pages = !is_quiet && contest.age <= AGE_MAX;
        !contest.owes_pages
    }

    /// Somebody asks about a file.
    pub fn begin(&mut self, inode: u64) {
        self.asking.push(inode);
    }

    /// And is answered.
    pub fn end(&mut self, inode: u64, now: Instant) {
        if let Some(at) = self.asking.iter().position(|asking| *asking == inode) {
            self.asking.swap_remove(at);
        }
        if let Some(contest) = self.contests.get_mut(&inode) {
            contest.answered = Some(now);
        }
    }

    /// The kernel does not know it any more.
    pub fn remove(&mut self, inode: u64) {
        self.contests.remove(&inode);
    }

    /// A round has passed: which pages are owed, and of which files the kernel did not know when it was told.
    pub fn grow_older(&mut self) -> (Vec<u64>, Vec<u64>) {
        let (mut pages, mut untold) = (Vec::new(), Vec::new());
        for (inode, contest) in &mut self.contests {
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

    /// Whether the kernel believes nothing of a file.
    pub fn is_doubted(&self, inode: u64) -> bool {
        self.contests.contains_key(&inode)
    }

    /// Somebody waits since then until nobody was answered about a file a moment ago: when to look again, if they are
    /// to go on waiting.
    pub fn await_quiet(&self, inode: u64, since: Instant, now: Instant) -> Option<Instant> {
        let is_patient = now.since(since) < HEARS_PATIENCE;
        (is_patient && !self.is_quiet(inode, now, HEARS)).then(|| now + HEARS_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age(contended: &mut Contests, rounds: u32) {
        (0..rounds).for_each(|_| _ = contended.grow_older());
    }

    #[test]
    fn the_kernel_is_told_once_to_forget_and_then_believes_nothing_until_others_leave_it_alone() {
        let mut contended = Contests::default();
        assert!(contended.may_be_believed(7, true) && !contended.is_recent(7));
        assert!(contended.note(7));
        contended.note_told(7);
        assert!(!contended.note(7) && contended.is_recent(7));
        age(&mut contended, AGE_MAX);
        assert!(!contended.may_be_believed(7, true) && contended.is_recent(7));
        age(&mut contended, 1);
        assert!(!contended.is_recent(7));
        assert!(!contended.may_be_believed(7, false), "what is told may be old");
        assert!(!contended.note(7), "it was not told anything to be believed");
        age(&mut contended, AGE_MAX + 1);
        assert!(contended.may_be_believed(7, true));
        assert!(contended.note(7), "it was");
    }

    #[test]
    fn whom_the_kernel_did_not_know_it_is_told_of_again() {
        let mut contended = Contests::default();
        assert!(contended.note(7) && contended.note(7));
        assert_eq!(contended.grow_older().1, [7]);
        assert!(contended.grow_older().1.is_empty());
    }

    #[test]
    fn so_many_are_remembered_and_those_left_alone_for_longest_go_first() {
        let mut contended = Contests::default();
        contended.note(0);
        contended.note(1);
        age(&mut contended, 1);
        contended.note(0);
        (2..=CONTESTS_MAX as u64).for_each(|inode| _ = contended.note(inode));
        assert!(contended.is_recent(0) && !contended.is_recent(1));
        assert_eq!(contended.contests.len(), CONTESTS_MAX);
    }

    #[test]
    fn pages_go_while_nobody_asks() {
        let (mut contended, now) = (Contests::default(), Instant::from_secs(100));
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
    fn whoever_waits_for_quiet_does_not_wait_for_long() {
        let (mut contended, start) = (Contests::default(), Instant::from_secs(100));
        contended.note(7);
        assert_eq!(contended.await_quiet(7, start, start), None);
        contended.begin(7);
        assert_eq!(contended.await_quiet(7, start, start), Some(start + HEARS_PAUSE));
        contended.end(7, start);
        assert_eq!(contended.await_quiet(7, start, start + HEARS), None);
        contended.begin(7);
        assert_eq!(contended.await_quiet(7, start, start + HEARS_PATIENCE), None);
    }

    #[test]
    fn pages_that_are_owed_go_in_the_end_even_if_somebody_always_asks() {
        let (mut contended, now) = (Contests::default(), Instant::from_secs(100));
        contended.note(7);
        contended.begin(7);
        assert!(!contended.may_take_pages(7, now));
        age(&mut contended, AGE_MAX + 1);
        assert!(!contended.may_be_believed(7, true), "not before");
        assert!(contended.may_take_pages(7, now));
        assert!(contended.may_be_believed(7, true));
    }
}
