//! What groups say of their filters: canonical or refused, within bounds, and never the end of a machine.

use base::{decode, encode};
use locator::{
    Array, Bounds, Group, Print,
    message::{Tier, Update},
};

const BYTES_MAX: u64 = 1 << 16;

/// Reads the bytes as updates, each with its length in two bytes before it, and has a machine hear them.
pub fn locator(bytes: &[u8]) {
    let mut array = Array::new(Bounds { groups_max: 4, bytes_max: BYTES_MAX });
    (0..4).map(Group).for_each(|group| assert!(array.join(group)));
    let mut rest = bytes;
    for number in 0u32.. {
        let Some((length, behind)) = rest.split_first_chunk() else { break };
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (update, behind) = behind.split_at(length);
        rest = behind;
        let Ok(read) = decode::<Update>(update, Update::BYTES_MAX) else { continue };
        assert_eq!(encode(&read), update, "a second encoding");
        let group = Group(number % 5);
        let known = array.version(group, read.tier);
        let is_taken = array.hear(group, &read).is_ok();
        assert!(!is_taken || known.is_some_and(|known| known < read.version), "old news");
        let (recent, all) = array.bytes();
        assert!(recent + all <= BYTES_MAX, "more than was allowed");
        for word in [0, 1, u64::MAX / 3, u64::MAX] {
            let hint = array.look_up(Print::from_words(word, word.rotate_left(number)));
            assert!(hint.group().is_none_or(|group| group.0 < 4), "a group that nobody knows");
        }
    }
    for group in (0..4).map(Group) {
        array.leave(group);
        assert!(Tier::EACH.iter().all(|&tier| array.version(group, tier).is_none()));
    }
    assert_eq!(array.bytes(), (0, 0), "who leaves leaves nothing behind");
}

#[cfg(test)]
mod tests {
    use base::{Instant, Machine, Rng};
    use locator::{
        Home,
        home::{Input, Kind, Output, Settings, Threshold},
    };

    use super::*;

    /// What a group says while files come and go.
    fn sample(kind: Kind) -> Vec<Vec<u8>> {
        let print =
            |number: u64| Print::from_words(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number);
        let mut out = Vec::new();
        let settings = Settings { kind, threshold: Threshold(0), ..Settings::default() };
        let mut home = Home::new(settings, (0..40).map(print).collect(), 0, &mut out);
        for number in 40..60 {
            home.step(Instant::START, Input::Added(print(number)), &mut out);
        }
        let update = |output: &Output| match output {
            Output::Publish(update) | Output::Answer(update) => encode(update),
        };
        out.iter().map(update).collect()
    }

    fn framed(updates: &[Vec<u8>]) -> Vec<u8> {
        let frame = |bytes: &Vec<u8>| [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat();
        updates.iter().flat_map(frame).collect()
    }

    #[test]
    fn the_samples_are_accepted() {
        for kind in [Kind::Fuse, Kind::Bloom { bits_per_file: 8 }] {
            for update in sample(kind) {
                assert!(decode::<Update>(&update, Update::BYTES_MAX).is_ok());
            }
            locator(&framed(&sample(kind)));
        }
    }

    #[test]
    fn every_small_change_is_refused_or_canonical() {
        let mut rng = Rng::new(14);
        let samples = [Kind::Fuse, Kind::Bloom { bits_per_file: 8 }].map(sample);
        for round in 0..3_000 {
            let mut updates = samples[round % 2].clone();
            for _ in 0..=rng.below(4) {
                let which = rng.index(updates.len());
                let bytes = &mut updates[which];
                // Most of a filter is its bits; what else there is stands before them.
                let at = if rng.chance(0.7) {
                    rng.index(bytes.len().min(24))
                } else {
                    rng.index(bytes.len())
                };
                match rng.below(3) {
                    0 => bytes[at] ^= 1 << rng.below(8),
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, rng.next_u64() as u8),
                }
            }
            locator(&framed(&updates));
        }
    }
}
