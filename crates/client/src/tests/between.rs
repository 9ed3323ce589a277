//! Claims about two clients of one group.

use std::collections::{BTreeMap, BTreeSet};

use directory::{Command, Users};

use crate::{
    Settings,
    script::{World, check, check_with},
};

#[test]
fn a_second_client_sees_everything_and_what_it_asks_for_is_pushed_first() {
    check(
        "0 A makes d
         0 A creates d/f
         0 A writes d/f 7
         1 A counts
         2 B sees d/f
         2 B lists d
         3 A counts",
        "1 A said 3: 2 asks, 0 returns, 1 questions, 0 operations in 0
         2 B sees d/f: file 644, 7 bytes, 1 names, at 0
         2 B lists d: f
         3 A said 7: 0 asks, 6 returns, 0 questions, 3 operations in 1",
    );
}

#[test]
fn two_clients_that_create_in_one_directory_never_collide() {
    check(
        "0 A makes d
         0 A creates d/a
         1 B creates d/b
         1 A creates d/c
         1 B creates d/a
         2 A creates d/b
         3 A lists d
         3 B lists d",
        "1 B creates d/a: EEXIST
         2 A creates d/b: EEXIST
         3 A lists d: a b c
         3 B lists d: a b c",
    );
}

#[test]
fn a_file_that_another_has_open_outlives_its_last_name() {
    check(
        "0 A creates f
         0 A writes f 7
         1 B opens f as h
         2 A unlinks f
         3 B sees f
         3 A sees f
         4 B looks around
         5 B closes h
         6 B syncs
         6 B looks around",
        "3 B sees f: ENOENT
         3 A sees f: ENOENT
         4 B sees 2 records, 1 without a name
         6 B syncs: done
         6 B sees 1 records, 0 without a name",
    );
}

#[test]
fn whoever_closes_last_lets_the_file_go() {
    check(
        "0 A creates f
         0 A opens f as one
         1 B opens f as two
         1 B opens f as three
         2 A unlinks f
         3 B closes two
         4 A closes one
         5 A syncs
         5 A looks around
         6 B closes three
         7 B syncs
         7 B looks around",
        "5 A syncs: done
         5 A sees 2 records, 1 without a name
         7 B syncs: done
         7 B sees 1 records, 0 without a name",
    );
}

#[test]
fn in_steady_state_opening_and_closing_costs_nothing() {
    check(
        "0 A creates f
         1 A syncs
         1 B opens f as h
         1 B closes h
         2 B counts
         3 B opens f as h
         3 B opens f as g
         3 B closes h
         3 B closes g
         4 B counts",
        "1 A syncs: done
         2 B said 3: 3 asks, 0 returns, 0 questions, 0 operations in 0
         4 B said 0: 0 asks, 0 returns, 0 questions, 0 operations in 0",
    );
}

#[test]
fn an_open_that_another_denies_is_refused_by_the_client_alone() {
    check(
        "0 A creates f
         1 A opens f as one for r denying w
         2 B opens f as two for r denying -
         2 B opens f as no for w denying -
         3 A closes one
         4 B opens f as three for w denying -
         5 A opens f as no for r denying w
         6 B closes three
         7 A opens f as four for r denying w
         8 B opens f as five",
        "2 B opens f as no for w denying -: EBUSY
         5 A opens f as no for r denying w: EBUSY",
    );
}

#[test]
fn handles_of_one_client_deny_each_other_too() {
    check(
        "0 A creates f
         1 A opens f as one for r denying w
         1 A opens f as no for w denying -
         1 A closes one
         1 A opens f as two for w denying -",
        "1 A opens f as no for w denying -: EBUSY",
    );
}

#[test]
fn locks_are_had_through_open_files_hold_between_clients_and_go_with_a_lost_session() {
    check(
        "0 A creates f
         0 A locks f x0-9
         0 A opens f as one
         0 A locks f x0-9
         1 B opens f as two
         1 B locks f s5-6
         1 B tests f s5-6
         1 B locks f s20-30
         2 A unlocks f 0-4
         3 B locks f x0-4
         4 A tests f x0-100
         5 A falls silent
         60000 B locks f x5-9
         60001 B tests f x0-9",
        "0 A locks f x0-9: EIO
         1 B locks f s5-6: EAGAIN
         1 B tests f s5-6: A has 0-9
         4 A tests f x0-100: B has 0-4
         60001 B tests f x0-9: free",
    );
}

#[test]
fn locks_go_with_the_last_handle() {
    check(
        "0 A creates f
         0 A opens f as one
         0 A opens f as two
         0 A locks f x0-9
         1 A closes one
         1 B opens f as three
         1 B locks f x5-6
         2 A closes two
         3 B locks f x5-6",
        "1 B locks f x5-6: EAGAIN",
    );
}

#[test]
fn who_has_given_all_locks_up_is_not_remembered_while_the_file_is_open() {
    let mut world = World::new(|settings| settings);
    let lockers = |world: &mut World<_>| world.user('A').client.handles.locker_count();
    for line in ["0 A creates f", "0 A opens f as one", "0 A locks f x0-9", "0 A unlocks f 0-4"] {
        world.play(line);
    }
    assert_eq!(lockers(&mut world), 1);
    world.play(&format!("0 A unlocks f 0-{}", u64::MAX));
    assert_eq!(lockers(&mut world), 0);
}

#[test]
fn whoever_takes_away_a_directory_that_nobody_on_its_machine_may_look_into_is_told_so() {
    let mut world = World::new(|settings| settings);
    let users = BTreeMap::from([(7, BTreeSet::from([7]))]);
    let client = lease::Client('B' as u32);
    world.apply(Command::Admit { client, users: Users::These(users) });
    for line in [
        "0 A chmods . 777",
        "0 A makes den",
        "0 A chmods den 700",
        "1 B sees den by 7",
        "2 B lists den by 7",
        "3 B creates den/f by 7",
        "4 B removes den by 7",
        "5 A chmods den 755",
        "6 B removes den by 7",
        "7 B lists . by 7",
    ] {
        world.play(line);
    }
    world.settle();
    let expected = [
        "1 B sees den by 7: directory 700, 0 bytes, 2 names, at 0",
        "2 B lists den by 7: EACCES",
        "3 B creates den/f by 7: EACCES",
        "4 B removes den by 7: EACCES",
        "7 B lists . by 7:",
    ];
    assert_eq!(world.log, expected);
}

#[test]
fn a_removed_directory_is_gone_for_whoever_knew_it() {
    check(
        "0 A makes d
         0 A creates d/f
         1 B lists d
         2 A removes d
         3 A unlinks d/f
         3 A removes d
         4 B creates d/g
         4 B lists .",
        "1 B lists d: f
         2 A removes d: ENOTEMPTY
         4 B creates d/g: ENOENT
         4 B lists .: ",
    );
}

#[test]
fn what_one_did_to_a_file_and_not_pushed_is_in_time_before_another_unlinks_it() {
    check(
        "0 A creates f
         1 B sees f
         2 A chmods f 600
         2 B unlinks f
         3 A creates f
         4 B sees f",
        "1 B sees f: file 644, 0 bytes, 1 names, at 0
         4 B sees f: file 644, 0 bytes, 1 names, at 3",
    );
}

/// Everybody works in a directory of their own, in a directory of all.
const APART: &str = "0 A makes a
     0 A creates a/f
     10 A syncs
     20 B makes b
     25 A yields
     30 A sees .
     35 B makes c
     40 B syncs
     45 A yields
     50 A falls silent";

#[test]
fn who_is_cut_off_finds_its_way_to_what_is_its_own_although_others_work_beside_it() {
    check(
        &format!(
            "{APART}
             60 A sees .
             2100 A creates a/g
             2100 A sees a/g
             2200 A sees .
             3000 A is back
             4100 A sees .
             4100 B lists a"
        ),
        "10 A syncs: done
         30 A sees .: directory 755, 0 bytes, 3 names, at 0
         40 B syncs: done
         60 A waits
         2060 A sees .: directory 755, 0 bytes, 3 names, at 0
         2100 A sees a/g: file 644, 0 bytes, 1 names, at 2100
         2200 A sees .: directory 755, 0 bytes, 3 names, at 0
         4100 A sees .: directory 755, 0 bytes, 5 names, at 35
         4100 B lists a: f g",
    );
}

#[test]
fn who_remembers_late_times_is_told_when_they_are_known() {
    check_with(
        |settings| Settings { has_memory: true, ..settings },
        &format!(
            "{APART}
             60 A sees .
             3000 A is back
             4100 A sees ."
        ),
        "10 A syncs: done
         20 A is asked for root:access
         20 B waits
         25 A forgets root:access
         25 A forgets root:/b
         30 A sees .: directory 755, 0 bytes, 3 names, at 0
         35 A forgets root:/c
         40 B syncs: done
         40 A is asked for root:times
         45 A forgets root:times
         60 A waits
         2060 A sees .: directory 755, 0 bytes, 3 names, at 0
         3060 A forgets root:times
         4100 A sees .: directory 755, 0 bytes, 5 names, at 35",
    );
}

#[test]
fn who_has_been_quiet_for_long_renews_its_session_before_it_is_asked_for_what_it_could_tell() {
    check_with(
        |settings| Settings { has_memory: true, ..settings },
        "0 A makes a
         0 A creates a/f
         10 A syncs
         19950 B makes b
         19950 A yields",
        "10 A syncs: done
         19950 A is asked for root:access
         19950 B waits
         19950 A forgets root:access
         19950 A forgets root:/b
         20950 A is asked for root:times",
    );
}

#[test]
fn nobody_is_told_late_times_whose_session_has_ended() {
    check(
        &format!(
            "{APART}
             20000 A sees .
             40000 A is back"
        ),
        "10 A syncs: done
         30 A sees .: directory 755, 0 bytes, 3 names, at 0
         40 B syncs: done
         20000 A waits
         41000 A sees .: directory 755, 0 bytes, 5 names, at 35",
    );
}
