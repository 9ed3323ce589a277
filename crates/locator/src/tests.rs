//! The two sides together: nothing is missed once it was told, and no filter makes an answer wrong.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Instant, Machine, Rng, decode, encode};
use proptest::prelude::*;

use crate::{
    Array, Bounds, Found, Group, Hint, Home, Print, Refusal, Salt, Seeker, Sizing,
    bloom::{Bits, Shape},
    fuse::Fuse,
    home::{self, Kind, Threshold},
    message::{Body, Places, Tier, Update},
    seeker::{self, Token, Why},
};

fn print(number: u64) -> Print {
    Print::of(&Salt::new([1; 16]), format!("/a/path/{number}").as_bytes())
}

fn settings(kind: Kind) -> home::Settings {
    home::Settings { kind, recent: Sizing::fixed(16), ..home::Settings::default() }
}

const KINDS: [Kind; 2] = [Kind::Bloom { bits_per_file: 8 }, Kind::Fuse];

/// What a group says, all of it through bytes.
fn updates(out: Vec<home::Output>) -> Vec<Update> {
    let update = |output| match output {
        home::Output::Publish(update) | home::Output::Answer(update) => update,
    };
    let updates = out.into_iter().map(update);
    updates.map(|update| decode(&encode(&update), Update::BYTES_MAX).unwrap()).collect()
}

#[derive(Clone, Debug)]
enum Deed {
    Add(u64),
    Remove(u64),
    Use(u64),
    /// The next update is lost on its way.
    Lose,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        8 => (0..400u64).prop_map(Deed::Add),
        4 => (0..400u64).prop_map(Deed::Remove),
        4 => (0..400u64).prop_map(Deed::Use),
        1 => Just(Deed::Lose),
    ];
    proptest::collection::vec(deed, 0..600)
}

proptest! {
    #[test]
    fn nothing_is_missed_once_it_was_told(
        deeds in deeds(),
        kind in prop_oneof![Just(KINDS[0]), Just(KINDS[1])],
    ) {
        let group = Group(7);
        let mut out = Vec::new();
        let mut home = Home::new(settings(kind), (0..50).map(print).collect(), 5, &mut out);
        let mut array = Array::new(Bounds::default());
        array.join(group);
        let mut present: BTreeSet<u64> = (0..50).collect();
        let mut losses = 0;
        for (at, deed) in (1u64..).zip(&deeds) {
            let input = match *deed {
                Deed::Add(number) => {
                    present.insert(number);
                    home::Input::Added(print(number))
                }
                Deed::Remove(number) => {
                    present.remove(&number);
                    home::Input::Removed(print(number))
                }
                Deed::Use(number) if present.contains(&number) => {
                    home::Input::Used { print: print(number), found: Found::Walk }
                }
                Deed::Use(_) => continue,
                Deed::Lose => {
                    losses += 1;
                    continue;
                }
            };
            home.step(Instant::from_millis(at), input, &mut out);
            for update in updates(std::mem::take(&mut out)) {
                if losses > 0 {
                    losses -= 1;
                    continue;
                }
                tell(&mut array, &mut home, group, &update);
            }
        }
        // Enough time for everything to be told, and a loss at the very end to be noticed.
        let end = Instant::from_secs(100);
        home.tick(end, &mut out);
        home.step(end, home::Input::Added(print(1_000)), &mut out);
        home.tick(end + Duration::from_secs(100), &mut out);
        for tier in Tier::EACH {
            home.step(end, home::Input::Wanted(tier), &mut out);
        }
        for update in updates(out) {
            tell(&mut array, &mut home, group, &update);
        }
        prop_assert_eq!(home.files(), present.iter().filter(|n| **n != 1_000).count() as u64 + 1);
        for &number in &present {
            prop_assert_eq!(array.look_up(print(number)).group(), Some(group), "{} is missed", number);
        }
    }
}

/// Tells an update, and the whole filter if one before was missed.
fn tell(array: &mut Array, home: &mut Home, group: Group, update: &Update) {
    match array.hear(group, update) {
        Ok(()) | Err(Refusal::Old) => (),
        Err(Refusal::Gap) => {
            let mut out = Vec::new();
            home.step(Instant::START, home::Input::Wanted(update.tier), &mut out);
            for update in updates(out) {
                let taken = array.hear(group, &update);
                assert!(matches!(taken, Ok(()) | Err(Refusal::Old | Refusal::Gap)), "{taken:?}");
            }
        }
        Err(refusal) => panic!("an honest update is refused: {refusal:?}"),
    }
}

/// Seeks, and says what came of it: the world in which filters are stale, damaged and made up.
struct World {
    rng: Rng,
    seeker: Seeker,
    /// Where each path really is.
    truth: BTreeMap<u64, Group>,
    tokens: u64,
}

const GROUPS: u32 = 12;
const BYTES_MAX: u64 = 1 << 20;

/// What may be wrong with a seeker, to show that it would be noticed.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Takes hints for answers.
    Credulous,
    /// Asks again when the answer is no.
    Stubborn,
    /// Says nothing when the answer is no.
    Mute,
}

impl World {
    fn new(seed: u64) -> World {
        let bounds = Bounds { groups_max: GROUPS as usize, bytes_max: BYTES_MAX };
        let bounded = seeker::Settings { bounds, asked_max: 8, ..Default::default() };
        let mut world = World {
            rng: Rng::new(seed),
            seeker: Seeker::new(bounded),
            truth: BTreeMap::new(),
            tokens: 0,
        };
        for number in 0..600 {
            let group = Group(world.rng.below(u64::from(GROUPS)) as u32);
            world.truth.insert(number, group);
        }
        let mut out = Vec::new();
        for group in (0..GROUPS).map(Group) {
            world.seeker.step(Instant::START, seeker::Input::Joined(group), &mut out);
            let kind = KINDS[group.0 as usize % 2];
            let prints = world.truth.iter().filter(|(_, home)| **home == group);
            let prints = prints.map(|(number, _)| print(*number)).collect();
            let mut told = Vec::new();
            Home::new(settings(kind), prints, 0, &mut told);
            for update in updates(told) {
                world.seeker.step(Instant::START, seeker::Input::Heard { group, update }, &mut out);
            }
        }
        assert_eq!(out, []);
        // Then files move, and nobody is told: every filter is stale.
        for number in 0..200 {
            let group = Group(world.rng.below(u64::from(GROUPS)) as u32);
            world.truth.insert(number, group);
        }
        world
    }

    /// Something that nobody honest would send, and that may still be well formed.
    fn hostile(&mut self) -> Update {
        let rng = &mut self.rng;
        let tier = *rng.pick(&Tier::EACH);
        let version = [rng.below(20), rng.next_u64(), u64::MAX][rng.index(3)];
        let shape = Shape::new(1 + rng.below(40_000) as u32, 1 + rng.below(32) as u8).unwrap();
        let fill = rng.unit();
        let body = match rng.below(5) {
            0 => Body::Nothing,
            1 => {
                let mut bits = Bits::empty(shape);
                for at in 0..shape.bits() {
                    if rng.chance(fill) {
                        bits.flip(at);
                    }
                }
                Body::Bits(bits)
            }
            2 | 3 => {
                let mut places: Vec<u32> =
                    (0..rng.below(300)).map(|_| rng.below(50_000) as u32).collect();
                places.sort_unstable();
                places.dedup();
                Body::Changes { since: rng.below(20), places: Places::new(&places) }
            }
            _ => {
                // It claims what is somebody else's.
                let prints: Vec<Print> = (0..rng.below(300)).map(print).collect();
                Body::Fuse(Fuse::build(&prints, 300).unwrap())
            }
        };
        Update { tier, version, body }
    }

    fn hear_hostile(&mut self) {
        let update = self.hostile();
        let mut bytes = encode(&update);
        if self.rng.chance(0.3) {
            let at = self.rng.index(bytes.len());
            bytes[at] ^= 1 << self.rng.below(8);
        }
        let Ok(update) = decode::<Update>(&bytes, Update::BYTES_MAX) else { return };
        let group = Group(self.rng.below(u64::from(GROUPS) + 2) as u32);
        let mut out = Vec::new();
        self.seeker.step(Instant::START, seeker::Input::Heard { group, update }, &mut out);
        assert!(out.len() <= 1, "one update, at most one answer");
    }

    /// Seeks a path to the end: why it must be walked to, or nothing if it was found. Says what a checker
    /// finds wrong.
    fn seek(&mut self, number: u64, mutant: Mutant) -> Result<Option<Why>, &'static str> {
        self.tokens += 1;
        let token = Token(self.tokens);
        let mut out = Vec::new();
        let input = seeker::Input::Seek { token, print: print(number) };
        self.seeker.step(Instant::START, input, &mut out);
        let mut questions = 0;
        while let Some(output) = out.pop() {
            let output = match (mutant, output) {
                (Mutant::Credulous, seeker::Output::Ask { group, token }) => {
                    seeker::Output::Found { token, group, found: Found::All }
                }
                (Mutant::Stubborn, seeker::Output::Walk { token, why: Why::FalseHit }) => {
                    let input = seeker::Input::Seek { token, print: print(number) };
                    self.seeker.step(Instant::START, input, &mut out);
                    continue;
                }
                (Mutant::Mute, seeker::Output::Walk { why: Why::FalseHit, .. }) => continue,
                (_, output) => output,
            };
            match output {
                seeker::Output::Ask { group, .. } => {
                    questions += 1;
                    if questions > 1 {
                        return Err("more than one question");
                    }
                    let is_there = self.truth.get(&number) == Some(&group);
                    let input = seeker::Input::Said { token, group, is_there };
                    self.seeker.step(Instant::START, input, &mut out);
                }
                seeker::Output::Found { group, .. } => {
                    let is_right = self.truth.get(&number) == Some(&group);
                    return if is_right { Ok(None) } else { Err("a wrong answer") };
                }
                seeker::Output::Walk { why, .. } => return Ok(Some(why)),
                other => panic!("{other:?}"),
            }
        }
        Err("no answer")
    }

    /// The first thing wrong in a world of many hostile updates.
    fn run(seed: u64, mutant: Mutant) -> Result<(), &'static str> {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.hear_hostile();
            for _ in 0..10 {
                let number = world.rng.below(700);
                world.seek(number, mutant)?;
            }
            let (recent, all) = world.seeker.array().bytes();
            if recent + all > BYTES_MAX {
                return Err("too much memory");
            }
            if world.seeker.array().slabs() > 4 * GROUPS as usize {
                return Err("too much to look at");
            }
        }
        if world.seeker.wake_at().is_some() { Err("a question is left open") } else { Ok(()) }
    }
}

#[test]
fn whatever_filters_claim_a_path_is_found_where_it_is_or_walked_to() {
    for seed in 0..20 {
        assert_eq!(World::run(seed, Mutant::None), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_seeker_that_is_wrong_is_noticed() {
    let first = |mutant| (0..20).find_map(|seed| World::run(seed, mutant).err());
    assert_eq!(first(Mutant::Credulous), Some("a wrong answer"));
    assert_eq!(first(Mutant::Stubborn), Some("more than one question"));
    assert_eq!(first(Mutant::Mute), Some("no answer"));
}

#[test]
fn without_hostile_updates_most_paths_are_found_at_once() {
    let mut world = World::new(1);
    let found = (200..600).filter(|&number| world.seek(number, Mutant::None) == Ok(None));
    let found = found.count();
    assert!(found > 320, "{found} of 400");
}

fn joined(groups: u32) -> Array {
    let mut array = Array::new(Bounds::default());
    (0..groups).for_each(|group| assert!(array.join(Group(group))));
    array
}

fn claiming(group: u32, numbers: impl Iterator<Item = u64>, array: &mut Array) {
    let mut out = Vec::new();
    Home::new(settings(Kind::Fuse), numbers.map(print).collect(), 1, &mut out);
    for update in updates(out) {
        array.hear(Group(group), &update).unwrap();
    }
}

#[test]
fn one_answer_is_a_hit_and_none_or_several_are_a_miss() {
    let mut array = joined(2);
    claiming(0, 0..10, &mut array);
    claiming(1, 5..15, &mut array);
    assert_eq!(array.look_up(print(1)), Hint::All(Group(0)));
    assert_eq!(array.look_up(print(12)), Hint::All(Group(1)));
    assert_eq!(array.look_up(print(7)), Hint::Miss);
}

#[test]
fn who_leaves_takes_its_filters_along_and_changes_nothing_else() {
    let mut array = joined(2);
    claiming(0, 0..10, &mut array);
    claiming(1, 5..15, &mut array);
    array.leave(Group(1));
    assert_eq!(array.look_up(print(7)), Hint::All(Group(0)));
    assert_eq!(array.look_up(print(12)), Hint::Miss);
    let nothing = Update { tier: Tier::All, version: 9, body: Body::Nothing };
    assert_eq!(array.hear(Group(1), &nothing), Err(Refusal::Stranger));
}

#[test]
fn there_is_a_bound_to_groups_and_bytes() {
    let mut array = Array::new(Bounds { groups_max: 2, bytes_max: 1_000 });
    assert!(array.join(Group(0)) && array.join(Group(1)) && array.join(Group(0)));
    assert!(!array.join(Group(2)));
    let bits = |bits| Body::Bits(Bits::empty(Shape::new(bits, 3).unwrap()));
    let update = |version, body| Update { tier: Tier::All, version, body };
    assert_eq!(array.hear(Group(0), &update(1, bits(8_064))), Err(Refusal::Full));
    assert_eq!(array.hear(Group(0), &update(2, bits(4_000))), Ok(()));
    assert_eq!(array.hear(Group(1), &update(1, bits(4_000))), Ok(()));
    assert_eq!(array.hear(Group(1), &update(2, bits(4_000))), Ok(()));
    assert_eq!(array.hear(Group(1), &update(3, bits(64))), Err(Refusal::Full));
    assert_eq!(array.hear(Group(0), &update(2, bits(64))), Err(Refusal::Old));
}

#[test]
fn a_filter_that_claims_everything_is_refused_at_once_or_bit_by_bit() {
    let mut array = joined(2);
    let shape = Shape::for_files(1_000, 8);
    let update = |version, body| Update { tier: Tier::All, version, body };
    let mut full = Bits::empty(shape);
    (0..shape.bits()).for_each(|at| full.flip(at));
    assert_eq!(array.hear(Group(0), &update(1, Body::Bits(full))), Err(Refusal::Crowded));

    claiming(1, 0..10, &mut array);
    assert_eq!(array.hear(Group(0), &update(2, Body::Bits(Bits::empty(shape)))), Ok(()));
    for (version, start) in (2..).zip((0..8_000).step_by(1_000)) {
        let places = Places::new(&(start..start + 1_000).collect::<Vec<u32>>());
        let body = Body::Changes { since: version, places };
        let taken = array.hear(Group(0), &update(version + 1, body));
        let expected = match start {
            0..5_000 => Ok(()),
            5_000 => Err(Refusal::Crowded),
            _ => Err(Refusal::Misfit),
        };
        assert_eq!(taken, expected, "from {start}");
    }
    assert_eq!(array.look_up(print(1)), Hint::All(Group(1)), "what claimed too much is gone");
}

#[test]
fn others_are_told_beyond_the_threshold_and_of_the_rest_after_a_while() {
    let mut out = Vec::new();
    let kind = Kind::Bloom { bits_per_file: 8 };
    let threshold = Threshold(30_000_000);
    let settings = home::Settings { threshold, ..settings(kind) };
    let mut home = Home::new(settings, (0..1_000).map(print).collect(), 0, &mut out);
    out.clear();
    let at = Instant::from_secs;
    let mut added = 1_000;
    while out.is_empty() {
        home.step(at(1), home::Input::Added(print(added)), &mut out);
        added += 1;
    }
    // Three in a hundred of 8,192 bits, and a path finds half of its six set already.
    assert!((1_041..1_130).contains(&added), "{added}");
    assert!(matches!(&out[..], [home::Output::Publish(Update { body: Body::Changes { .. }, .. })]));
    out.clear();
    assert_eq!(home.wake_at(), None);
    home.step(at(2), home::Input::Added(print(5_000)), &mut out);
    assert_eq!((out.len(), home.wake_at()), (0, Some(at(12))));
    home.tick(at(12), &mut out);
    assert_eq!((out.len(), home.wake_at()), (1, None));
}

#[test]
fn a_small_change_is_told_in_few_bytes() {
    for kind in KINDS {
        let mut out = Vec::new();
        let settings = home::Settings { threshold: Threshold(0), ..settings(kind) };
        let mut home = Home::new(settings, (0..10_000).map(print).collect(), 0, &mut out);
        out.clear();
        home.step(Instant::START, home::Input::Added(print(20_000)), &mut out);
        let bytes: usize = updates(out).iter().map(|update| encode(update).len()).sum();
        assert!(bytes < 60, "{bytes} bytes");
    }
}

/// Runs uses of one home, each found by the first level if it is in there.
fn grown(files: u64, sizing: Sizing) -> u64 {
    let mut out = Vec::new();
    let settings = home::Settings { recent: sizing, ..settings(Kind::Fuse) };
    let mut home = Home::new(settings, Vec::new(), 0, &mut out);
    let mut array = joined(1);
    let mut rng = Rng::new(1);
    for at in 0..200_000 {
        for update in updates(std::mem::take(&mut out)) {
            array.hear(Group(0), &update).unwrap();
        }
        let print = print(rng.below(files));
        let found = match array.look_up(print) {
            Hint::Recent(_) => Found::Recent,
            _ => Found::Walk,
        };
        home.step(Instant::from_nanos(at), home::Input::Used { print, found }, &mut out);
    }
    home.recent_files_max()
}

#[test]
fn the_first_level_grows_until_it_finds_enough() {
    // 900 of 1,000 equally likely paths: the next doubling after 512.
    assert_eq!(grown(1_000, Sizing::default()), 1_024);
    assert_eq!(grown(30, Sizing::default()), 64, "no more than needed");
    assert_eq!(grown(1_000, Sizing { files_max: 256, ..Sizing::default() }), 256);
}

#[test]
fn the_first_level_stays_small_where_growing_does_not_help() {
    assert!(grown(1_000_000, Sizing::default()) <= 128);
}

#[test]
fn a_group_that_does_not_answer_is_walked_around() {
    let settings = seeker::Settings { asked_max: 2, ..Default::default() };
    let mut seeker = Seeker::new(settings);
    let mut out = Vec::new();
    seeker.step(Instant::START, seeker::Input::Joined(Group(3)), &mut out);
    let mut told = Vec::new();
    Home::new(self::settings(Kind::Fuse), (0..9).map(print).collect(), 0, &mut told);
    for update in updates(told) {
        seeker.step(Instant::START, seeker::Input::Heard { group: Group(3), update }, &mut out);
    }
    for token in 0..3 {
        let input = seeker::Input::Seek { token: Token(token), print: print(token) };
        seeker.step(Instant::from_millis(token), input, &mut out);
    }
    let ask = |token| seeker::Output::Ask { token: Token(token), group: Group(3) };
    let walk = |token, why| seeker::Output::Walk { token: Token(token), why };
    assert_eq!(out, [ask(0), ask(1), walk(2, Why::Busy)]);
    out.clear();
    assert_eq!(seeker.wake_at(), Some(Instant::from_millis(500)));
    seeker.tick(Instant::from_millis(500), &mut out);
    let late = seeker::Input::Said { token: Token(0), group: Group(3), is_there: true };
    seeker.step(Instant::from_millis(501), late, &mut out);
    assert_eq!(out, [walk(0, Why::Silence)], "who answers late is not heard");
    out.clear();
    seeker.step(Instant::from_millis(502), seeker::Input::Left(Group(3)), &mut out);
    assert_eq!((out, seeker.wake_at()), (vec![walk(1, Why::Silence)], None));
}
