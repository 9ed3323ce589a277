//! Files that other machines want too.

use std::{sync::mpsc, time::Duration};

use super::*;

/// How a file is opened now.
fn is_direct(world: &World, inode: u64, purpose: Purpose) -> bool {
    let opened = world.open(inode, purpose);
    world.tree.release(inode, opened.handle);
    matches!(opened.way, Way::Direct)
}

/// How long the kernel may believe what it is told of a file now.
fn validity(world: &World, inode: u64) -> Duration {
    world.tree.tell_known(inode, world.tree.forgotten(), |validity| validity)
}

fn rounds(world: &World, count: usize) {
    (0..count).for_each(|_| world.tree.tidy());
}

#[test]
fn whoever_opens_what_others_have_wanted_within_a_minute_reads_past_the_cache() {
    let world = World::shared();
    world.tree.allow_direct();
    let (inode, other) = (world.file("a", b"abc"), world.file("b", b"abc"));
    let before = world.open(inode, READS);
    assert!(matches!(before.way, Way::Cached { .. }));
    world.tree.contend(inode);
    assert!([READS, WRITES].into_iter().all(|purpose| is_direct(&world, inode, purpose)));
    assert!(!is_direct(&world, other, READS));
    rounds(&world, 60);
    world.tree.contend(inode);
    rounds(&world, 60);
    assert!(is_direct(&world, inode, READS));
    rounds(&world, 1);
    assert!(!is_direct(&world, inode, READS));
    world.tree.release(inode, before.handle);
}

#[test]
fn where_what_goes_past_the_cache_can_t_be_mapped_nothing_does() {
    let world = World::shared();
    let inode = world.file("a", b"abc");
    world.tree.contend(inode);
    assert!(!is_direct(&world, inode, READS));
}

#[test]
fn the_kernel_is_told_once_of_what_others_want_and_believes_nothing_of_it_until_they_leave_it_alone()
 {
    let world = World::shared();
    let inode = world.file("a", b"abc");
    let (told, heard) = mpsc::channel();
    world.tree.tell_forgotten(move |_| told.send(()).is_ok());
    assert!(validity(&world, inode) > Duration::ZERO);
    (0..3).for_each(|_| world.tree.contend(inode));
    assert_eq!((heard.try_iter().count(), validity(&world, inode)), (1, Duration::ZERO));
    rounds(&world, 61);
    assert!(validity(&world, inode) > Duration::ZERO);
    world.tree.contend(inode);
    assert_eq!((heard.try_iter().count(), validity(&world, inode)), (1, Duration::ZERO));
}

#[test]
fn pages_stay_while_somebody_asks_about_what_others_want() {
    let world = World::shared();
    let inode = world.file("a", b"abc");
    let asking = world.tree.asking(inode);
    assert!(world.tree.may_take_pages(inode));
    world.tree.contend(inode);
    assert!(!world.tree.may_take_pages(inode));
    drop(asking);
    assert!(!world.tree.may_take_pages(inode), "who was answered may not have heard yet");
}

#[test]
fn only_what_is_in_the_cache_or_mapped_may_be_written_by_way_of_memory() {
    let world = World::shared();
    world.tree.allow_direct();
    let inode = world.file("a", b"abc");
    world.tree.contend(inode);
    let opened = world.open(inode, WRITES);
    let open = world.tree.opens.get(inode).unwrap();
    assert!(matches!(opened.way, Way::Direct) && !open.may_be_mapped());
    world.bytes(inode);
    assert!(!open.may_be_mapped());
    world.tree.read_pages(inode, 0, 10, |_| ()).unwrap();
    assert!(open.may_be_mapped());
    world.tree.release(inode, opened.handle);
    assert!(!open.may_be_mapped(), "closed");
}

#[test]
fn what_others_have_given_privileges_loses_them_when_it_is_written_past_the_cache() {
    let world = World::shared();
    world.tree.allow_direct();
    let inode = world.file("a", b"abc");
    let name = b"security.capability";
    world.tree.setxattr(inode, name, b"all", When::Always, &ME).unwrap();
    world.tree.contend(inode);
    let opened = world.open(inode, WRITES);
    world.tree.write(inode, 0, b"d", Manner::default()).unwrap();
    assert_eq!(world.tree.getxattr(inode, name), Err(Errno::NODATA));
    world.tree.release(inode, opened.handle);
}
