//! A client that hears a group of four of which one says whatever the bytes make it say: it believes what honest
//! members say, and once.

use std::collections::BTreeSet;

use base::{Duration, Instant};
use group::{Decision, Roll};
use lease::Client;
use wire::{About, Ear, Slot, Word};

use crate::{
    script::Script,
    wax::{Wax, group, seat},
};

const LIAR: usize = 3;

/// What honest members say at a place of the order.
fn truth(slot: &Slot) -> Vec<u8> {
    [slot.height.to_le_bytes().as_slice(), &slot.index.to_le_bytes()].concat()
}

/// Plays the bytes. Says how much was believed.
pub fn ear(bytes: &[u8]) -> usize {
    let mut script = Script::new(bytes);
    let seats = (0..=LIAR).map(seat).collect();
    let roll = Roll { epoch: 1, seats, leader: seat(0) };
    let (me, repeat) = (Client(7), Duration::from_millis(500));
    let mut ear = Ear::new(me, group(), roll, Wax(seat(9).key), repeat).expect("four are a group");
    let mut now = Instant::from_secs(1);
    let mut believed = BTreeSet::new();
    while let Some(()) = happen(&mut ear, &mut script, &mut now, &mut believed) {}
    assert_eq!(ear.roll().epoch, 1, "nobody has shown a change that was decided");
    believed.len()
}

fn happen(
    ear: &mut Ear<Wax>,
    script: &mut Script<'_>,
    now: &mut Instant,
    believed: &mut BTreeSet<(u64, u32)>,
) -> Option<()> {
    let kind = script.byte()?;
    let (height, index) = (u64::from(script.byte()? % 32), u32::from(script.byte()? % 4));
    let (epoch, leader) = (1 + u64::from(kind >> 6), seat(usize::from(kind >> 4 & 7)));
    let slot = Slot { height, index };
    let (from, bytes) = match kind % 8 {
        from @ 0..=2 => (usize::from(from), truth(&slot)),
        3 => (LIAR, truth(&slot)),
        4 | 5 => (LIAR, script.bytes()?.to_vec()),
        6 => {
            let bytes = script.bytes()?;
            if let Ok(changes) = base::decode::<Vec<Decision>>(bytes, bytes.len()) {
                ear.on_changes(&changes);
            }
            return Some(());
        }
        _ => {
            *now = *now + Duration::from_millis(height * 4);
            let mut said = Vec::new();
            ear.say(*now, Vec::new(), &mut said);
            assert!(said.len() <= 8, "a few words to each member");
            return Some(());
        }
    };
    // The liar may speak from any epoch; the others know theirs.
    let about = About { group: group(), epoch: if from == LIAR { epoch } else { 1 } };
    if let Some(heard) = ear.on_word(&seat(from).key, about, Word { slot, leader, bytes }) {
        assert_eq!(heard, truth(&slot), "a lie is believed");
        assert!(believed.insert((height, index)), "it is believed twice");
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    #[test]
    fn two_who_say_the_same_are_believed_once() {
        assert_eq!(ear(&[0, 5, 0, 1, 5, 0, 2, 5, 0, 3, 5, 0]), 1);
    }

    #[test]
    fn a_liar_alone_is_not_believed() {
        assert_eq!(ear(&[4, 5, 0, 1, 9, 5, 6, 0, 1, 9, 3, 5, 0, 0, 6, 0]), 0);
    }

    #[test]
    fn seeded_lies_break_no_promise() {
        let mut rng = Rng::new(32);
        let mut believed = 0;
        for _ in 0..2_000 {
            let count = rng.index(2_000);
            let bytes: Vec<u8> = (0..count).map(|_| rng.next_u64() as u8).collect();
            believed += ear(&bytes);
        }
        assert!(believed > 500, "only {believed} words were believed");
    }
}
