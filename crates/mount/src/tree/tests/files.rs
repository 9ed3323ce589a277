//! Bytes: where they are, when they are told, and what is left of them.

use std::os::unix::fs::FileExt;

use super::*;

#[test]
fn what_is_written_is_read_while_open_and_after() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    world.tree.write(inode, 0, b"hello", Manner::default()).unwrap();
    world.tree.write(inode, 7, b"world", Manner::default()).unwrap();
    assert_eq!(world.bytes(inode), b"hello\0\0world");
    assert_eq!(world.size(inode), 12);
    world.tree.release(inode, handle);
    assert_eq!(world.cat("a"), b"hello\0\0world");
    assert_eq!(world.tree.reservoir.used(), 0);
}

#[test]
fn an_empty_new_file_has_no_bytes_anywhere() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    world.tree.release(inode, handle);
    assert!(world.tree.content.get(inode).unwrap().is_none());
    assert!(world.tree.content.backing(inode).unwrap().is_none());
    world.tree.unlink(ROOT, b"a", &ME).unwrap();
    assert_eq!(world.tree.doomed_count(), 0);
}

#[test]
fn a_file_that_outgrows_memory_goes_to_a_backing_file_at_once() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    world.tree.write(inode, 0, &[1; 900], Manner::default()).unwrap();
    assert!(world.tree.content.backing(inode).unwrap().is_none());
    world.tree.write(inode, 900, &[2; 900], Manner::default()).unwrap();
    assert!(world.tree.content.backing(inode).unwrap().is_some());
    let expected = [[1; 900], [2; 900]].concat();
    assert_eq!(world.bytes(inode), expected);
    assert_eq!(world.size(inode), 1_800);
    world.tree.release(inode, handle);
    assert_eq!(world.cat("a"), expected);
}

#[test]
fn when_the_memory_of_all_files_is_used_up_the_next_goes_to_a_backing_file() {
    let world = World::new();
    let opened: Vec<(u64, u64)> = (0..20).map(|n| world.create(&format!("f{n}"))).collect();
    for (inode, _) in &opened {
        world.tree.write(*inode, 0, &[3; 1_000], Manner::default()).unwrap();
    }
    assert!(world.tree.reservoir.used() <= 10_000);
    let has_backing = |inode: u64| world.tree.content.backing(inode).unwrap().is_some();
    let count = opened.iter().filter(|(inode, _)| has_backing(*inode)).count();
    assert!((10..20).contains(&count), "{count} of 20 have backing files");
    for (inode, handle) in opened {
        assert_eq!(world.bytes(inode), [3; 1_000]);
        world.tree.release(inode, handle);
    }
    assert_eq!(world.tree.reservoir.used(), 0);
}

#[test]
fn a_small_file_that_is_opened_again_to_write_is_passed_through() {
    let world = World::new();
    world.tree.allow_passthrough();
    let inode = world.file("a", b"one");
    let opened = world.tree.open(inode, WRITES, &ME, &passthrough).unwrap();
    assert!(matches!(opened.way, Way::Passthrough(_)));
    // As the kernel does it, without telling us.
    let backing = world.tree.content.backing(inode).unwrap().unwrap();
    backing.write_all_at(b"two and more", 0).unwrap();
    assert_eq!(world.size(inode), 12);
    // The second open follows the first, whatever it is for.
    let again = world.tree.open(inode, READS, &ME, &no_passthrough).unwrap();
    assert!(matches!(again.way, Way::Passthrough(_)));
    world.tree.release(inode, again.handle);
    world.tree.release(inode, opened.handle);
    assert_eq!(world.cat("a"), b"two and more");
    assert_eq!(world.tree.lookup(ROOT, b"a", 0).unwrap().size, 12);
}

#[test]
fn whoever_opens_a_cached_file_again_gets_it_cached() {
    let world = World::new();
    world.tree.allow_passthrough();
    let (inode, first) = world.create("a");
    world.tree.write(inode, 0, &[1; 5_000], Manner::default()).unwrap();
    let second = world.tree.open(inode, WRITES, &ME, &passthrough).unwrap();
    assert!(matches!(second.way, Way::Cached { .. }));
    world.tree.release(inode, first);
    world.tree.release(inode, second.handle);
    let third = world.tree.open(inode, READS, &ME, &passthrough).unwrap();
    assert!(matches!(third.way, Way::Passthrough(_)));
    world.tree.release(inode, third.handle);
}

#[test]
fn what_is_only_written_goes_past_the_kernels_cache_and_so_does_whoever_opens_it_meanwhile() {
    let world = World::new();
    world.tree.allow_direct();
    let create = |name: &[u8], purpose| {
        let made = world.tree.create(ROOT, name, 0o644, true, purpose, &ME, &no_passthrough);
        let (attributes, opened) = made.unwrap();
        (attributes.inode, opened)
    };
    let (inode, writer) = create(b"a", Purpose { reads: false, ..WRITES });
    assert!(matches!(writer.way, Way::Direct));
    let reader = world.open(inode, READS);
    assert!(matches!(reader.way, Way::Direct));
    world.tree.write(inode, 0, b"abc", Manner::default()).unwrap();
    [writer, reader].iter().for_each(|opened| world.tree.release(inode, opened.handle));
    let later = world.open(inode, READS);
    assert!(matches!(later.way, Way::Cached { keeps_pages: false }));
    assert_eq!(world.bytes(inode), b"abc");
    assert!(matches!(create(b"b", WRITES).1.way, Way::Cached { .. }));
}

#[test]
fn what_is_written_past_the_kernels_cache_loses_its_privileges() {
    let world = World::new();
    world.tree.allow_direct();
    let only = Purpose { reads: false, ..WRITES };
    let (inode, _) = world
        .tree
        .create(ROOT, b"a", 0o755, true, only, &ME, &no_passthrough)
        .map(|(attributes, opened)| (attributes.inode, opened))
        .unwrap();
    let name = b"security.capability";
    world.tree.setxattr(inode, name, b"all", When::Always, &ME).unwrap();
    world.tree.setxattr(inode, b"user.a", b"b", When::Always, &ME).unwrap();
    for _ in 0..2 {
        world.tree.write(inode, 0, b"abc", Manner::default()).unwrap();
        assert_eq!(world.tree.getxattr(inode, name), Err(Errno::NODATA));
    }
    assert_eq!(world.tree.getxattr(inode, b"user.a").unwrap(), b"b");
}

#[test]
fn the_first_file_and_any_after_a_large_one_are_written_by_way_of_the_kernel() {
    let world = World::new();
    world.tree.allow_passthrough();
    let me = Caller { pid: 7, ..ME };
    let write = |name: &[u8], size: usize| {
        let made = world.tree.create(ROOT, name, 0o644, true, WRITES, &me, &passthrough);
        let (attributes, opened) = made.unwrap();
        world.tree.write(attributes.inode, 0, &vec![7; size], Manner::default()).unwrap();
        world.tree.release(attributes.inode, opened.handle);
        let reader = world.tree.open(attributes.inode, READS, &me, &passthrough).unwrap();
        assert!(
            world.tree.read(attributes.inode, 0, size + 1, |read| read == vec![7; size]).unwrap()
        );
        world.tree.release(attributes.inode, reader.handle);
        matches!(opened.way, Way::Passthrough(_))
    };
    let large = super::super::habits::LARGE as usize;
    assert!(write(b"a", large) && write(b"b", large) && write(b"c", 10));
    assert!(!write(b"d", 10) && !write(b"e", large) && write(b"f", 0));
}

#[test]
fn a_kernel_that_can_not_pass_through_is_not_asked_again() {
    let world = World::new();
    world.tree.allow_passthrough();
    let inode = world.file("a", &[1; 5_000]);
    let opened = world.open(inode, WRITES);
    assert!(matches!(opened.way, Way::Cached { .. }));
    world.tree.release(inode, opened.handle);
    let opened = world.tree.open(inode, WRITES, &ME, &passthrough).unwrap();
    assert!(matches!(opened.way, Way::Cached { .. }));
    world.tree.release(inode, opened.handle);
}

#[test]
fn a_smaller_and_then_larger_size_brings_no_old_bytes_back() {
    for size in [800, 5_000] {
        let world = World::new();
        let inode = world.file("a", &vec![9; size]);
        for size in [10, 700, 3_000] {
            let changes = Changes { size: Some(size), ..Changes::default() };
            assert_eq!(world.tree.setattr(inode, &changes, &ME).unwrap().size, size);
        }
        let mut expected = vec![9; 10];
        expected.resize(3_000, 0);
        assert_eq!(world.cat("a"), expected);
    }
}

#[test]
fn a_program_that_runs_is_not_emptied_by_whoever_only_reads() {
    let world = World::new();
    let inode = world.file("a", b"a program");
    let empties = Purpose { truncates: true, ..READS };
    let runs = world.open(inode, Purpose { runs: true, ..READS }).handle;
    let refused = world.tree.open(inode, empties, &ME, &no_passthrough);
    assert_eq!(refused.map(drop), Err(Errno::TXTBSY));
    assert_eq!(world.bytes(inode), b"a program");
    world.tree.release(inode, runs);
    let emptied = world.open(inode, empties).handle;
    assert_eq!(world.size(inode), 0);
    world.tree.release(inode, emptied);
}

#[test]
fn an_open_that_truncates_leaves_nothing() {
    for size in [800, 5_000] {
        let world = World::new();
        let inode = world.file("a", &vec![9; size]);
        let handle = world.open(inode, TRUNCATES).handle;
        assert_eq!(world.size(inode), 0);
        world.tree.write(inode, 2, b"x", Manner::default()).unwrap();
        world.tree.release(inode, handle);
        assert_eq!(world.cat("a"), b"\0\0x");
    }
}

#[test]
fn a_time_that_was_set_is_not_undone_by_closing() {
    let world = World::new();
    for (name, size) in [("a", 10), ("b", 5_000)] {
        let (inode, handle) = world.create(name);
        world.tree.write(inode, 0, &vec![1; size], Manner::default()).unwrap();
        let changes = Changes { modified: Some(Moment::At(-5)), ..Changes::default() };
        assert_eq!(world.tree.setattr(inode, &changes, &ME).unwrap().modified, -5);
        world.tree.release(inode, handle);
        let after = world.tree.getattr(inode).unwrap();
        assert_eq!((after.modified, after.size), (-5, size as u64));
    }
}

#[test]
fn what_stat_has_told_does_not_change_by_closing() {
    let world = World::new();
    for (name, size) in [("a", 10), ("b", 5_000)] {
        let (inode, handle) = world.create(name);
        world.tree.write(inode, 0, &vec![1; size], Manner::default()).unwrap();
        let before = world.tree.getattr(inode).unwrap();
        world.tree.release(inode, handle);
        assert_eq!(world.tree.getattr(inode).unwrap(), before);
    }
}

#[test]
fn a_file_is_there_whole_under_its_new_name_before_it_is_closed() {
    let world = World::new();
    let (inode, handle) = world.create("new");
    world.file("old", b"old");
    world.tree.write(inode, 0, b"fresh", Manner::default()).unwrap();
    world.tree.rename((ROOT, b"new"), (ROOT, b"old"), Over::Replace, &ME).unwrap();
    assert_eq!(world.tree.content.get(inode).unwrap().unwrap(), b"fresh");
    world.tree.release(inode, handle);
    assert_eq!(world.cat("old"), b"fresh");
}

#[test]
fn an_open_file_outlives_its_name_and_its_bytes_go_when_the_group_knows() {
    let world = World::new();
    let inode = world.file("a", b"alive");
    let handle = world.open(inode, WRITES).handle;
    world.tree.unlink(ROOT, b"a", &ME).unwrap();
    assert_eq!(world.tree.lookup(ROOT, b"a", 0), Err(Errno::NOENT));
    assert_eq!(world.tree.getattr(inode).unwrap().links, 0);
    assert_eq!(world.bytes(inode), b"alive");
    world.tree.write(inode, 5, b" still", Manner::default()).unwrap();
    assert_eq!(world.size(inode), 11);
    world.tree.release(inode, handle);
    assert_eq!(world.tree.doomed_count(), 1);
    assert!(world.tree.content.get(inode).unwrap().is_some());
    world.sync();
    world.tree.tidy();
    assert_eq!(world.tree.doomed_count(), 0);
    assert!(world.tree.content.get(inode).unwrap().is_none());
}

#[test]
fn what_is_replaced_loses_its_bytes_too() {
    let world = World::new();
    let old = world.file("old", &[1; 5_000]);
    world.file("new", b"new");
    world.tree.rename((ROOT, b"new"), (ROOT, b"old"), Over::Replace, &ME).unwrap();
    world.sync();
    world.tree.tidy();
    assert!(world.tree.content.backing(old).unwrap().is_none());
    assert_eq!(world.cat("old"), b"new");
}

#[test]
fn a_file_with_another_name_keeps_its_bytes() {
    let world = World::new();
    let inode = world.file("a", b"bytes");
    assert_eq!(world.tree.link(inode, ROOT, b"b", &ME).unwrap().links, 2);
    world.tree.unlink(ROOT, b"a", &ME).unwrap();
    assert_eq!(world.tree.doomed_count(), 0);
    assert_eq!(world.tree.getattr(inode).unwrap().links, 1);
    assert_eq!(world.cat("b"), b"bytes");
}

#[test]
fn everything_is_there_in_the_next_life() {
    let world = World::new();
    world.file("small", b"small");
    world.file("large", &[7; 50_000]);
    let (inode, handle) = world.create("synced");
    world.tree.write(inode, 0, b"synced", Manner::default()).unwrap();
    world.tree.fsync(inode, handle).unwrap();
    let world = world.restart();
    assert_eq!(world.cat("small"), b"small");
    assert_eq!(world.cat("large"), [7; 50_000]);
    assert_eq!(world.cat("synced"), b"synced");
}

#[test]
fn holes_are_found_and_made() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    world.tree.write(inode, 0, b"abc", Manner::default()).unwrap();
    assert_eq!(world.tree.seek(inode, 0, false), Ok(3));
    assert_eq!(world.tree.seek(inode, 1, true), Ok(1));
    assert_eq!(world.tree.seek(inode, 3, true), Err(Errno::NXIO));
    world.tree.fallocate(inode, (0, 4_096), Allocation::Extend, &ME).unwrap();
    assert_eq!(world.size(inode), 4_096);
    world.tree.fallocate(inode, (0, 2), Allocation::Zero, &ME).unwrap();
    assert_eq!(&world.bytes(inode)[..4], b"\0\0c\0");
    world.tree.release(inode, handle);
    assert_eq!(world.cat("a").len(), 4_096);
}

#[test]
fn copies_between_files_large_and_small_are_right() {
    let world = World::new();
    let large: Vec<u8> = (0..5_000u32).map(|n| n as u8).collect();
    for (name, bytes) in [("small", &large[..600]), ("large", &large[..])] {
        let from = world.file(name, bytes);
        let reader = world.open(from, READS).handle;
        let (to, handle) = world.create(&format!("{name}-copy"));
        let mut done = 0;
        while done < bytes.len() as u64 {
            done += world.tree.copy((from, done), (to, done), 10_000, &ME).unwrap();
        }
        assert_eq!(world.tree.copy((from, done), (to, done), 10_000, &ME), Ok(0));
        assert_eq!(world.bytes(to), bytes);
        world.tree.release(to, handle);
        world.tree.release(from, reader);
        assert_eq!(world.cat(&format!("{name}-copy")), bytes);
    }
}

#[test]
fn a_write_by_somebody_else_ends_running_as_the_owner() {
    let world = World::new();
    let inode = world.file("a", b"program");
    let run = Changes { mode: Some(0o6777), ..Changes::default() };
    assert_eq!(world.tree.setattr(inode, &run, &ME).unwrap().mode, 0o6777);
    world.tree.allow_passthrough();
    let opened = world.tree.open(inode, WRITES, &ANN, &passthrough).unwrap();
    assert!(matches!(opened.way, Way::Cached { .. }), "or nobody would see the write");
    assert_eq!(world.tree.getattr(inode).unwrap().mode, 0o6777);
    world.tree.write(inode, 0, b"P", Manner { tamed_by: Some(ANN), appends: false }).unwrap();
    assert_eq!(world.tree.getattr(inode).unwrap().mode, 0o777);
    // What is given back later stays, although the file is closed after that.
    world.tree.write(inode, 0, b"p", Manner { tamed_by: Some(ANN), appends: false }).unwrap();
    world.tree.setattr(inode, &run, &ME).unwrap();
    world.tree.release(inode, opened.handle);
    assert_eq!(world.tree.getattr(inode).unwrap().mode, 0o6777);
}

#[test]
fn who_has_opened_a_file_may_write_whatever_its_mode_becomes() {
    let world = World::new();
    let inode = world.file("a", b"old");
    let all = Changes { mode: Some(0o666), ..Changes::default() };
    world.tree.setattr(inode, &all, &ME).unwrap();
    let handle = world.tree.open(inode, WRITES, &ANN, &no_passthrough).unwrap().handle;
    let none = Changes { mode: Some(0o600), ..Changes::default() };
    world.tree.setattr(inode, &none, &ME).unwrap();
    world.tree.write(inode, 0, b"newer", Manner { tamed_by: Some(ANN), appends: false }).unwrap();
    world.tree.release(inode, handle);
    assert_eq!(world.cat("a"), b"newer");
}

#[test]
fn what_is_looked_at_often_while_written_gets_a_backing_file() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    for n in 0..10 {
        world.tree.write(inode, n, b"x", Manner::default()).unwrap();
        assert_eq!(world.size(inode), n + 1);
    }
    assert!(world.tree.content.backing(inode).unwrap().is_some());
    world.tree.release(inode, handle);
    assert_eq!(world.cat("a"), b"xxxxxxxxxx");
}

#[test]
fn what_stays_open_is_stored_after_a_while() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    world.tree.write(inode, 0, b"log", Manner::default()).unwrap();
    world.tree.tidy();
    assert!(world.tree.content.get(inode).unwrap().is_none());
    (0..10).for_each(|_| world.tree.tidy());
    assert_eq!(world.tree.content.get(inode).unwrap().unwrap(), b"log");
    world.tree.release(inode, handle);
}

#[test]
fn a_size_that_nobody_reported_before_a_crash_is_found() {
    let world = World::new();
    world.tree.allow_passthrough();
    let inode = world.file("a", &[1; 5_000]);
    let opened = world.tree.open(inode, WRITES, &ME, &passthrough).unwrap();
    assert!(matches!(opened.way, Way::Passthrough(_)));
    world.sync();
    let backing = world.tree.content.backing(inode).unwrap().unwrap();
    backing.write_all_at(&[2; 100], 5_000).unwrap();
    // Nothing is told any more: the daemon has died.
    let world = world.crash();
    assert_eq!(world.tree.lookup(ROOT, b"a", 0).unwrap().size, 5_100);
    assert!(lock(&world.tree.stale).is_empty());
}

#[test]
fn what_the_directory_could_not_be_told_at_the_last_close_is_told_later() {
    for size in [10, 5_000] {
        let world = World::new();
        let (inode, handle) = world.create("a");
        world.tree.write(inode, 0, &vec![7; size], Manner::default()).unwrap();
        world.tree.unreportable.store(inode, Ordering::Relaxed);
        world.tree.release(inode, handle);
        assert_eq!(world.size(inode), size as u64, "whoever looks sees what is true");
        world.tree.unreportable.store(0, Ordering::Relaxed);
        (0..10).for_each(|_| world.tree.tidy());
        assert!(world.tree.opens.is_empty());
        assert_eq!(world.size(inode), size as u64);
        assert_eq!(world.cat("a"), vec![7; size]);
    }
}

#[test]
fn a_file_that_can_not_be_stored_at_the_end_keeps_no_other_from_being_stored() {
    let world = World::new();
    let opened: Vec<(u64, u64)> = (0..3).map(|n| world.create(&format!("f{n}"))).collect();
    for (inode, _) in &opened {
        world.tree.write(*inode, 0, b"bytes", Manner::default()).unwrap();
    }
    let (bad, _) = opened[0];
    world.tree.unreportable.store(bad, Ordering::Relaxed);
    assert_eq!(world.tree.finish(), Err(Errno::AGAIN));
    let open: Vec<u64> = world.tree.opens.all().iter().map(|open| open.inode).collect();
    assert_eq!(open, [bad], "all others are stored and closed");
    world.tree.unreportable.store(0, Ordering::Relaxed);
    let world = world.restart();
    for n in 0..3 {
        assert_eq!(world.cat(&format!("f{n}")), b"bytes");
    }
}

#[test]
fn what_has_no_name_is_gone_at_the_end_whether_or_not_the_kernel_has_closed_it() {
    let world = World::new();
    let inode = world.file("a", b"bytes");
    let opened = world.open(inode, WRITES);
    world.tree.unlink(ROOT, b"a", &ME).unwrap();
    world.tree.finish().unwrap();
    assert!(world.tree.opens.is_empty());
    assert!(world.tree.content.get(inode).unwrap().is_none());
    // What comes late does no harm.
    world.tree.release(inode, opened.handle);
}

#[test]
fn bytes_that_are_missing_are_an_error_and_not_zeros() {
    let world = World::new();
    let inode = world.file("a", b"bytes");
    world.tree.content.remove(inode).unwrap();
    let opened = world.open(inode, READS);
    assert_eq!(world.tree.read(inode, 0, 10, <[u8]>::len), Err(Errno::IO));
    world.tree.release(inode, opened.handle);
}

#[test]
fn a_size_is_told_only_of_bytes_that_are_stored() {
    let world = World::new();
    let (inode, _) = world.create("a");
    world.tree.write(inode, 0, &[7; 100], Manner::default()).unwrap();
    let open = world.tree.opens.get(inode).unwrap();
    world.tree.set_size(&open, &mut open.lock(), 50).unwrap();
    drop(open);
    let world = world.crash();
    assert_eq!(world.cat("a"), [7; 50]);
}

#[test]
fn bytes_stay_if_what_took_the_name_away_may_be_lost() {
    let world = World::new();
    let inode = world.file("a", b"bytes");
    let elsewhen = world.tree.desk.losses() + 1;
    world.tree.doom(inode, None, elsewhen);
    // And what comes behind it goes on.
    let other = world.file("b", b"other");
    world.tree.unlink(ROOT, b"b", &ME).unwrap();
    world.sync();
    world.tree.tidy();
    assert_eq!(world.tree.doomed_count(), 0);
    assert!(world.tree.content.get(other).unwrap().is_none());
    assert_eq!(world.cat("a"), b"bytes");
}

#[test]
fn an_open_file_whose_lost_name_comes_back_is_stored_when_it_is_closed() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    world.tree.write(inode, 0, b"bytes", Manner::default()).unwrap();
    world.tree.opens.unlink(inode, world.tree.desk.losses() + 1);
    world.tree.release(inode, handle);
    assert_eq!(world.tree.doomed_count(), 0);
    assert_eq!(world.cat("a"), b"bytes");
}

#[test]
fn the_directory_is_told_again_what_may_be_lost_with_a_session() {
    let world = World::new();
    for (name, size) in [("a", 10), ("b", 5_000)] {
        let (inode, handle) = world.create(name);
        world.tree.write(inode, 0, &vec![7; size], Manner::default()).unwrap();
        let open = world.tree.opens.get(inode).unwrap();
        let mut inner = open.lock();
        assert_eq!(world.tree.settle(&open, &mut inner), Ok(true));
        assert_eq!(world.tree.settle(&open, &mut inner), Ok(false));
        let losses = world.tree.desk.losses() + 1;
        let said = world.tree.said(&open.file);
        inner.bytes.note_told(directory::record::Content::default(), losses, &said);
        assert_eq!(world.tree.settle(&open, &mut inner), Ok(true));
        assert_eq!(world.tree.settle(&open, &mut inner), Ok(false));
        drop(inner);
        world.tree.release(inode, handle);
    }
}

#[test]
fn a_create_for_which_there_is_no_handle_leaves_no_file() {
    let world = World::new();
    let inode = world.file("a", b"");
    let mut handles = Vec::new();
    let errno = loop {
        match world.tree.open(inode, READS, &ME, &no_passthrough) {
            Ok(opened) => handles.push(opened.handle),
            Err(errno) => break errno,
        }
    };
    assert_eq!(errno, Errno::NFILE);
    let create =
        || world.tree.create(ROOT, b"b", 0o644, true, WRITES, &ME, &no_passthrough).map(drop);
    assert_eq!(create(), Err(Errno::NFILE));
    assert_eq!(world.tree.lookup(ROOT, b"b", 0), Err(Errno::NOENT));
    world.tree.release(inode, handles[0]);
    assert_eq!(create(), Ok(()));
}

#[test]
fn of_what_is_closed_nothing_stays_in_memory() {
    let world = World::new();
    let (inode, first) = world.create("a");
    let second = world.open(inode, READS).handle;
    let open = world.tree.opens.get(inode).unwrap();
    world.tree.release(inode, first);
    world.tree.release(inode, second);
    assert_eq!(Arc::strong_count(&open), 1, "only we have it");
}

#[test]
fn a_size_that_was_looked_up_just_before_a_file_was_closed_is_looked_up_again() {
    let world = World::new();
    let (inode, handle) = world.create("a");
    let file = world.tree.inodes.file(inode).unwrap();
    world.tree.write(inode, 0, b"hello", Manner::default()).unwrap();
    let (told, record) = (world.tree.told(), world.tree.record(&file).unwrap());
    assert_eq!(record.content.size, 0, "the directory does not know yet");
    world.tree.release(inode, handle);
    assert_eq!(world.tree.fresh_of(&file, record, told).unwrap().size, 5);
}
