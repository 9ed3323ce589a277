//! The pager's behaviour, in scripts that can be read without the code.
//!
//! A line of a script is a second, who, what they do, and an object; one `nothing` lets time pass. The
//! pager's answers come with the second at which they come. `matching` and `free` say that it begins
//! and ends to match lookups to cleaning.

use base::{Duration, Instant, Machine};

use super::{Input, Output, Pager, Stage, Token};
use crate::settings::Pager as Settings;

/// Cleaning after 180 s, discarding after 600 s; small enough for every limit to be met.
const SMALL: Settings = Settings {
    lookups_max: 4,
    batch_max: 2,
    loads_max: 3,
    referenced_expected: 9,
    dirty_threshold: 2,
    clean_after: Duration::from_secs(180),
    clean_max: 3,
    discard_after: Duration::from_secs(600),
    writes_max: 1,
};

struct World {
    pager: Pager<char, ()>,
    log: Vec<String>,
}

impl World {
    /// Lets the pager's deadlines pass one by one until this second.
    fn pass(&mut self, second: u64) {
        let end = Instant::from_secs(second);
        while let Some(at) = self.pager.wake_at().filter(|&at| at <= end) {
            self.act(at, |pager, out| pager.tick(at, out));
            assert_ne!(self.pager.wake_at(), Some(at), "a tick that changes nothing");
        }
    }

    fn input(&mut self, second: u64, input: Input<char, ()>) {
        let now = Instant::from_secs(second);
        self.act(now, |pager, out| pager.step(now, input, out));
    }

    fn act(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut Pager<char, ()>, &mut Vec<Output<char, ()>>),
    ) {
        let was_matching = self.pager.is_matching();
        let mut out = Vec::new();
        act(&mut self.pager, &mut out);
        let second = now.as_nanos() / 1_000_000_000;
        let mut log = |line: String| self.log.push(format!("{second} {line}"));
        if !was_matching && self.pager.is_matching() {
            log("matching".into());
        }
        for output in out {
            log(match output {
                Output::Granted { token, key } => format!("{} has {key}", token.0),
                Output::Refused { token } => format!("{} refused", token.0),
                Output::Load { key } => format!("load {key}"),
                Output::Write { key, .. } => format!("write {key}"),
                Output::Discarded { key, .. } => format!("discard {key}"),
            });
        }
        if was_matching && !self.pager.is_matching() {
            log("free".into());
        }
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let second = words[0].parse().expect("a line starts with a second");
        let key = || words[3].chars().next().expect("a line ends with an object");
        let token = || Token(words[1].parse().expect("a task is a number"));
        self.pass(second);
        match words[1..] {
            ["nothing"] => {}
            ["store", "loads", _] => self.input(second, Input::Loaded { key: key(), value: () }),
            ["store", "wrote", _] => self.input(second, Input::Cleaned { key: key() }),
            [_, "wants", _] => self.input(second, Input::Lookup { token: token(), key: key() }),
            [_, "changes", _] => self.input(second, Input::SetDirty { key: key() }),
            [_, "drops", _] => self.input(second, Input::Drop { key: key() }),
            _ => panic!("what is {line:?}?"),
        }
    }
}

fn check_with(pager: Pager<char, ()>, script: &str, expected: &str) {
    let mut world = World { pager, log: Vec::new() };
    script.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| world.line(line));
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(world.log, expected, "after\n{script}");
}

fn small() -> Pager<char, ()> {
    Pager::new(SMALL).expect("the settings stand together")
}

fn check(script: &str, expected: &str) {
    check_with(small(), script, expected);
}

/// Lines that make these objects dirty in this second, and let go of them.
fn make_dirty(second: u64, keys: &str) -> String {
    let of = |key| {
        format!(
            "{second} 0 wants {key}\n{second} store loads {key}\n\
             {second} 0 changes {key}\n{second} 0 drops {key}\n"
        )
    };
    keys.chars().map(of).collect()
}

/// What the pager says to those lines while it is free.
fn made_dirty(second: u64, keys: &str) -> String {
    let lines: Vec<_> =
        keys.chars().map(|key| format!("{second} load {key}\n{second} 0 has {key}")).collect();
    lines.join("\n")
}

#[test]
fn a_miss_is_loaded_and_a_hit_is_granted_at_once() {
    check(
        "0 1 wants a
         1 store loads a
         2 2 wants a
         3 1 drops a
         4 2 drops a
         5 3 wants a",
        "0 load a
         1 1 has a
         2 2 has a
         5 3 has a",
    );
}

#[test]
fn lookups_of_an_object_on_its_way_share_one_load() {
    check(
        "0 1 wants a
         0 2 wants a
         1 store loads a",
        "0 load a
         1 1 has a
         1 2 has a",
    );
}

#[test]
fn lookups_of_one_object_take_one_place_at_the_store() {
    check(
        "0 1 wants a
         0 2 wants a
         0 3 wants a
         0 4 wants b
         0 5 wants c
         0 6 wants d
         1 store loads a",
        "0 load a
         0 load b
         0 load c
         1 1 has a
         1 2 has a
         1 3 has a
         1 load d",
    );
}

#[test]
fn lookups_that_join_a_load_are_bounded() {
    check(
        "0 0 wants a
         0 1 wants a
         0 2 wants a
         0 3 wants a
         0 4 wants a
         0 5 wants a
         1 store loads a
         2 5 wants a",
        "0 load a
         0 5 refused
         1 0 has a
         1 1 has a
         1 2 has a
         1 3 has a
         1 4 has a
         2 5 has a",
    );
}

#[test]
fn a_lookup_that_waits_for_an_object_is_granted_with_it_and_needs_no_turn() {
    let script = make_dirty(0, "abc")
        + "1 1 wants x
           1 2 wants y
           1 3 wants x
           2 store wrote a
           3 4 wants x
           4 store loads x
           5 5 wants x";
    let expected = made_dirty(0, "abc") + "\n0 matching\n0 write a\n2 write b\n2 load x\n";
    check(&script, &(expected + "4 1 has x\n4 3 has x\n4 4 has x\n5 5 has x"));
}

#[test]
fn bad_settings_are_refused() {
    let check = |settings: Settings, expected: &str| {
        let refused = Pager::<char, ()>::new(settings).expect_err("they are bad").to_string();
        assert!(refused.contains(expected), "{refused}");
    };
    check(Settings { batch_max: 0, ..SMALL }, "`batch_max` must be above 0");
    check(Settings { batch_max: 10, ..SMALL }, "`batch_max` ≤ `referenced_expected`");
    check(Settings { clean_after: Duration::ZERO, ..SMALL }, "`clean_after` must be above 0");
    check(Settings { dirty_threshold: 0, ..SMALL }, "`dirty_threshold`");
}

#[test]
fn what_tasks_hold_throttles_nothing() {
    let mut world = World { pager: small(), log: Vec::new() };
    for key in 'a'..='l' {
        world.line(&format!("0 1 wants {key}"));
        world.line(&format!("0 store loads {key}"));
    }
    let referenced = world.pager.meters(Instant::from_secs(100)).referenced;
    assert_eq!((referenced.level, referenced.throttled), (12, Duration::ZERO));
}

#[test]
fn a_dirty_object_is_written_three_minutes_after_it_was_let_go() {
    check(
        "0 1 wants a
         0 store loads a
         5 1 changes a
         10 1 drops a
         500 nothing",
        "0 load a
         0 1 has a
         190 write a",
    );
}

#[test]
fn a_dirty_object_that_is_taken_up_in_time_waits_anew() {
    check(
        "0 1 wants a
         0 store loads a
         0 1 changes a
         0 1 drops a
         179 2 wants a
         300 2 drops a
         500 nothing",
        "0 load a
         0 1 has a
         179 2 has a
         480 write a",
    );
}

#[test]
fn an_object_changed_while_it_is_written_is_written_again() {
    check(
        "0 1 wants a
         0 store loads a
         0 1 changes a
         0 1 drops a
         181 2 wants a
         182 2 changes a
         183 2 drops a
         184 store wrote a
         362 nothing
         363 nothing
         364 store wrote a
         999 nothing",
        "0 load a
         0 1 has a
         180 write a
         181 2 has a
         363 write a
         783 discard a",
    );
}

#[test]
fn a_clean_object_is_discarded_ten_minutes_after_it_was_let_go() {
    check(
        "0 1 wants a
         0 store loads a
         10 1 drops a
         500 2 wants a
         501 2 drops a
         9999 nothing",
        "0 load a
         0 1 has a
         500 2 has a
         1101 discard a",
    );
}

#[test]
fn at_the_size_limit_the_least_recently_referenced_object_leaves_early() {
    check(
        "0 1 wants a
         0 store loads a
         0 2 wants b
         0 store loads b
         0 3 wants c
         0 store loads c
         1 1 drops a
         2 2 drops b
         3 3 drops c
         4 1 wants a
         5 1 drops a
         6 4 wants d
         6 store loads d
         6 4 drops d",
        "0 load a
         0 1 has a
         0 load b
         0 2 has b
         0 load c
         0 3 has c
         4 1 has a
         6 load d
         6 4 has d
         6 discard b",
    );
}

#[test]
fn writes_at_the_store_are_bounded() {
    let script = make_dirty(0, "ab") + "200 nothing\n 202 store wrote a";
    check(&script, &(made_dirty(0, "ab") + "\n180 write a\n202 write b"));
}

#[test]
fn lookups_at_the_store_are_bounded_and_those_that_wait_keep_their_order() {
    check(
        "0 1 wants a
         0 2 wants b
         0 3 wants c
         0 4 wants d
         0 5 wants e
         1 store loads b
         2 store loads a",
        "0 load a
         0 load b
         0 load c
         1 2 has b
         1 load d
         2 1 has a
         2 load e",
    );
}

#[test]
fn a_lookup_that_finds_the_queue_full_is_refused_and_a_hit_is_not() {
    check(
        "0 9 wants z
         0 store loads z
         0 1 wants a
         0 2 wants b
         0 3 wants c
         0 4 wants d
         0 5 wants e
         0 6 wants f
         0 7 wants g
         0 8 wants h
         0 8 wants z",
        "0 load z
         0 9 has z
         0 load a
         0 load b
         0 load c
         0 8 refused
         0 8 has z",
    );
}

#[test]
fn up_to_the_threshold_nothing_is_throttled() {
    let script = make_dirty(0, "ab") + "1 1 wants x";
    check(&script, &(made_dirty(0, "ab") + "\n1 load x"));
}

#[test]
fn over_the_threshold_lookups_stop_and_the_cleaner_ignores_its_timers() {
    let script = make_dirty(0, "abc") + "1 1 wants x";
    check(&script, &(made_dirty(0, "abc") + "\n0 matching\n0 write a"));
}

#[test]
fn rate_matching_releases_one_lookup_for_each_object_cleaned_and_a_batch_at_the_end() {
    let script = make_dirty(0, "abc")
        + "1 1 wants u
           1 2 wants v
           1 3 wants x
           1 4 wants y
           2 store wrote a
           3 store wrote b
           3 store loads u
           4 store wrote c";
    let expected = made_dirty(0, "abc")
        + "
           0 matching
           0 write a
           2 write b
           2 load u
           3 write c
           3 load v
           3 load x
           3 free
           3 1 has u
           3 load y";
    let expected: String = expected.lines().map(|line| line.trim().to_owned() + "\n").collect();
    check(&script, expected.trim_end());
}

#[test]
fn while_there_are_too_many_dirty_objects_cleaning_releases_nothing() {
    let script = "0 1 wants a
                  0 store loads a
                  0 1 changes a
                  0 2 wants b
                  0 store loads b
                  0 2 changes b
                  0 3 wants c
                  0 store loads c
                  0 3 changes c
                  0 4 wants d
                  0 store loads d
                  0 4 changes d
                  0 5 wants e
                  0 store loads e
                  0 5 changes e
                  1 1 drops a
                  1 2 drops b
                  1 3 drops c
                  1 4 drops d
                  1 5 drops e
                  2 6 wants x
                  2 7 wants y
                  2 8 wants z
                  3 store wrote a
                  4 store wrote b
                  5 store wrote c";
    // From the start of matching, 9C holds b c, then with d and e four: over the threshold.
    check(
        script,
        "0 load a
         0 1 has a
         0 load b
         0 2 has b
         0 load c
         0 3 has c
         0 load d
         0 4 has d
         0 load e
         0 5 has e
         1 matching
         1 write a
         3 write b
         4 write c
         5 write d
         5 load x",
    );
}

#[test]
fn a_lookup_that_was_let_go_stops_again_with_too_many_dirty_objects() {
    let hold = |keys: &str| -> String {
        keys.chars()
            .map(|key| format!("0 0 wants {key}\n0 store loads {key}\n0 0 changes {key}\n"))
            .collect()
    };
    let script = hold("abcde")
        + "1 1 wants u
           1 2 wants v
           1 3 wants x
           2 0 drops a
           2 0 drops b
           2 0 drops c
           3 4 wants y
           4 store wrote a
           5 0 drops d
           5 0 drops e
           6 store loads u
           7 store wrote b";
    let expected = made_dirty(0, "abcde")
        + "\n1 load u\n1 load v\n1 load x\n2 matching\n2 write a\n4 write b\n6 1 has u\n";
    // `a` let `y` go, but the store had no room; when it has, there are 3 dirty objects.
    check(&script, &(expected + "7 write c\n7 load y"));
}

#[test]
fn a_lookup_that_comes_during_matching_waits_although_little_is_dirty() {
    let script = make_dirty(0, "abc")
        + "2 store wrote a
           3 1 wants x
           4 store wrote b";
    let expected = made_dirty(0, "abc") + "\n0 matching\n0 write a\n2 write b\n";
    // Nobody waited when `a` was cleaned, and that release is not saved up: `x` goes with `b`.
    check(&script, &(expected + "4 write c\n4 load x\n4 free"));
}

#[test]
fn matching_ends_when_tasks_take_the_last_dirty_objects_up_again() {
    let script = make_dirty(0, "abc")
        + "1 1 wants x
           2 2 wants b
           3 3 wants c";
    let expected = made_dirty(0, "abc") + "\n0 matching\n0 write a\n2 2 has b\n3 3 has c\n";
    check(&script, &(expected + "3 load x\n3 free"));
}

#[test]
fn what_waits_beyond_a_batch_goes_when_the_batch_has_been_loaded() {
    let script = make_dirty(0, "abc")
        + "1 1 wants u
           1 2 wants v
           1 3 wants x
           1 4 wants y
           2 9 wants b
           2 9 wants c
           3 store loads u
           4 store loads v";
    let expected = made_dirty(0, "abc") + "\n0 matching\n0 write a\n2 9 has b\n2 9 has c\n";
    let released = "2 load u\n2 load v\n2 free\n3 1 has u\n4 2 has v\n4 load x\n4 load y";
    check(&script, &(expected + released));
}

#[test]
fn hits_are_granted_while_lookups_stand_still() {
    let script = make_dirty(0, "abc") + "1 1 wants x\n 2 2 wants c\n 3 3 wants a";
    let expected = made_dirty(0, "abc") + "\n0 matching\n0 write a\n2 2 has c\n3 3 has a";
    check(&script, &expected);
}

#[test]
fn without_the_throttle_lookups_go_on_and_the_cleaner_hurries_in_vain() {
    let script = make_dirty(0, "abc") + "1 1 wants x\n 1 store loads x";
    let expected = made_dirty(0, "abc") + "\n0 matching\n0 write a\n1 load x\n1 1 has x";
    check_with(small().without_throttle(), &script, &expected);
}

#[test]
fn by_default_the_numbers_are_the_papers() {
    let settings = Settings { lookups_max: 9_999, loads_max: 9_999, ..Settings::default() };
    let mut pager = Pager::<u64, ()>::new(settings).expect("the settings stand together");
    let now = Instant::from_secs(1);
    // Gives how many objects the store was asked for.
    let step = |pager: &mut Pager<u64, ()>, input| {
        let mut out = Vec::new();
        pager.step(now, input, &mut out);
        out.iter().filter(|output| matches!(output, Output::Load { .. })).count()
    };
    for key in 0..2_001 {
        assert!(!pager.is_matching(), "with {key} dirty objects");
        step(&mut pager, Input::Lookup { token: Token(key), key });
        step(&mut pager, Input::Loaded { key, value: () });
        step(&mut pager, Input::SetDirty { key });
        step(&mut pager, Input::Drop { key });
    }
    assert!(pager.is_matching());
    for key in 10_000..15_000 {
        assert_eq!(step(&mut pager, Input::Lookup { token: Token(key), key }), 0);
    }
    // The cleaner's queue is empty when the last 64 objects have been given to be written.
    let last = 2_001 - 64 - 1;
    for key in 0..last {
        assert_eq!(step(&mut pager, Input::Cleaned { key }), 1, "for object {key}");
        assert!(pager.is_matching());
        step(&mut pager, Input::Loaded { key: 10_000 + key, value: () });
    }
    let released = step(&mut pager, Input::Cleaned { key: last });
    assert_eq!(released, 1 + 2_000, "one for the object, and a batch for the empty queue");
    assert!(!pager.is_matching());
    assert_eq!(pager.stage(&2_000), Some(Stage::Cleaning));
    assert_eq!(pager.meters(now).dirty.level_max, 2_001);
}
