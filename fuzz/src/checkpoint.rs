//! What lies on a member's disk: checkpoints, whole states and records of its log, read or refused.

use base::{Instant, PublicKey, decode, encode};
use directory::Settings;
use group::Record;
use node::{Base, Identity, Recovery};

use crate::{
    script::Script,
    wax::{Wax, group, seat},
};

/// Reads the bytes as each of them. A member that begins with what was read has been begun.
pub fn checkpoint(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let Some(kind) = script.byte() else { return };
    let rest = script.rest();
    match kind % 3 {
        0 => begin(Base::Stored(rest)),
        1 => begin(Base::Whole(rest)),
        _ => {
            if let Ok(read) = decode::<Vec<Record>>(rest, rest.len()) {
                assert_eq!(encode(&read), rest, "a second encoding");
            }
        }
    }
}

fn identity() -> Identity<Wax> {
    let authority = Some(PublicKey::from_bytes([7; 32]));
    Identity { group: group(), seat: seat(0), authority, notary: Wax(seat(0).key) }
}

fn begin(base: Base<'_>) {
    let now = Instant::from_secs(1);
    let (settings, group) = (Settings::default(), group::Settings::default());
    if let Ok(recovery) = Recovery::new(settings, group, identity(), base, 0, now) {
        let mut out = Vec::new();
        let member = recovery.finish(&mut out);
        assert_eq!(member.height(), member.replica().tip().height);
    }
}

#[cfg(test)]
mod tests {
    use base::{Machine as _, Rng};
    use directory::Users;
    use group::Tip;
    use lease::Client;
    use node::{Input, Member, Output};

    use super::*;
    use crate::noise::small_change;

    /// A checkpoint, a whole state and a record, as a member makes them.
    fn samples() -> [Vec<u8>; 3] {
        let now = Instant::from_secs(1);
        let (settings, group) = (Settings::default(), group::Settings::default());
        let tip = Tip::first(vec![seat(0)]).unwrap();
        let mut member = Member::new(settings, group, identity(), tip, now);
        let mut out = Vec::new();
        for client in 1..4 {
            let input = Input::Admit { client: Client(client), users: Users::Any };
            member.step(now, input, &mut out);
        }
        let record = out.iter().find_map(|output| match output {
            Output::Persist { record, .. } => Some(record.clone()),
            _ => None,
        });
        member.step(now, Input::Persisted { mark: 3 }, &mut Vec::new());
        let stored = member.checkpoint().unwrap().state;
        let whole = member.whole_state().unwrap();
        let with = |kind: u8, bytes: Vec<u8>| [&[kind][..], &bytes].concat();
        [with(0, stored), with(1, whole), with(2, record.unwrap())]
    }

    #[test]
    fn the_samples_are_accepted() {
        let [stored, whole, record] = samples();
        let (settings, group) = (Settings::default(), group::Settings::default());
        for base in [Base::Stored(&stored[1..]), Base::Whole(&whole[1..])] {
            let now = Instant::from_secs(1);
            let begun =
                Recovery::new(settings.clone(), group.clone(), identity(), base, 0, now).unwrap();
            assert_eq!(begun.height(), 3);
        }
        assert!(decode::<Vec<Record>>(&record[1..], record.len()).is_ok());
    }

    #[test]
    fn a_state_without_members_is_refused() {
        let [stored, ..] = samples();
        let tip = Tip::first(vec![seat(0)]).unwrap();
        let place = stored.windows(32).position(|bytes| bytes == tip.seats[0].key.as_bytes());
        // The leader comes first, since when it leads, then the epoch and how many seats there are.
        let count = place.unwrap() + 36 + 16 + 8;
        assert_eq!(stored[count..count + 4], [1, 0, 0, 0]);
        let none = [&stored[..count], &[0; 4], &stored[count + 4 + 36..]].concat();
        checkpoint(&none);
    }

    #[test]
    fn every_small_change_is_refused_or_read() {
        let (samples, mut rng) = (samples(), Rng::new(14));
        for round in 0..3_000 {
            let mut bytes = samples[round % 3][1..].to_vec();
            small_change(&mut bytes, &mut rng);
            bytes.insert(0, (round % 3) as u8);
            checkpoint(&bytes);
        }
    }
}
