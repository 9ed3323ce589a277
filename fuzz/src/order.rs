//! What a group is asked to decide and what comes with it: orders, joins, the book of machines, names; canonical or
//! refused.

use base::{decode, encode};
use lease::Name;
use node::{Book, Order};
use wire::{Join, Whereabouts};

/// Reads the bytes as each of them; what is accepted must be written as the same bytes.
pub fn order(bytes: &[u8]) {
    if let Ok(read) = Order::of(bytes) {
        assert_eq!(encode(&read), bytes, "a second encoding");
    }
    if let Ok(read) = decode::<Join>(bytes, 64 << 10) {
        assert_eq!(encode(&read), bytes, "a second encoding");
        assert!(read.whereabouts.addresses.len() <= Whereabouts::ADDRESSES_MAX);
    }
    if let Ok(read) = decode::<Book>(bytes, 64 << 20) {
        assert_eq!(encode(&read), bytes, "a second encoding");
    }
    if let Some(name) = Name::new(bytes) {
        assert!(!bytes.is_empty() && bytes.len() <= Name::BYTES_MAX, "{name:?}");
        assert!(!bytes.contains(&b'/') && !bytes.contains(&0), "{name:?}");
        assert!(!matches!(bytes, b"." | b".."), "{name:?}");
    }
}

/// Bytes that are accepted, as some of the above.
#[cfg(test)]
pub(crate) fn samples() -> Vec<Vec<u8>> {
    use base::{Instant, SecretKey};
    use directory::{Command, message::Request};
    use lease::{
        Client,
        message::{Up, Upward},
    };
    use overlay::{
        Consent, Decree, Enrolment, Invitation, Issuer, IssuerRevocation, Patrons, Profile,
        Revocation, Secret, Terms, UserName,
    };

    let [authority, machine] = [1, 2].map(|seed| SecretKey::from_seed([seed; 32]));
    let terms =
        Terms { count: 2, expires: 1_000, certificate_expires_max: 9_000, patrons: Patrons::Any };
    let issuer = Issuer::by(&authority, machine.clone(), 2_000);
    let invitation = Invitation::new(&issuer, &Secret::new([3; 16]), terms).unwrap();
    let certificate = invitation.certify(&machine, 9_000).unwrap();
    let addresses = vec!["127.0.0.1:7".parse().unwrap(), "[::1]:8".parse().unwrap()];
    let join = Join::new(certificate, Whereabouts { addresses, number: 4 }, &machine, 5);
    let consent = Consent::new(&authority, authority.public(), machine.public());
    let join = join.with(vec![consent]);
    let name = UserName::new("alice").unwrap();
    let user = Profile { name, key: machine.public(), uid: 7, gid: 7, groups: [20].into() };
    let enrolment = Enrolment::new(&issuer, user, 5).unwrap();
    let revocation = Revocation::new(&issuer, machine.public(), 5);
    let lease = Upward { session: 1, stamp: Instant::from_secs(1), body: Up::Renew };
    let command = Command::Heard { client: Client(1), request: Request { lease, ask: None } };
    let by = Some((machine.public(), group::Seal([7; 64])));
    let of_issuer = IssuerRevocation::new(&authority, machine.public(), 5);
    let decree = |decree| Order::Decree { decree: Box::new(decree), heard: 6 };
    let orders = [
        Order::Do { command, by },
        Order::Do { command: Command::Tick, by: None },
        Order::Join(Box::new(join.clone())),
        decree(Decree::Revoke(revocation)),
        decree(Decree::Enrol(enrolment)),
        decree(Decree::RevokeIssuer(of_issuer)),
    ];
    let book = Book::default();
    orders.iter().map(encode).chain([encode(&join), encode(&book), b"a name".to_vec()]).collect()
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;
    use crate::noise::small_change;

    #[test]
    fn the_samples_are_accepted() {
        let samples = samples();
        assert!(samples[..6].iter().all(|bytes| Order::of(bytes).is_ok()));
        assert!(decode::<Join>(&samples[6], 64 << 10).is_ok());
        assert!(decode::<Book>(&samples[7], 64 << 10).is_ok());
        assert!(Name::new(&samples[8]).is_some());
    }

    #[test]
    fn every_small_change_is_refused_or_canonical() {
        let (samples, mut rng) = (samples(), Rng::new(13));
        for round in 0..10_000 {
            let mut bytes = samples[round % samples.len()].clone();
            small_change(&mut bytes, &mut rng);
            order(&bytes);
        }
    }
}
