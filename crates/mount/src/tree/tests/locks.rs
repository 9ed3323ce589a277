//! Locks: who has some, who is in the way, and when they go.

use super::*;
use crate::front::{Obstacle, Wish};

/// All bytes, as the kernel says it.
const ALL: (u64, u64) = (0, i64::MAX as u64);

/// What an owner wants; its process has the same number.
fn wish(inode: u64, handle: u64, owner: u64, range: (u64, u64), hold: Option<bool>) -> Wish {
    let (pid, who, (start, end)) = (owner as u32, (0, 0), range);
    Wish { inode, handle, owner, pid, who, start, end, hold }
}

#[test]
fn a_lock_keeps_other_owners_out_until_it_is_given_up() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    let lock = |owner, range, hold| world.tree.lock(&wish(inode, handle, owner, range, hold));
    lock(1, (0, 9), Some(true)).unwrap();
    assert_eq!(lock(2, (5, 20), Some(false)), Err(Errno::AGAIN));
    lock(2, (10, 20), Some(false)).unwrap();
    lock(1, (0, 9), None).unwrap();
    lock(2, (5, 20), Some(true)).unwrap();
    assert_eq!(lock(1, ALL, Some(false)), Err(Errno::AGAIN));
}

#[test]
fn who_is_in_the_way_is_told_with_its_process() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    let obstacle = |owner, range, is_exclusive| {
        world.tree.obstacle(&wish(inode, handle, owner, range, Some(is_exclusive))).unwrap()
    };
    assert_eq!(obstacle(1, ALL, true), None);
    world.tree.lock(&wish(inode, handle, 7, (3, 4), Some(false))).unwrap();
    let seven = Obstacle { start: 3, end: 4, is_exclusive: false, owner: Some(7), pid: 7 };
    assert_eq!(obstacle(1, ALL, true), Some(seven));
    assert_eq!(obstacle(1, ALL, false), None);
    assert_eq!(obstacle(7, ALL, true), None);
}

#[test]
fn only_whoever_has_locks_is_asked_for_them_at_a_close() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    assert!(!world.tree.has_locks(inode, 1));
    world.tree.lock(&wish(inode, handle, 1, (0, 9), Some(true))).unwrap();
    assert_eq!(world.tree.lock(&wish(inode, handle, 2, ALL, Some(true))), Err(Errno::AGAIN));
    assert!(world.tree.has_locks(inode, 1) && !world.tree.has_locks(inode, 2));
    // What is left of a part may still be something.
    world.tree.lock(&wish(inode, handle, 1, (0, 4), None)).unwrap();
    assert!(world.tree.has_locks(inode, 1));
    world.tree.unlock(inode, 1).unwrap();
    assert!(!world.tree.has_locks(inode, 1));
    world.tree.lock(&wish(inode, handle, 2, ALL, Some(true))).unwrap();
    world.tree.lock(&wish(inode, handle, 2, ALL, None)).unwrap();
    assert!(!world.tree.has_locks(inode, 2));
}

#[test]
fn locks_go_with_the_handle_through_which_they_were_taken() {
    let world = World::new();
    let (inode, first) = world.create("a");
    let second = world.open(inode, READS).handle;
    world.tree.lock(&wish(inode, first, 1, (0, 9), Some(true))).unwrap();
    world.tree.lock(&wish(inode, second, 2, (10, 19), Some(true))).unwrap();
    assert!(world.tree.has_locks_through(inode, first));
    world.tree.unlock_through(inode, first);
    world.tree.release(inode, first);
    assert!(!world.tree.has_locks_through(inode, first));
    world.tree.lock(&wish(inode, second, 3, (0, 9), Some(true))).unwrap();
    assert_eq!(world.tree.lock(&wish(inode, second, 3, ALL, Some(true))), Err(Errno::AGAIN));
}

#[test]
fn a_file_that_nobody_has_open_can_not_be_locked_and_keeps_no_lock() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    world.tree.lock(&wish(inode, handle, 1, ALL, Some(true))).unwrap();
    world.tree.unlock_through(inode, handle);
    world.tree.release(inode, handle);
    assert_eq!(world.tree.lock(&wish(inode, handle, 1, ALL, Some(true))), Err(Errno::IO));
    assert!(!world.tree.has_locks(inode, 1));
    let handle = world.open(inode, READS).handle;
    world.tree.lock(&wish(inode, handle, 2, ALL, Some(true))).unwrap();
}
