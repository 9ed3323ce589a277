//! kill -9: what is found afterwards is what some prefix of the work gives, and nothing that was synced
//! is missing.
//!
//! The rule, for one program that works alone:
//! - names, links, modes and attributes are those after the first P operations, for some P;
//! - P is not before the last `fsync` or `fsyncdir` that succeeded;
//! - a file that was synced, or was moved over another, is as it was then or newer, byte by byte;
//! - bytes written since may be there or not.
//!
//! `CROFT_KILL_ROUNDS` and `CROFT_KILL_SEED` ask for more; `cargo xtask long kill` does 500.

mod found;
mod model;
mod script;

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use rustix::process::{Signal, kill_process};

use crate::{
    cell::Cell,
    draw::{Draw, number},
};
use model::Model;
use script::{Outcome, Step};

/// Operations of one round.
const STEPS: u64 = 250;
/// Calls of the client that so many operations make, about: it dies at one of them.
const CALLS: u64 = 1_500;
/// After so long what was done has gone to the group.
const PUSHED: Duration = Duration::from_millis(1_300);

#[test]
fn after_kill_nine_there_is_a_prefix_of_the_work_with_all_that_was_synced() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let rounds = number("CROFT_KILL_ROUNDS", 20);
    let first = number("CROFT_KILL_SEED", 1);
    let mut tally = Tally::default();
    for seed in first..first + rounds {
        if !round(seed, &mut tally) {
            return;
        }
    }
    let Tally { deaths, synced, kept, lost, slowest } = tally;
    eprintln!(
        "{rounds} rounds from seed {first}: died {deaths} times in the midst of a call; {synced} \
         operations were synced, {kept} more were found, {lost} were not; the slowest start took \
         {} ms",
        slowest.as_millis()
    );
    assert!(deaths > 0 && synced > 0, "nothing was at stake");
}

#[derive(Default)]
struct Tally {
    deaths: u64,
    synced: usize,
    kept: usize,
    lost: usize,
    slowest: Duration,
}

/// How a machine is killed.
enum Death {
    /// By itself, in the midst of this call.
    Call(u64),
    /// From outside, so long after this step began.
    Signal(u64, Duration),
}

fn draw_death(draw: &mut Draw) -> Death {
    match draw.below(2) {
        // The first call is our own look whether it is mounted.
        0 => Death::Call((draw.below(CALLS) + 1).max(2)),
        _ => Death::Signal(draw.below(STEPS), Duration::from_micros(draw.below(3_000))),
    }
}

fn round(seed: u64, tally: &mut Tally) -> bool {
    let mut draw = Draw::new(seed);
    let death = draw_death(&mut draw);
    let die_at = match death {
        Death::Call(call) => call.to_string(),
        Death::Signal(..) => u64::MAX.to_string(),
    };
    let Some(mut cell) = Cell::new(&["--die-at", &die_at]) else { return false };
    let mut model = Model::new();
    let pauses_at = (draw.below(4) == 0).then(|| draw.below(STEPS));
    let killer = Killer::new(&cell);
    let mut script = String::new();
    for count in 0..STEPS {
        if let Death::Signal(step, after) = death
            && step == count
        {
            killer.kill_after(after);
        }
        if pauses_at == Some(count) {
            // Nothing will be said: it is a wait for the machine to do what it does by itself.
            let (_open, never) = mpsc::channel::<()>();
            let _ = never.recv_timeout(PUSHED);
        }
        let step = Step::draw(&mut draw, &model);
        let outcome = step.perform(&cell.path);
        script += &format!("{} {step}\n", count + 1);
        let expected = model.perform(&step);
        match outcome {
            Outcome::Dead => {
                tally.deaths += 1;
                break;
            }
            Outcome::Done(result) => {
                assert_eq!(result, expected, "seed {seed}, step {count}: {step}");
                if result.is_ok() {
                    model.note_done(&step);
                }
            }
        }
    }
    cell.kill();
    let start = Instant::now();
    cell.start(&[]);
    tally.slowest = tally.slowest.max(start.elapsed());
    let found = found::look(&cell.path);
    match model.judge(&found) {
        Ok(prefix) => {
            tally.synced += model.synced();
            tally.kept += prefix - model.synced();
            tally.lost += model.len() - prefix;
        }
        Err(what) => {
            panic!("seed {seed}: {what}\ndone:\n{script}found:\n{}", found.list());
        }
    }
    cell.stop();
    true
}

/// Kills a machine at a moment that nobody chose.
struct Killer {
    orders: mpsc::Sender<Duration>,
}

impl Killer {
    fn new(cell: &Cell) -> Killer {
        let (orders, ordered) = mpsc::channel::<Duration>();
        let pid = cell.pid();
        std::thread::spawn(move || {
            let Ok(after) = ordered.recv() else { return };
            // Ends early only when the round is over, and then nobody is to be killed.
            if let Err(mpsc::RecvTimeoutError::Timeout) = ordered.recv_timeout(after) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Killer { orders }
    }

    fn kill_after(&self, after: Duration) {
        let _ = self.orders.send(after);
    }
}
