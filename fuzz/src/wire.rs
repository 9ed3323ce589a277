//! Whatever one machine may say to another: canonical bytes, or refused.

use wire::{Frame, decode, encode};

/// Reads the bytes as a frame; what is accepted must be written as the same bytes.
pub fn wire(bytes: &[u8]) {
    if let Ok(frame) = decode::<Frame>(bytes) {
        assert_eq!(encode(&frame), bytes, "a second encoding");
    }
}

#[cfg(test)]
mod tests {
    use base::{FileId, Instant, Rng};
    use directory::{
        Act, Actor, Birth, Operation,
        message::{Ask, Request},
    };
    use lease::{
        Name,
        message::{Up, Upward},
    };
    use wire::{About, Message};

    use super::*;

    fn about() -> About {
        About { group: crate::wax::group(), epoch: 1 }
    }

    fn rescue() -> Vec<u8> {
        let (key, time) = (base::PublicKey::from_bytes([1; 32]), Instant::from_secs(1));
        let seat = group::Seat { key, incarnation: 0 };
        let what = group::Rescue { number: 2, seat, height: 5, time, at: 8 };
        let rescue = group::Sealed { what, seal: group::Seal([9; 64]) };
        about().encode(Message::Changes(vec![rescue.decision()]))
    }

    fn sample() -> Vec<u8> {
        let name = Name::new(b"name").unwrap();
        let birth = Birth { file: "3.1".parse().unwrap(), serial: 5, is_leased: true };
        let directory = FileId::ROOT;
        let act = Act::Create { directory, name, mode: 0o644, birth };
        let actor = Actor { uid: 1, gid: 2, groups: vec![3] };
        let operations = vec![Operation { actor, time: 9, act }; 3];
        let lease = Upward { session: 1, stamp: Instant::from_secs(1), body: Up::Renew };
        let request = Request { lease, ask: Some(Ask::Batch { number: 1, operations }) };
        about().encode(Message::Request(request))
    }

    #[test]
    fn the_samples_are_accepted() {
        assert!([sample(), rescue()].iter().all(|bytes| decode::<Frame>(bytes).is_ok()));
    }

    #[test]
    fn every_small_change_is_refused_or_canonical() {
        let mut rng = Rng::new(11);
        for round in 0..20_000 {
            let mut bytes = if round % 2 == 0 { sample() } else { rescue() };
            for _ in 0..=rng.below(3) {
                let at = rng.index(bytes.len());
                match rng.below(3) {
                    0 => bytes[at] ^= 1 << rng.below(8),
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, rng.next_u64() as u8),
                }
            }
            wire(&bytes);
        }
    }
}
