//! Waiting for locks, in a time of our own and with a table that is no group's.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::mpsc::{Receiver, channel},
};

use super::*;
use crate::locking::waits::WAITERS_MAX;

/// Locks on whole files, and what is known of threads; shared by several lanes.
#[derive(Clone, Default)]
struct Table(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    /// By inode and owner: whether exclusive, and through which handle.
    held: BTreeMap<(u64, u64), (bool, u64)>,
    interrupted: BTreeSet<u32>,
    unseen: BTreeSet<u32>,
    tries: u32,
}

impl State {
    fn conflict(&self, wish: &Wish) -> Option<(u64, bool)> {
        let others = self
            .held
            .iter()
            .filter(|((inode, owner), _)| *inode == wish.inode && *owner != wish.owner);
        let mut conflicts =
            others.filter(|(_, (is_exclusive, _))| *is_exclusive || wish.hold == Some(true));
        conflicts.next().map(|((_, owner), (is_exclusive, _))| (*owner, *is_exclusive))
    }
}

impl Keeper for Table {
    fn lock(&self, wish: &Wish) -> Result<(), Errno> {
        let mut state = self.0.borrow_mut();
        state.tries += 1;
        let key = (wish.inode, wish.owner);
        let Some(is_exclusive) = wish.hold else {
            state.held.remove(&key);
            return Ok(());
        };
        if state.conflict(wish).is_some() {
            return Err(Errno::AGAIN);
        }
        state.held.insert(key, (is_exclusive, wish.handle));
        Ok(())
    }

    fn obstacle(&self, wish: &Wish) -> Result<Option<Obstacle>, Errno> {
        let conflict = self.0.borrow().conflict(wish);
        Ok(conflict.map(|(owner, is_exclusive)| {
            // Owners from 100 on are on another machine.
            let owner = (owner < 100).then_some(owner);
            Obstacle { start: 0, end: 9, is_exclusive, owner, pid: 0 }
        }))
    }

    fn unlock(&self, inode: u64, owner: u64) -> Result<(), Errno> {
        self.0.borrow_mut().held.remove(&(inode, owner));
        Ok(())
    }

    fn unlock_through(&self, inode: u64, handle: u64) {
        let is_kept =
            |key: &(u64, u64), value: &mut (bool, u64)| (key.0, value.1) != (inode, handle);
        self.0.borrow_mut().held.retain(is_kept);
    }

    fn plight(&self, thread: u32) -> Plight {
        let state = self.0.borrow();
        match thread {
            thread if state.interrupted.contains(&thread) => Plight::Interrupted,
            thread if state.unseen.contains(&thread) => Plight::Unseen,
            _ => Plight::Waits,
        }
    }
}

/// A lane, and what time it is there. An owner has the handle and the thread of its number.
struct World {
    table: Table,
    lane: Lane<Table>,
    now: Instant,
}

type Told = Receiver<Result<(), Errno>>;

impl World {
    fn new() -> World {
        let table = Table::default();
        let lane = Lane::new(table.clone(), Arc::new(Waits::default()));
        World { table, lane, now: Instant::from_secs(1_000) }
    }

    fn take(&mut self, inode: u64, owner: u64, hold: Option<bool>, waits: bool) -> Told {
        let (tell, told) = channel();
        let (start, end, pid) = (0, 9, owner as u32);
        let who = (0, 0);
        let wish = Wish { inode, handle: owner, owner, pid, who, start, end, hold };
        let answer: Answer = Box::new(move |result| tell.send(result).unwrap());
        self.lane.on_job(self.now, Job::Take { wish, waiter: waits.then_some(pid), answer });
        told
    }

    fn wait(&mut self, inode: u64, owner: u64) -> Told {
        self.take(inode, owner, Some(true), true)
    }

    fn has(&self, inode: u64, owner: u64) -> bool {
        self.table.0.borrow().held.contains_key(&(inode, owner))
    }

    /// Time goes by, from one deadline to the next.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.lane.wake_at().filter(|at| *at <= end) {
            assert!(at > self.now, "time goes on");
            self.now = at;
            self.lane.tick(at);
        }
        self.now = end;
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn who_does_not_wait_is_told_at_once() {
    let mut world = World::new();
    assert_eq!(world.take(1, 1, Some(true), false).try_recv(), Ok(Ok(())));
    assert_eq!(world.take(1, 2, Some(false), false).try_recv(), Ok(Err(Errno::AGAIN)));
    assert_eq!(world.take(1, 1, None, true).try_recv(), Ok(Ok(())));
    assert!(world.lane.wake_at().is_none());
}

#[test]
fn whoever_waits_first_has_it_first_as_soon_as_it_is_given_up() {
    let mut world = World::new();
    let _ = world.wait(1, 1);
    let (second, third) = (world.wait(1, 2), world.wait(1, 3));
    world.pass(SECOND);
    assert!(second.try_recv().is_err() && third.try_recv().is_err());
    assert_eq!(world.take(1, 1, None, false).try_recv(), Ok(Ok(())));
    assert_eq!(second.try_recv(), Ok(Ok(())));
    // Whoever gives it up and wants it again comes after those who wait.
    let first = world.wait(1, 1);
    world.pass(SECOND);
    assert!(first.try_recv().is_err() && third.try_recv().is_err());
    let (tell, told) = channel();
    let answer: Answer = Box::new(move |result| tell.send(result).unwrap());
    world.lane.on_job(world.now, Job::Unlock { inode: 1, owner: 2, answer });
    assert_eq!((told.try_recv(), third.try_recv()), (Ok(Ok(())), Ok(Ok(()))));
    let answer: Answer = Box::new(|_| {});
    world.lane.on_job(world.now, Job::UnlockThrough { inode: 1, handle: 3, answer });
    assert_eq!(first.try_recv(), Ok(Ok(())));
}

#[test]
fn all_who_wait_to_share_a_lock_have_it_when_it_is_shared() {
    let mut world = World::new();
    let _ = world.wait(1, 1);
    let others = [2, 3].map(|owner| world.take(1, owner, Some(false), true));
    assert_eq!(world.take(1, 1, Some(false), false).try_recv(), Ok(Ok(())));
    assert_eq!(others.map(|told| told.try_recv()), [Ok(Ok(())), Ok(Ok(()))]);
}

#[test]
fn what_another_machine_gives_up_is_noticed_soon_and_rarely_looked_for() {
    let mut world = World::new();
    world.table.0.borrow_mut().held.insert((1, 100), (true, 0));
    let told = world.wait(1, 1);
    world.pass(10 * SECOND);
    assert!(told.try_recv().is_err());
    let tries = world.table.0.borrow().tries;
    assert!((50..60).contains(&tries), "{tries} in ten seconds");
    world.table.0.borrow_mut().held.clear();
    world.pass(PAUSE_MAX);
    assert_eq!(told.try_recv(), Ok(Ok(())));
}

#[test]
fn whoever_is_interrupted_is_told_soon_and_gets_nothing() {
    let mut world = World::new();
    let _ = world.wait(1, 1);
    let told = world.wait(1, 2);
    world.pass(SECOND);
    world.table.0.borrow_mut().interrupted.insert(2);
    world.pass(PAUSE_MAX);
    assert_eq!(told.try_recv(), Ok(Err(Errno::INTR)));
    let _ = world.take(1, 1, None, false);
    world.pass(SECOND);
    assert!(!world.has(1, 2) && world.lane.wake_at().is_none());
}

#[test]
fn whoever_can_not_be_seen_does_not_wait_for_ever() {
    let mut world = World::new();
    let _ = world.wait(1, 1);
    world.table.0.borrow_mut().unseen.insert(2);
    let told = world.wait(1, 2);
    world.pass(UNSEEN_MAX - SECOND);
    assert!(told.try_recv().is_err());
    world.pass(2 * SECOND);
    assert_eq!(told.try_recv(), Ok(Err(Errno::NOLCK)));
}

#[test]
fn whoever_closes_a_circle_is_told_even_if_it_goes_through_several_lanes() {
    let mut world = World::new();
    let mut other = Lane::new(world.table.clone(), Arc::clone(&world.lane.waits));
    let _ = (world.wait(1, 1), world.wait(2, 2));
    let first = world.wait(2, 1);
    std::mem::swap(&mut world.lane, &mut other);
    assert_eq!(world.wait(1, 2).try_recv(), Ok(Err(Errno::DEADLK)));
    assert!(first.try_recv().is_err());
    std::mem::swap(&mut world.lane, &mut other);
    let _ = world.take(2, 2, None, false);
    assert_eq!(first.try_recv(), Ok(Ok(())));
    // Nobody waits for the second any more, who may wait now.
    let second = world.wait(1, 2);
    world.pass(SECOND);
    assert!(second.try_recv().is_err());
}

#[test]
fn two_who_share_a_lock_and_both_want_it_alone_do_not_wait_for_each_other() {
    let mut world = World::new();
    let _ = [1, 2].map(|owner| world.take(1, owner, Some(false), false));
    let first = world.wait(1, 1);
    assert_eq!(world.wait(1, 2).try_recv(), Ok(Err(Errno::DEADLK)));
    assert!(first.try_recv().is_err());
    let _ = world.take(1, 2, None, false);
    assert_eq!(first.try_recv(), Ok(Ok(())));
}

#[test]
fn beyond_so_many_nobody_may_wait() {
    let mut world = World::new();
    let _ = world.wait(1, 100);
    let waiting: Vec<Told> =
        (1_000..).take(WAITERS_MAX).map(|owner| world.wait(1, owner)).collect();
    assert!(waiting.iter().all(|told| told.try_recv().is_err()));
    assert_eq!(world.wait(1, 5).try_recv(), Ok(Err(Errno::NOLCK)));
    world.table.0.borrow_mut().interrupted.insert(1_007);
    world.pass(SECOND);
    let told = world.wait(1, 5);
    assert!(told.try_recv().is_err());
}
