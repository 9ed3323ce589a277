//! What machines ask one another out of turn, the answers, and what one keeps of its cell: canonical or refused.

use wire::{Answer, Envelope, Query, decode, encode};

/// Reads the bytes as each of them; what is accepted must be written as the same bytes.
pub fn query(bytes: &[u8]) {
    read(bytes);
}

/// How many of them the bytes are.
fn read(bytes: &[u8]) -> usize {
    let membership = host::hostile::is_membership(bytes);
    usize::from(is_one::<Query>(bytes))
        + usize::from(is_one::<Answer>(bytes))
        + usize::from(membership)
}

fn is_one<E: Envelope>(bytes: &[u8]) -> bool {
    let read = decode::<E>(bytes);
    if let Ok(read) = &read {
        assert_eq!(encode(read), bytes, "a second encoding");
    }
    read.is_ok()
}

#[cfg(test)]
mod tests {
    use base::{FileId, Rng, SecretKey};
    use lease::Client;
    use overlay::{Profile, UserName, Users};
    use wire::{Io, IoReply, Neighbour, Person, Ticket, Whom};

    use super::*;
    use crate::noise::small_change;

    fn samples() -> Vec<Vec<u8>> {
        let (key, client) = (SecretKey::from_seed([2; 32]).public(), Client(3));
        let (serial, file, group) = (4, FileId::ROOT, crate::wax::group());
        let addresses = vec!["127.0.0.1:7".parse().unwrap()];
        let name = UserName::new("alice").unwrap();
        let user = Profile { name, key, uid: 7, gid: 7, groups: [20].into() };
        let neighbour = Neighbour { client, key, addresses, expires: 9, users: Users::Any };
        let users = Some(vec![user.clone()]);
        let ticket = Ticket { client, machines: vec![neighbour.clone()], users };
        let io = Io::Write { offset: Some(3), bytes: vec![1, 2] };
        let queries = [
            Query::Read { serial, file: file.clone(), offset: 2, length: 3 },
            Query::Find { group, serial },
            Query::Rights { group, machine: key, serial, file: file.clone() },
            Query::Who(Whom::Client(client)),
            Query::Io { serial, file, who: (5, 6), io },
        ];
        let answers = [
            Answer::Joined(Box::new(ticket)),
            Answer::Refused("no".into()),
            Answer::Machine(neighbour),
            Answer::People(vec![Person { user, is_removed: true }]),
            Answer::Io(IoReply::Refused(28)),
        ];
        let samples = queries.iter().map(encode).chain(answers.iter().map(encode));
        samples.chain([host::hostile::membership()]).collect()
    }

    #[test]
    fn the_samples_are_accepted() {
        assert!(samples().iter().all(|sample| read(sample) >= 1));
    }

    #[test]
    fn every_small_change_is_refused_or_canonical() {
        let (samples, mut rng) = (samples(), Rng::new(15));
        for round in 0..10_000 {
            let mut bytes = samples[round % samples.len()].clone();
            small_change(&mut bytes, &mut rng);
            query(&bytes);
        }
    }
}
