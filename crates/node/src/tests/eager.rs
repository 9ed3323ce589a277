//! A machine that wants to join again and again, and an issuer that lets in ever more.

use base::{Digest, Domain, Instant, Machine as _, PublicKey, SecretKey};
use group::{Ed25519, Seat, Tip};
use overlay::{Invitation, Issuer, Patrons, Refused, Secret, Terms};

use wire::{Join, Whereabouts};

use crate::{Identity, Input, Member, Output, Settings};

const NOW: u64 = 1_000;

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

/// A member that is alone and whose log is safe at once.
fn member() -> Member<Ed25519> {
    let seat = Seat { key: key(1).public(), incarnation: 0 };
    let identity = Identity {
        group: Digest::of(Domain::new("test v1"), b""),
        seat,
        authority: Some(key(9).public()),
        notary: Ed25519::new(key(1)),
    };
    let first = Tip::first(vec![seat]).unwrap();
    Member::new(Settings::default(), Default::default(), identity, first, Instant::from_secs(1))
}

/// A machine that has moved for the so-many-eth time.
fn join(issuer: u8, seed: [u8; 32], number: u64) -> Join {
    let issuer = Issuer::by(&key(9), key(issuer), NOW + 500);
    let (expires, certificate_expires_max) = (NOW + 60, NOW + 900);
    let terms = Terms { count: 1, expires, certificate_expires_max, patrons: Patrons::Any };
    let machine = SecretKey::from_seed(seed);
    let secret = Secret::new(std::array::from_fn(|index| seed[index]));
    let invitation = Invitation::new(&issuer, &secret, terms).unwrap();
    let certificate = invitation.certify(&machine, NOW + 900);
    let addresses = vec![([127, 0, 0, 1], 1 + number as u16).into()];
    Join::new(certificate.unwrap(), Whereabouts { addresses, number }, &machine, NOW)
}

/// How many of these become decisions, and how many are told to come later.
fn count(
    member: &mut Member<Ed25519>,
    at: u64,
    joins: impl Iterator<Item = Join>,
) -> (usize, usize) {
    let (before, now) = (member.height(), Instant::from_secs(at));
    let mut late = 0;
    for join in joins {
        let mut out = Vec::new();
        member.step(now, Input::Join(Box::new(join)), &mut out);
        let marks = out.iter().filter_map(|output| match output {
            Output::Persist { mark, .. } => Some(*mark),
            _ => None,
        });
        if let Some(mark) = marks.max() {
            member.step(now, Input::Persisted { mark }, &mut out);
        }
        let is_late = |output: &Output| {
            matches!(output, Output::Joined { outcome: Err(Refused::JoinsTooMany), .. })
        };
        late += out.iter().filter(|output| is_late(output)).count();
    }
    ((member.height() - before) as usize, late)
}

fn seed(number: u16) -> [u8; 32] {
    let mut seed = [7; 32];
    seed[..2].copy_from_slice(&number.to_le_bytes());
    seed
}

#[test]
fn a_machine_that_joins_again_and_again_has_few_decisions_made() {
    let mut member = member();
    let moves = |range: std::ops::Range<u64>| range.map(|number| join(10, [8; 32], number));
    assert_eq!(count(&mut member, 10, moves(1..40)), (8, 31));
    assert_eq!(count(&mut member, 10, [join(10, [6; 32], 1)].into_iter()), (1, 0), "another may");
    assert_eq!(count(&mut member, 14, moves(40..80)), (2, 38), "later it may again, a little");
    assert!(member.book().client(&public([8; 32])).is_some());
}

#[test]
fn an_issuer_that_lets_in_ever_more_keeps_no_other_from_it() {
    let mut member = member();
    let many = (0..300).map(|number| join(10, seed(number), 1));
    assert_eq!(count(&mut member, 10, many), (256, 44));
    let others = (300..310).map(|number| join(11, seed(number), 1));
    assert_eq!(count(&mut member, 10, others), (10, 0));
}

fn public(seed: [u8; 32]) -> PublicKey {
    SecretKey::from_seed(seed).public()
}
