//! Whatever may happen to machines and wires happens to one after the other, while tokens move between accounts.
//!
//! `CROFT_WEATHER_ROUNDS` and `CROFT_WEATHER_SEED` ask for more; `cargo xtask long network` does 100 rounds.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    bank::{self, TOKENS},
    cell::{can_mount, text},
    draw::{Draw, number},
    spread::{Spread, pass, until},
    wires::Wires,
};

const MACHINES: usize = 4;
/// Longer than a session.
const LONG: Duration = Duration::from_secs(22);

/// What happens to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Blow {
    Cut,
    Pull,
    Slow,
    Freeze,
    Kill,
}

const BLOWS: [Blow; 5] = [Blow::Cut, Blow::Pull, Blow::Slow, Blow::Freeze, Blow::Kill];

#[test]
fn every_token_is_there_exactly_once_whatever_happens_to_machines_and_wires() {
    let Some(wires) = can_mount().then(|| Wires::real(MACHINES)).flatten() else { return };
    let rounds = number("CROFT_WEATHER_ROUNDS", 3);
    let seed = number("CROFT_WEATHER_SEED", 1);
    let mut spread = Spread::new(wires, MACHINES);
    let root = spread.machines[0].path.clone();
    bank::open(&root);
    let (is_over, moves) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = (1u64..)
        .zip(&spread.machines)
        .map(|(index, machine)| {
            let (mount, is_over) = (machine.path.clone(), Arc::clone(&is_over));
            let (moves, draw) = (Arc::clone(&moves), Draw::new(seed * 100 + index));
            thread::spawn(move || bank::work(&mount, draw, &is_over, &moves))
        })
        .collect();
    let mut draw = Draw::new(seed);
    let mut calm: BTreeMap<Blow, Duration> = BTreeMap::new();
    for round in 0..rounds {
        let blow = *draw.pick(&BLOWS).unwrap();
        let machine = draw.below(MACHINES as u64) as usize;
        // In the suite other tests are there for that.
        let is_long = draw.below(6) == 5 && rounds > 10;
        let pause = if is_long { LONG } else { Duration::from_millis(draw.below(4_000)) };
        let enough = moves.load(Ordering::Relaxed) + draw.below(100);
        until("moving tokens", || moves.load(Ordering::Relaxed) > enough);
        eprintln!("round {round}: {blow:?} {machine} for {} ms", pause.as_millis());
        let start = Instant::now();
        strike(&mut spread, blow, machine, pause);
        let before = moves.load(Ordering::Relaxed);
        until("moving tokens again", || moves.load(Ordering::Relaxed) > before + 20);
        let took = calm.entry(blow).or_default();
        *took = start.elapsed().saturating_sub(pause).max(*took);
    }
    is_over.store(true, Ordering::Relaxed);
    let refused: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
    let everything: BTreeMap<u64, u64> = (0..TOKENS).map(|token| (token, 1)).collect();
    for machine in &spread.machines {
        let found = bank::count(&machine.path);
        assert_eq!(found, everything, "at {} with seed {seed}", machine.path.display());
        let output = machine.ask(&["fsck"]);
        let said = text(&[output.stdout, output.stderr].concat());
        assert!(output.status.success(), "{} with seed {seed}: {said}", machine.path.display());
    }
    let (moves, lost) =
        (moves.load(Ordering::Relaxed), (0..MACHINES).map(|index| spread.lost(index)));
    eprintln!(
        "{moves} moves through {rounds} rounds from seed {seed}; {refused} were refused or found nothing, {} files tell \
         what was lost; it took at most this long after each blow until tokens moved again: {calm:?}",
        lost.sum::<usize>()
    );
}

/// Something happens to a machine, and is over after a while.
fn strike(spread: &mut Spread, blow: Blow, machine: usize, pause: Duration) {
    match blow {
        Blow::Cut => spread.wires.cut(machine),
        Blow::Pull => spread.wires.pull(machine),
        Blow::Slow => spread.wires.slow(machine, 256),
        Blow::Freeze => {
            let _frozen = spread.freeze(machine);
            return pass(pause);
        }
        Blow::Kill => spread.kill(machine),
    }
    pass(pause);
    match blow {
        Blow::Kill => spread.machines[machine].start(&[]),
        _ => spread.wires.heal(machine),
    }
}
