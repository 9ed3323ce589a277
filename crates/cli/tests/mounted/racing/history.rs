//! Whether what several programs saw can have happened in one order, in which nothing comes before what had ended
//! when it began.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use sim::reference::FileSystem;

use super::model::{Deed, Next, Program, Seen, tree};

/// A deed, what was seen, and when.
#[derive(Clone, Debug)]
pub struct Done {
    pub deed: Deed,
    pub seen: Seen,
    pub from: Duration,
    pub until: Duration,
}

impl Done {
    /// Whether another program did something at the same time.
    pub fn overlaps(&self, histories: &[Vec<Done>]) -> bool {
        histories.iter().any(|history| {
            let after = history.partition_point(|done| done.until < self.from);
            history.get(after).is_some_and(|done| {
                done.from < self.until && (done.from, done.until) != (self.from, self.until)
            })
        })
    }
}

/// So far back it is looked for another order. Whatever was done then has been seen since.
const CHOICES_MAX: usize = 20_000;
/// So many times it is tried otherwise before a deed is given up that nobody has come past.
const EFFORT: usize = 200_000;

/// A moment in the search.
#[derive(Clone)]
struct State {
    tree: FileSystem,
    programs: Vec<Program>,
    /// How many deeds of each program are done.
    done: Vec<usize>,
}

impl State {
    /// By what it is known again: two of one name go on alike, whichever numbers their files and handles have.
    fn name(&self) -> (Vec<usize>, String) {
        let programs: Vec<String> =
            self.programs.iter().map(|program| program.name(&self.tree)).collect();
        (self.done.clone(), format!("{programs:?} {:?}", self.tree.digest()))
    }
}

/// A moment at which there was a choice.
struct Choice {
    state: State,
    /// Who has not been tried.
    turns: Vec<usize>,
}

/// Finds an order, or says where there is none.
pub fn check(histories: &[Vec<Done>]) -> Result<(), String> {
    let mut state = State {
        tree: tree(),
        programs: vec![Program::default(); histories.len()],
        done: vec![0; histories.len()],
    };
    let mut choices: VecDeque<Choice> = VecDeque::new();
    // From these nothing leads on.
    let mut dead = HashSet::new();
    let mut furthest = (0, String::new());
    let mut effort = EFFORT;
    loop {
        let mut turns = turns(histories, &state);
        let Some(turn) = turns.pop() else { return Ok(()) };
        let mut stuck = None;
        if turns.is_empty() {
            stuck = take(histories, &mut state, turn).err();
        } else if dead.contains(&state.name()) {
            stuck = Some(String::new());
        } else {
            choices.push_back(Choice { state: state.clone(), turns });
            if choices.len() > CHOICES_MAX {
                choices.pop_front();
            }
            stuck = take(histories, &mut state, turn).err().or(stuck);
        }
        while let Some(what) = stuck.take() {
            let place: usize = state.done.iter().sum();
            if place > furthest.0 {
                furthest = (place, what);
                effort = EFFORT;
            }
            let Some(choice) = choices.back_mut() else {
                return Err(format!("after {} deeds: {}", furthest.0, furthest.1));
            };
            effort = effort.saturating_sub(1);
            if effort == 0 {
                return Err(format!(
                    "no order was found; after {} deeds: {}",
                    furthest.0, furthest.1
                ));
            }
            match choice.turns.pop() {
                Some(turn) => {
                    state = choice.state.clone();
                    stuck = take(histories, &mut state, turn).err();
                }
                None => {
                    dead.insert(choice.state.name());
                    choices.pop_back();
                    stuck = Some(String::new());
                }
            }
        }
    }
}

/// The programs that can take the next step, the likeliest last.
fn turns(histories: &[Vec<Done>], state: &State) -> Vec<usize> {
    let next = |program: usize| histories[program].get(state.done[program]);
    let first_end = (0..histories.len()).filter_map(|program| Some(next(program)?.until)).min();
    let mut turns: Vec<usize> = (0..histories.len())
        .filter(|program| next(*program).is_some_and(|done| Some(done.from) <= first_end))
        .collect();
    turns.sort_by_key(|program| std::cmp::Reverse(next(*program).map(|done| done.until)));
    turns
}

/// Lets a program take its next step, if it sees then what it saw.
fn take(histories: &[Vec<Done>], state: &mut State, program: usize) -> Result<(), String> {
    let done = &histories[program][state.done[program]];
    match state.programs[program].step(&mut state.tree, done.deed) {
        Next::Step => Ok(()),
        Next::Seen(seen) if seen == done.seen => {
            state.done[program] += 1;
            Ok(())
        }
        Next::Seen(seen) => {
            let Done { deed, seen: saw, from, until } = done;
            Err(format!(
                "program {program} did {deed:?} from {from:?} until {until:?} and saw {saw:?}, where it should have \
                 been {seen:?}"
            ))
        }
    }
}

fn done(deed: Deed, seen: Seen, from: u64, until: u64) -> Done {
    Done { deed, seen, from: Duration::from_millis(from), until: Duration::from_millis(until) }
}

#[test]
fn what_can_have_happened_in_some_order_is_found() {
    let one = vec![
        done(Deed::Make(0), Seen::Done, 0, 10),
        done(Deed::Open(0), Seen::Done, 11, 12),
        done(Deed::Write(7), Seen::Done, 13, 40),
    ];
    let other = vec![
        done(Deed::Look(0), Seen::Failed(2), 5, 6),
        done(Deed::Look(0), Seen::Size(0), 14, 15),
        done(Deed::Look(0), Seen::Size(64), 20, 21),
    ];
    assert_eq!(check(&[one, other]), Ok(()));
}

#[test]
fn what_nobody_can_have_seen_is_told() {
    let make = || vec![done(Deed::Make(0), Seen::Done, 0, 10)];
    let stale = vec![done(Deed::Look(0), Seen::Failed(2), 11, 12)];
    assert!(check(&[make(), stale]).unwrap_err().contains("program 1 did Look(0)"));
    let twice = vec![done(Deed::Make(0), Seen::Done, 0, 10)];
    assert!(check(&[make(), twice]).is_err());
    // One who reads sees the new before another sees the old.
    let one = vec![
        done(Deed::Make(0), Seen::Done, 0, 1),
        done(Deed::Open(0), Seen::Done, 2, 3),
        done(Deed::Write(7), Seen::Done, 4, 40),
    ];
    let early = vec![done(Deed::Look(0), Seen::Size(64), 5, 6)];
    let late = vec![done(Deed::Look(0), Seen::Size(0), 7, 8)];
    assert!(check(&[one, early, late]).is_err());
}
