//! Names, attributes and listings.

use super::*;

fn names(world: &World, inode: u64, handle: u64, cookie: u64, most: usize) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    world
        .tree
        .readdir(inode, handle, cookie, &mut |listed| {
            if all.len() == most {
                return true;
            }
            all.push((String::from_utf8_lossy(listed.name).into_owned(), listed.cookie));
            false
        })
        .unwrap();
    all
}

#[test]
fn what_the_kernel_has_forgotten_is_found_by_its_number_until_it_is_gone() {
    let world = World::shared();
    let made = world.tree.mkdir(ROOT, b"d", 0o755, &ME).unwrap().inode;
    let inode = world.tree.mknod(made, b"a", 0o644, &ME).unwrap().inode;
    let handles = |world: &World, inode: u64| {
        let found = [&b"."[..], b".."].map(|name| world.tree.lookup(inode, name, 0));
        found.map(|found| found.map(|found| found.inode))
    };
    assert_eq!(handles(&world, inode), [Ok(inode), Ok(made)]);
    [inode, made].into_iter().for_each(|inode| world.tree.forget(inode, 3));
    assert_eq!(world.tree.getattr(inode), Err(Errno::STALE), "it is forgotten");
    // The group has hardly heard of it, and no store.
    assert_eq!(handles(&world, inode), [Ok(inode), Ok(made)]);
    assert_eq!(handles(&world, made), [Ok(made), Ok(ROOT)]);
    assert_eq!(handles(&world, ROOT), [Ok(ROOT), Ok(ROOT)]);
    let world = world.restart();
    assert_eq!(handles(&world, inode), [Ok(inode), Ok(made)]);
    world.tree.unlink(made, b"a", &ME).unwrap();
    world.tree.forget(inode, 1);
    let world = world.restart();
    assert_eq!(handles(&world, inode), [Err(Errno::STALE); 2]);
    assert_eq!(handles(&world, u64::MAX), [Err(Errno::STALE); 2]);
}

#[test]
fn a_directory_that_is_removed_has_no_links_and_no_names() {
    let world = World::new();
    let made = world.tree.mkdir(ROOT, b"d", 0o755, &ME).unwrap();
    assert!(made.links > 0);
    world.tree.rmdir(ROOT, b"d", &ME).unwrap();
    assert_eq!(world.tree.getattr(made.inode).unwrap().links, 0);
    let handle = world.tree.opendir(made.inode).unwrap();
    assert_eq!(names(&world, made.inode, handle, 0, 10).len(), 2);
    world.tree.forget(made.inode, 1);
    assert_eq!(world.tree.getattr(made.inode), Err(Errno::STALE));
}

#[test]
fn inode_numbers_are_unique_and_the_root_has_its_own() {
    let world = World::new();
    assert_eq!(world.tree.getattr(ROOT).unwrap().inode, ROOT);
    let (a, b) = (world.file("a", b""), world.file("b", b""));
    assert!(a != b && a != ROOT && b != ROOT);
    assert_eq!(world.tree.lookup(ROOT, b"a", 0).unwrap().inode, a);
}

#[test]
fn the_kernel_forgets_and_so_do_we() {
    let world = World::new();
    let inode = world.file("a", b"");
    world.tree.lookup(ROOT, b"a", 0).unwrap();
    world.tree.forget(inode, 2);
    assert_eq!(world.tree.inodes.len(), 1);
    assert_eq!(world.tree.getattr(inode), Err(Errno::STALE));
}

#[test]
fn a_listing_keeps_its_places_while_names_come_and_go() {
    let world = World::new();
    for n in 0..3_000 {
        world.tree.mknod(ROOT, format!("{n:04}").as_bytes(), 0o644, &ME).unwrap();
    }
    let handle = world.tree.opendir(ROOT).unwrap();
    let first = names(&world, ROOT, handle, 0, 1_502);
    assert_eq!((first[0].0.as_str(), first[1].0.as_str()), (".", ".."));
    assert_eq!(first[1_501].0, "1499");
    world.tree.unlink(ROOT, b"0003", &ME).unwrap();
    world.tree.mknod(ROOT, b"0000a", 0o644, &ME).unwrap();
    let rest = names(&world, ROOT, handle, first[1_501].1, usize::MAX);
    let expected: Vec<String> = (1_500..3_000).map(|n| format!("{n:04}")).collect();
    assert_eq!(rest.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), expected);
    // Going back finds the same, less what is gone; starting again finds what is there now.
    let back = names(&world, ROOT, handle, first[1].1, 4);
    assert_eq!(
        back.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["0000", "0001", "0002", "0004"]
    );
    assert_eq!(names(&world, ROOT, handle, 0, 4)[3].0, "0000a");
    assert!(names(&world, ROOT, handle, 1 << 40, 1).is_empty());
    world.tree.releasedir(handle);
}

#[test]
fn a_listing_with_attributes_counts_as_looking_up_what_was_taken() {
    let world = World::new();
    for name in ["a", "b"] {
        let inode = world.tree.mknod(ROOT, name.as_bytes(), 0o644, &ME).unwrap().inode;
        world.tree.forget(inode, 1);
    }
    let handle = world.tree.opendir(ROOT).unwrap();
    let mut count = 0;
    world
        .tree
        .readdirplus(ROOT, handle, 0, &mut |_, _| {
            count += 1;
            // The last does not fit.
            count == 4
        })
        .unwrap();
    assert_eq!((count, world.tree.inodes.len()), (4, 2));
}

#[test]
fn names_that_can_not_be_are_refused_with_the_right_number() {
    let world = World::new();
    let long = [b'x'; 256];
    assert_eq!(world.tree.lookup(ROOT, &long, 0), Err(Errno::NAMETOOLONG));
    assert_eq!(world.tree.mkdir(ROOT, &long, 0o755, &ME), Err(Errno::NAMETOOLONG));
    assert!(world.tree.mkdir(ROOT, &long[..255], 0o755, &ME).is_ok());
    assert_eq!(world.tree.mkdir(ROOT, b"a/b", 0o755, &ME), Err(Errno::INVAL));
}

#[test]
fn a_create_opens_what_is_there_unless_it_must_be_new() {
    let world = World::new();
    let inode = world.file("a", b"bytes");
    let create =
        |is_new| world.tree.create(ROOT, b"a", 0o644, is_new, WRITES, &ME, &no_passthrough);
    assert!(create(true).is_err_and(|errno| errno == Errno::EXIST));
    let (attributes, opened) = create(false).unwrap();
    assert_eq!((attributes.inode, world.bytes(inode)), (inode, b"bytes".to_vec()));
    world.tree.release(inode, opened.handle);
}

#[test]
fn links_lead_where_they_were_made_to() {
    let world = World::new();
    let made = world.tree.symlink(ROOT, b"s", b"../x", &ANN);
    assert_eq!(made, Err(Errno::ACCESS));
    let made = world.tree.symlink(ROOT, b"s", b"../x", &ME).unwrap();
    assert_eq!(world.tree.readlink(made.inode).unwrap(), b"../x");
    assert_eq!(made.size, 4);
}

#[test]
fn extended_attributes_are_kept_by_name() {
    let world = World::new();
    let inode = world.file("a", b"");
    let set = |name: &[u8], when| world.tree.setxattr(inode, name, b"v", when, &ME);
    assert_eq!(set(b"user.a", When::Present), Err(Errno::NODATA));
    assert_eq!(set(b"user.a", When::Absent), Ok(()));
    assert_eq!(set(b"user.a", When::Absent), Err(Errno::EXIST));
    assert_eq!(set(b"trusted.t", When::Always), Ok(()));
    assert_eq!(set(b"system.posix_acl_access", When::Always), Err(Errno::OPNOTSUPP));
    assert_eq!(world.tree.getxattr(inode, b"user.a").unwrap(), b"v");
    assert_eq!(world.tree.listxattr(inode, &ME).unwrap(), b"trusted.t\0user.a\0");
    assert_eq!(world.tree.listxattr(inode, &ANN).unwrap(), b"user.a\0");
    assert_eq!(world.tree.removexattr(inode, b"user.a", &ME), Ok(()));
    assert_eq!(world.tree.getxattr(inode, b"user.a"), Err(Errno::NODATA));
}

#[test]
fn there_is_room_and_it_is_told_truthfully() {
    let world = World::new();
    let room = world.tree.statfs(0).unwrap();
    assert!(room.blocks >= room.blocks_free && room.blocks_free >= room.blocks_available);
    assert_eq!(room.name_max, 255);
}

#[test]
fn two_names_change_places() {
    let world = World::new();
    world.file("a", b"of a");
    world.file("b", b"of b");
    let swap = |to: &[u8]| world.tree.rename((ROOT, b"a"), (ROOT, to), Over::Exchange, &ME);
    assert_eq!(swap(b"c"), Err(Errno::NOENT));
    assert_eq!(swap(b"b"), Ok(()));
    assert_eq!((world.cat("a"), world.cat("b")), (b"of b".to_vec(), b"of a".to_vec()));
    assert_eq!(world.tree.rename((ROOT, b"a"), (ROOT, b"b"), Over::Refuse, &ME), Err(Errno::EXIST));
    assert_eq!(world.tree.doomed_count(), 0);
}

#[test]
fn a_name_that_is_replaced_while_it_is_listed_stays_listed() {
    let world = World::new();
    for name in ["a", "b", "c", "d"] {
        world.file(name, b"");
    }
    let handle = world.tree.opendir(ROOT).unwrap();
    let first = names(&world, ROOT, handle, 0, 3);
    assert_eq!(first[2].0, "a");
    let new = world.file("0", b"new");
    world.tree.rename((ROOT, b"0"), (ROOT, b"b"), Over::Replace, &ME).unwrap();
    world.tree.unlink(ROOT, b"c", &ME).unwrap();
    let rest = names(&world, ROOT, handle, first[2].1, 10);
    assert_eq!(rest.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b", "d"]);
    let mut found = Vec::new();
    world
        .tree
        .readdirplus(ROOT, handle, first[2].1, &mut |listed, attributes| {
            found.push((listed.name.to_vec(), attributes.inode));
            false
        })
        .unwrap();
    assert_eq!(found[0], (b"b".to_vec(), new));
    assert_eq!(found.len(), 2);
}

#[test]
fn whoever_came_too_late_once_opens_what_they_look_up_next_though_it_is_removed_meanwhile() {
    const SLOW: Caller = Caller { uid: 0, gid: 0, pid: 7 };
    let world = World::new();
    let look = |pid| world.tree.lookup(ROOT, b"a", pid).unwrap().inode;
    let replace = |bytes: &[u8]| {
        world.file("b", bytes);
        let (from, to) = ((ROOT, &b"b"[..]), (ROOT, &b"a"[..]));
        world.tree.rename(from, to, Over::Replace, &ME).unwrap();
    };
    let open = |inode| world.tree.open(inode, READS, &SLOW, &no_passthrough);
    let removed = |inode| world.tree.getattr(inode).unwrap().links == 0;
    replace(b"first");
    let first = look(7);
    replace(b"second");
    assert_eq!(open(first).err(), Some(Errno::STALE));
    let second = look(7);
    replace(b"third");
    let opened = open(second).unwrap();
    assert!(removed(second));
    assert_eq!(world.bytes(second), b"second");
    world.tree.release(second, opened.handle);
    assert_eq!(open(second).err(), Some(Errno::STALE), "nobody holds it any more");
    let third = look(8);
    replace(b"fourth");
    assert_eq!(open(third).err(), Some(Errno::STALE), "somebody else was not late");
}

#[test]
fn what_is_held_open_for_somebody_who_does_not_come_is_let_go_of() {
    const SLOW: Caller = Caller { uid: 0, gid: 0, pid: 7 };
    let world = World::new();
    let first = world.file("a", b"first");
    world.tree.unlink(ROOT, b"a", &ME).unwrap();
    let open = |inode| world.tree.open(inode, READS, &SLOW, &no_passthrough).err();
    assert_eq!(open(first), Some(Errno::STALE));
    world.file("a", b"second");
    let second = world.tree.lookup(ROOT, b"a", 7).unwrap().inode;
    world.tree.unlink(ROOT, b"a", &ME).unwrap();
    (0..6).for_each(|_| world.tree.tidy());
    assert_eq!(open(second), Some(Errno::STALE));
    assert!(world.tree.opens.is_empty());
}

#[test]
fn whoever_came_too_late_once_is_told_what_a_directory_was_like_that_is_gone_by_then() {
    let world = World::new();
    let tree = &world.tree;
    let gone = |pid| {
        let inode = tree.lookup(ROOT, b"d", pid).unwrap().inode;
        let file = tree.inodes.file(inode).unwrap();
        tree.rmdir(ROOT, b"d", &ME).unwrap();
        // As if another machine had removed it.
        tree.inodes.forget(inode, 2);
        tree.inodes.learn(inode, &file, false);
        tree.getattr_for(inode, pid)
    };
    for told in [Err(Errno::STALE), Ok(0)] {
        tree.mkdir(ROOT, b"d", 0o755, &ME).unwrap();
        assert_eq!(gone(7).map(|seen| seen.links), told);
    }
    tree.mkdir(ROOT, b"d", 0o755, &ME).unwrap();
    assert_eq!(gone(8), Err(Errno::STALE), "somebody else was not late");
}
