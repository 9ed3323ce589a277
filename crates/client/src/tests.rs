//! Claims about one client and its group.

use base::Duration;
use lease::Terms;

use crate::{
    Settings,
    script::{World, check, check_with},
};

mod adrift;
mod between;
mod hostile;
mod random;

#[test]
fn what_was_done_is_seen_at_once_and_pushed_after_a_while() {
    check(
        "0 A makes d
         0 A creates d/f
         0 A writes d/f 10
         0 A counts
         1 A sees d/f
         1 A lists d
         999 A counts
         1000 A counts
         1001 A counts",
        "0 A said 3: 2 asks, 0 returns, 1 questions, 0 operations in 0
         1 A sees d/f: file 644, 10 bytes, 1 names, at 0
         1 A lists d: f
         999 A said 0: 0 asks, 0 returns, 0 questions, 0 operations in 0
         1000 A said 1: 0 asks, 0 returns, 0 questions, 3 operations in 1
         1001 A said 0: 0 asks, 0 returns, 0 questions, 0 operations in 0",
    );
}

#[test]
fn create_then_unlink_leaves_no_trace_with_whatever_was_done_only_to_it() {
    check(
        "0 A makes d
         0 A creates d/keep
         0 A creates d/f
         0 A writes d/f 10
         0 A chmods d/f 600
         0 A tags d/f k v
         0 A unlinks d/f
         1 A makes d/e
         1 A creates d/e/f
         1 A unlinks d/e/f
         1 A removes d/e
         2 A counts
         2 A syncs
         2 A lists d
         2 A counts",
        "2 A said 3: 2 asks, 0 returns, 1 questions, 0 operations in 0
         2 A syncs: done
         2 A lists d: keep
         2 A said 1: 0 asks, 0 returns, 0 questions, 2 operations in 1",
    );
}

#[test]
fn what_somebody_waits_for_does_not_vanish() {
    check(
        "0 A creates f
         1 A syncs
         1 A unlinks f
         2 A counts",
        "1 A syncs: done
         2 A said 4: 2 asks, 0 returns, 1 questions, 1 operations in 1",
    );
}

#[test]
fn repeated_changes_of_a_file_are_one_unless_something_came_between() {
    check(
        "0 A creates f
         1 A syncs
         2 A counts
         3 A chmods f 600
         3 A chmods f 640
         3 A dates f 99
         4 A writes f 10
         4 A writes f 20
         5 A tags f k v
         5 A tags f k w
         6 A syncs
         6 A counts
         7 A chmods f 4755
         7 A gives f to 7
         8 A syncs
         8 A counts
         9 B sees f
         9 B reads f k",
        "1 A syncs: done
         2 A said 4: 2 asks, 0 returns, 1 questions, 1 operations in 1
         6 A syncs: done
         6 A said 1: 0 asks, 0 returns, 0 questions, 3 operations in 1
         8 A syncs: done
         8 A said 1: 0 asks, 0 returns, 0 questions, 2 operations in 1
         9 B sees f: file 755 of 7, 20 bytes, 1 names, at 4
         9 B reads f k: w",
    );
}

#[test]
fn the_bytes_that_a_file_gave_back_are_there_for_what_came_after() {
    // Half of all bytes are A's to use.
    check(
        "0 A creates f
         0 A creates g
         1 A writes f 400000
         2 A syncs
         3 A writes f 0
         3 A writes g 400000
         3 A writes f 1
         4 A syncs
         5 B sees f
         5 B sees g",
        "2 A syncs: done
         4 A syncs: done
         5 B sees f: file 644, 1 bytes, 1 names, at 3
         5 B sees g: file 644, 400000 bytes, 1 names, at 3",
    );
}

#[test]
fn there_is_no_more_space_than_there_is() {
    check(
        "0 A creates f
         1 A writes f 1000001
         2 A writes f 500000
         3 A creates g
         3 A writes g 600000
         3 B creates h
         3 B writes h 1000000
         4 A writes f 100
         5 A syncs
         6 A writes g 600000",
        "1 A writes f 1000001: ENOSPC
         3 A writes g 600000: ENOSPC
         5 A syncs: done",
    );
}

#[test]
fn nobody_but_the_superuser_may_have_everything_and_others_go_on() {
    check(
        "0 A chmods . 777
         0 A creates f by 7
         1 A writes f 950000 by 7
         2 A writes f 900000 by 7
         3 A creates g by 8
         4 A writes g 90000 by 8
         5 A creates h by 7
         6 A writes h 40000 by 7
         7 A creates r
         8 A writes r 10000",
        "1 A writes f 950000 by 7: EDQUOT
         6 A writes h 40000 by 7: ENOSPC",
    );
}

#[test]
fn what_is_kept_for_an_open_file_nobody_else_gets_until_it_is_let_go() {
    check(
        "0 A creates f
         1 A keeps f 400000 400000
         2 A creates g
         3 A writes g 700000
         4 A writes f 400000
         5 A keeps f 1000000 1000000
         6 A writes g 1
         7 A keeps f 0 0
         8 A writes g 600000
         9 A keeps f 400001 400001
         9 A syncs",
        "1 A keeps f 400000 400000: room for 400000
         3 A writes g 700000: ENOSPC
         5 A keeps f 1000000 1000000: room for 1000000
         6 A writes g 1: ENOSPC
         7 A keeps f 0 0: room for 0
         9 A keeps f 400001 400001: ENOSPC
         9 A syncs: done",
    );
}

#[test]
fn a_file_that_gets_another_owner_counts_for_them_even_beyond_their_share() {
    check(
        "0 A chmods . 777
         0 A creates f by 7
         1 A writes f 900000 by 7
         2 A creates g by 7
         3 A writes g 90000 by 7
         4 A gives f to 8
         5 A syncs
         6 A writes g 50000 by 7
         7 A creates h by 8
         8 A writes h 40000 by 8
         9 A syncs",
        "3 A writes g 90000 by 7: EDQUOT
         5 A syncs: done
         8 A writes h 40000 by 8: EDQUOT
         9 A syncs: done",
    );
}

#[test]
fn who_may_do_what_is_decided_here() {
    check(
        "0 A makes d
         0 A creates d/f by 7
         0 A chmods d 777
         0 A creates d/f by 7
         0 A chmods d/f 600 by 7
         0 A opens d/f as h by 8
         0 A chmods d/f 644 by 8
         0 A opens d/f as h by 7
         0 A chmods d 700
         0 A looks up d/f by 7
         1 A leads l to there/and/here
         1 A follows l
         1 A tags d k v by 7
         1 A untags d k",
        "0 A creates d/f by 7: EACCES
         0 A opens d/f as h by 8: EACCES
         0 A chmods d/f 644 by 8: EPERM
         0 A looks up d/f by 7: EACCES
         1 A follows l: there/and/here
         1 A tags d k v by 7: EACCES
         1 A untags d k: ENODATA",
    );
}

#[test]
fn a_loss_is_told_through_each_handle_that_could_hide_it_and_not_by_whoever_syncs_first() {
    check(
        "0 A makes d
         0 A opens d as before
         1 A syncs before
         2 A falls silent
         3 A creates d/one
         5 B looks up d
         20002 A is back
         40000 A opens d as one
         40000 A opens d as two
         40001 A syncs
         40002 A syncs
         40003 A opens d as after
         40003 A syncs after
         40004 A syncs one
         40005 A syncs two
         40006 A syncs one
         40007 A syncs before
         40008 A syncs before",
        "1 A syncs before: done
         5 B waits
         20001 B looks up d: done
         20003 A has lost [\"create\"], 1 sent
         40001 A syncs: EIO
         40002 A syncs: done
         40003 A syncs after: done
         40004 A syncs one: EIO
         40005 A syncs two: EIO
         40006 A syncs one: done
         40007 A syncs before: EIO
         40008 A syncs before: EIO",
    );
}

#[test]
fn whoever_tidies_up_waits_for_what_is_to_be_applied_and_takes_no_loss_away_from_programs() {
    check(
        "0 A makes d
         0 A settles
         2 A falls silent
         3 A creates d/one
         5 B looks up d
         20002 A is back
         40000 A settles
         40001 A opens d as one
         40002 A settles
         40003 A syncs one
         40004 A syncs
         40005 A syncs",
        "0 A settles: done
         5 B waits
         20000 B looks up d: done
         20003 A has lost [\"create\"], 1 sent
         40000 A settles: done
         40002 A settles: done
         40003 A syncs one: EIO
         40004 A syncs: EIO
         40005 A syncs: done",
    );
}

#[test]
fn a_session_that_is_lost_hands_over_what_was_not_acknowledged_whole_and_in_order() {
    check(
        "0 A makes d
         0 A opens d as h
         1 A syncs
         2 A falls silent
         3 A creates d/one
         3 A creates d/two
         4 A syncs
         5 B looks up d
         5 A creates d/three
         20002 A is back
         40000 A closes h
         40000 A syncs
         40000 A syncs
         40001 A lists d
         40001 B lists d",
        "1 A syncs: done
         4 A waits
         5 B waits
         20001 B looks up d: done
         20004 A has lost [\"create\", \"create\", \"create\"], 2 sent
         20004 A syncs: EIO
         40000 A closes h: EIO
         40000 A syncs: EIO
         40000 A syncs: done
         40001 A lists d:
         40001 B lists d:",
    );
}

#[test]
fn nothing_is_done_under_a_session_that_is_in_doubt_and_idling_costs_nothing() {
    check(
        "0 A creates f
         1 A syncs
         2 A counts
         30000 A counts
         50000 A sees f
         50001 A counts",
        "1 A syncs: done
         2 A said 4: 2 asks, 0 returns, 1 questions, 1 operations in 1
         30000 A said 0: 0 asks, 0 returns, 0 questions, 0 operations in 0
         50000 A sees f: file 644, 0 bytes, 1 names, at 0
         50001 A said 1: 0 asks, 0 returns, 0 questions, 0 operations in 0",
    );
}

#[test]
fn what_would_outlive_its_leases_is_handed_over() {
    let short = Terms { lease: Duration::from_secs(100), ..Terms::default() };
    check_with(
        |settings| Settings { terms: short, ..settings },
        "0 A creates f
         1 A syncs
         2 A falls silent
         3 A chmods f 600
         200000 A is back
         200001 A sees f",
        "1 A syncs: done
         98900 A has lost [\"setattr\"], 1 sent
         200001 A sees f: file 644, 0 bytes, 1 names, at 0",
    );
}

#[test]
fn a_tree_of_ten_thousand_files_costs_a_few_requests() {
    let mut world = World::new(|settings| settings);
    for directory in 0..100 {
        world.play(&format!("{directory} A makes d{directory}"));
        for file in 0..100 {
            world.play(&format!("{directory} A creates d{directory}/f{file}"));
        }
    }
    world.play("200 A syncs");
    let counts = world.user('A').counts;
    assert_eq!(world.log, ["200 A syncs: done"]);
    assert_eq!(counts.operations, 10_100);
    assert!(counts.asks + counts.returns + counts.questions <= 6, "{counts:?}");
    assert!(counts.operations / counts.batches >= 500, "{counts:?}");
    world.play("300 B lists d99");
    assert_eq!(world.log[1].split(' ').count(), 4 + 100);
}

#[test]
fn a_thousand_files_in_a_shared_directory_cost_a_few_requests_too() {
    let mut world = World::new(|settings| settings);
    world.play("0 A makes d");
    world.play("1 B creates d/theirs");
    let before = world.user('B').counts;
    for file in 0..3_000 {
        world.play(&format!("2 B creates d/f{file}"));
    }
    world.play("3 B syncs");
    let counts = world.user('B').counts;
    assert_eq!(world.log, ["3 B syncs: done"]);
    // A gives away single names, until it has given away so many that it has to let go of all.
    assert!(counts.asks - before.asks <= 64, "{before:?} {counts:?}");
    assert!(counts.questions - before.questions <= 5, "{before:?} {counts:?}");
    assert!(counts.operations / counts.batches >= 500, "{counts:?}");
}

#[test]
fn whoever_changes_something_waits_while_too_much_is_pending_and_calls_are_bounded() {
    check_with(
        |settings| Settings { pending_max: 2, calls_max: 3, ..settings },
        "0 A makes d
         1 A syncs
         1 A falls silent
         2 A creates d/1
         2 A creates d/2
         2 A creates d/3
         3 A creates d/4
         3 A creates d/5
         3 A chmods . 700
         4 A cancels
         5 A is back
         5000 A lists d",
        "1 A syncs: done
         2 A waits
         3 A waits
         3 A waits
         3 A chmods . 700: EAGAIN
         4 A creates d/5: EINTR
         5000 A lists d: 1 2 3 4",
    );
}

#[test]
fn whoever_locks_too_many_files_is_told_so_before_the_group_is() {
    check_with(
        |settings| Settings { lockers_max: 1, ..settings },
        "0 A creates f
         0 A creates g
         0 A opens f as F
         0 A opens g as G
         1 A locks f x0-9
         2 A locks g x0-9
         3 A locks f s20-29
         4 A unlocks f 0-18446744073709551615
         5 A locks g x0-9
         6 A syncs",
        "2 A locks g x0-9: ENOLCK
         6 A syncs: done",
    );
}

#[test]
fn what_was_not_used_for_longest_goes_when_there_is_too_much() {
    let few = |settings| Settings { budget: 16, facts_max: 40, ..settings };
    let mut world = World::new(few);
    world.play("0 A makes d");
    world.play("0 A syncs");
    for file in 0..100 {
        world.play(&format!("{file} B creates d/f{file}"));
        world.play(&format!("{file} B sees d/f{file}"));
        let client = &world.user('B').client;
        assert!(client.lease_count() <= 16, "{}", client.lease_count());
    }
    world.play("1000 B syncs");
    world.play("1000 B sees d/f0");
    world.settle();
    let client = &world.user('B').client;
    assert!(client.fact_count() <= 40 + 100, "{}", client.fact_count());
    assert_eq!(world.log.last().unwrap(), "1000 B sees d/f0: file 644, 0 bytes, 1 names, at 0");
    world.play("7000 A lists d");
    assert_eq!(world.log.last().unwrap().split(' ').count(), 4 + 100);
}

#[test]
fn whoever_looks_through_more_than_is_remembered_asks_for_many_at_a_time() {
    let few = |settings| Settings { facts_max: 800, ..settings };
    let mut world = World::new(few);
    world.play("0 A makes d");
    (0..600).for_each(|file| world.play(&format!("0 A creates d/f{file:03}")));
    world.play("1 A syncs");
    for round in 2..5 {
        world.user('A').counts = Default::default();
        (0..600).for_each(|file| world.play(&format!("{round} A sees d/f{file:03}")));
        let questions = world.user('A').counts.questions;
        // 50 at a time are asked for here, and some go before they were looked at.
        assert!(questions <= 60, "{questions} in round {round}");
    }
    assert!(world.user('A').client.fact_count() <= 800 + 50);
}

/// Lines for a directory of many files that A has made and B has listed.
fn made_by_a(count: usize, then: impl Fn(usize) -> String) -> String {
    let creates = (10..10 + count).map(|n| format!("0 A creates d/f{n}\n"));
    let then = (10..10 + count).map(|n| format!("{}\n", then(n)));
    let middle = "1 A syncs\n2 B lists d\n2 B counts\n".to_owned();
    ["0 A makes d\n".to_owned()].into_iter().chain(creates).chain([middle]).chain(then).collect()
}

/// What B has asked for by the last line.
fn asked(script: &str) -> usize {
    let mut world = crate::script::World::new(|settings| settings);
    script.lines().for_each(|line| world.play(line));
    world.play("9999 B counts");
    let said = world.log.last().unwrap().split_once(": ").unwrap().1;
    said.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn whoever_goes_through_a_directory_asks_for_many_files_at_once() {
    let looks = asked(&made_by_a(80, |n| format!("3 B looks up d/f{n}")));
    assert!(looks <= 10, "{looks} asks for 80 names");
    let removals = asked(&made_by_a(80, |n| format!("3 B unlinks d/f{n}")));
    assert!(removals <= 24, "{removals} asks for 80 files that go");
    let opens = asked(&made_by_a(80, |n| format!("3 B opens d/f{n} as h{n}")));
    assert!(opens <= 20, "{opens} asks for 80 files that are opened");
}

#[test]
fn whoever_wants_one_file_takes_no_others_from_whoever_has_them() {
    // What A has to ask for is the way there.
    check(
        "0 A makes d
         0 A creates d/f
         0 A creates d/g
         0 A creates d/h
         0 A creates d/i
         1 A syncs
         2 B lists d
         3 B chmods d/f 600
         4 A chmods d/g 600
         4 A counts
         5 A chmods d/h 600
         5 A chmods d/i 600
         5 A counts",
        "1 A syncs: done
         2 B lists d: f g h i
         4 A said 12: 5 asks, 5 returns, 1 questions, 5 operations in 1
         5 A said 0: 0 asks, 0 returns, 0 questions, 0 operations in 0",
    );
}
