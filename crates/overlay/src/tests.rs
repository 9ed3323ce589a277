//! What a cell believes of machines, and what it does not.

use std::{collections::BTreeMap, net::SocketAddr};

use base::{Digest, Domain, PublicKey, SecretKey, decode, encode};
use proptest::prelude::*;

use crate::{
    Admission, Cell, Certificate, Claim, Code, Decree, Enrolment, Invitation, Issuer,
    IssuerRevocation, Patrons, Permit, Power, Profile, Refused, Register, Renewal, Revocation,
    Secret, Terms, UserName, Warrant, issuer::Issued,
};

/// An invitation can be used until here.
const EXPIRES: u64 = 1_000;
/// A certificate can last until here.
const LASTS: u64 = 9_000;

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

/// The root key of the cell.
fn authority() -> SecretKey {
    key(1)
}

/// An issuer may issue until here.
const ISSUES: u64 = 8_000;

/// One of a cell with this root key, who may do everything that an issuer may.
fn issuer_of(root: &SecretKey) -> Issuer {
    Issuer::by(root, key(100), ISSUES)
}

fn issuer() -> Issuer {
    issuer_of(&authority())
}

/// Who may do no more than this.
fn issuer_with(powers: impl IntoIterator<Item = Power>) -> Issuer {
    let warrant =
        Warrant::new(&authority(), key(101).public(), powers.into_iter().collect(), ISSUES);
    Issuer::new(key(101), warrant, &authority().public()).unwrap()
}

fn terms() -> Terms {
    Terms { count: 1, expires: EXPIRES, certificate_expires_max: LASTS, patrons: Patrons::Any }
}

fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

fn some_users() -> Patrons {
    Patrons::These([user("alice"), user("bob")].into())
}

fn secret(seed: u8) -> Secret {
    Secret::new([seed; 16])
}

fn invitation(seed: u8) -> Invitation {
    Invitation::new(&issuer(), &secret(seed), terms()).unwrap()
}

/// One for so many machines.
fn invitation_for(seed: u8, count: u32) -> Invitation {
    Invitation::new(&issuer(), &secret(seed), Terms { count, ..terms() }).unwrap()
}

/// The certificate of a machine by an invitation.
fn certificate(invitation_seed: u8, machine: &SecretKey) -> Certificate {
    invitation(invitation_seed).certify(machine, LASTS).unwrap()
}

fn verify(certificate: &Certificate, now: u64) -> Result<PublicKey, Refused> {
    certificate.verify(&authority().public(), now).map(|vouched| vouched.machine)
}

fn admit(
    register: &mut Register,
    certificate: &Certificate,
    now: u64,
) -> Result<Admission, Refused> {
    register.admit(&certificate.verify(&authority().public(), now)?, now)
}

fn addresses() -> Vec<SocketAddr> {
    ["127.0.0.1:7000", "[::1]:7001", "10.1.2.3:65535"].map(|text| text.parse().unwrap()).into()
}

fn code() -> Code {
    Code::new(secret(2), pin(), &addresses()).unwrap()
}

fn pin() -> Digest {
    Digest::of(Domain::new("test of codes v1"), b"")
}

/// Reads a code back as whoever has its bytes could have changed it, with a checksum that fits.
fn read_changed(change: impl FnOnce(&mut Vec<u8>)) -> Result<Code, Refused> {
    const LETTERS: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let text = code().text();
    let mut bits = String::new();
    for letter in text.reveal()["croft1".len()..].bytes() {
        let value = LETTERS.iter().position(|known| *known == letter).unwrap();
        bits += &format!("{value:05b}");
    }
    let whole = bits.as_bytes().chunks_exact(8);
    let byte = |bits: &[u8]| u8::from_str_radix(str::from_utf8(bits).unwrap(), 2).unwrap();
    let mut bytes: Vec<u8> = whole.map(byte).collect();
    bytes.truncate(bytes.len() - 4);
    change(&mut bytes);
    let sum = Digest::of(Domain::new("checksum of an invitation's code v1"), &bytes);
    bytes.extend(&sum.as_bytes()[..4]);
    let mut bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    while !bits.len().is_multiple_of(5) {
        bits.push('0');
    }
    let letter = |bits: &[u8]| {
        let value = usize::from_str_radix(str::from_utf8(bits).unwrap(), 2).unwrap();
        char::from(LETTERS[value])
    };
    let letters: String = bits.as_bytes().chunks(5).map(letter).collect();
    Code::read(&format!("croft1{letters}"))
}

#[test]
fn a_machine_is_certified_by_an_invitation_while_the_authority_is_away() {
    let machine = key(3);
    let terms = Terms { patrons: some_users(), ..terms() };
    let invitation = Invitation::new(&issuer(), &secret(2), terms).unwrap();
    let certificate = invitation.certify(&machine, 5_000).unwrap();
    let authority = authority().public();
    let vouched = certificate.verify(&authority, 10).unwrap();
    assert_eq!((vouched.machine, vouched.expires), (machine.public(), 5_000));
    assert_eq!(*vouched.patrons(), some_users());
    assert_eq!(vouched.permit.cell(), Cell::of(&authority));
    assert_eq!(*certificate.machine(), machine.public());
}

#[test]
fn the_founder_comes_by_an_invitation_to_itself() {
    let certificate = certificate(2, &authority());
    assert_eq!(verify(&certificate, 0), Ok(authority().public()));
}

#[test]
fn a_machines_number_follows_from_its_invitation_and_its_place_and_from_nothing_else() {
    let authority = authority().public();
    let number = |certificate: &Certificate| certificate.verify(&authority, 0).unwrap().number(0);
    let one = number(&certificate(2, &key(3)));
    assert_eq!(one, number(&certificate(2, &key(4))));
    assert_eq!(one, number(&invitation(2).certify(&key(3), 77).unwrap()));
    assert_ne!(one, number(&certificate(5, &key(3))));
    assert_ne!(one, certificate(2, &key(3)).verify(&authority, 0).unwrap().number(1));
}

#[test]
fn a_certificate_of_another_cell_is_refused_and_both_cells_are_named() {
    let (ours, other) = (authority().public(), key(9).public());
    let refused = certificate(2, &key(3)).verify(&other, 0).unwrap_err();
    let (found, wanted) = (Cell::of(&ours), Cell::of(&other));
    assert_eq!(refused, Refused::CellOther { found, wanted });
    let text = refused.to_string();
    assert!(text.contains(&found.to_string()) && text.contains(&wanted.to_string()), "{text}");
    let refused = Revocation::new(&issuer(), key(3).public(), 5).verify(&other);
    assert_eq!(refused, Err(Refused::CellOther { found, wanted }));
}

#[test]
fn a_certificate_is_good_until_it_expires_and_not_at_that_moment() {
    let certificate = invitation(2).certify(&key(3), 5_000).unwrap();
    assert!(verify(&certificate, 4_999).is_ok());
    assert_eq!(verify(&certificate, 5_000), Err(Refused::CertificateExpired { seconds: 0 }));
    assert_eq!(verify(&certificate, 5_007), Err(Refused::CertificateExpired { seconds: 7 }));
}

#[test]
fn nobody_makes_a_certificate_last_longer_than_the_authority_allows() {
    let refused = invitation(2).certify(&key(3), LASTS + 1).unwrap_err();
    assert_eq!(refused, Refused::CertificateTooLong);
    let invitation = invitation(2);
    let (own, permit) = invitation.parts();
    let certificate = Certificate::new(permit, own, &key(3), LASTS + 1);
    assert_eq!(verify(&certificate, 0), Err(Refused::CertificateTooLong));
}

#[test]
fn a_renewed_certificate_lasts_longer_and_says_the_same_besides() {
    let terms = Terms { patrons: some_users(), ..terms() };
    let invitation = Invitation::new(&issuer(), &secret(2), terms).unwrap();
    let before = invitation.certify(&key(3), 5_000).unwrap();
    let after = before.renewed(Renewal::new(&issuer(), key(3).public(), 3 * LASTS));
    let authority_key = authority().public();
    let (before, after) = (
        before.verify(&authority_key, 0).unwrap(),
        after.verify(&authority_key, 3 * LASTS - 1).unwrap(),
    );
    assert_eq!((before.expires, after.expires), (5_000, 3 * LASTS));
    assert_eq!((before.machine, before.permit), (after.machine, after.permit));
    assert_eq!(before.number(0), after.number(0));
}

#[test]
fn a_certificate_with_a_renewal_that_is_none_of_its_own_is_refused() {
    let certificate = certificate(2, &key(3));
    let by = |authority: &SecretKey, machine: u8| {
        let renewal = Renewal::new(&issuer_of(authority), key(machine).public(), 3 * LASTS);
        verify(&certificate.renewed(renewal), 0)
    };
    assert_eq!(by(&authority(), 4), Err(Refused::RenewalOther));
    assert!(matches!(by(&key(9), 3), Err(Refused::CellOther { .. })));
    // One that is shorter takes nothing away.
    let shorter = certificate.renewed(Renewal::new(&issuer(), key(3).public(), 7));
    assert_eq!(verify(&shorter, LASTS - 1), Ok(key(3).public()));
}

#[test]
fn a_permit_that_only_names_the_authority_is_refused() {
    let own = invitation(2).parts().0.clone();
    let permit = invitation(2).permit().clone();
    let permit = Issued::new(permit, &issuer_of(&key(9)));
    let certificate = Certificate::new(&permit, &own, &key(3), LASTS);
    let cell = |root: &SecretKey| Cell::of(&root.public());
    let other = Refused::CellOther { found: cell(&key(9)), wanted: cell(&authority()) };
    assert_eq!(verify(&certificate, 0), Err(other.clone()));
    assert_eq!(Invitation::join(own, permit).unwrap_err(), other);
}

#[test]
fn a_certificate_by_another_key_than_the_invitations_is_refused() {
    let invitation = invitation(2);
    let (_, permit) = invitation.parts();
    let certificate = Certificate::new(permit, &key(9), &key(3), LASTS);
    assert_eq!(verify(&certificate, 0), Err(Refused::CertificateForged));
}

#[test]
fn a_certificate_stays_with_the_permit_that_it_was_made_with() {
    let wide = invitation(2);
    let narrow = Terms { patrons: some_users(), ..terms() };
    let narrow = Invitation::new(&issuer(), &secret(2), narrow).unwrap();
    let mut bytes = encode(wide.parts().1);
    let certificate = encode(&narrow.certify(&key(3), LASTS).unwrap());
    bytes.extend(&certificate[encode(narrow.parts().1).len()..]);
    let mixed: Certificate = decode(&bytes, Certificate::BYTES_MAX).unwrap();
    assert_eq!(verify(&mixed, 0), Err(Refused::PermitOther));
}

#[test]
fn nobody_certifies_a_key_that_they_do_not_have() {
    let mut bytes = encode(&certificate(2, &key(3)));
    let other = encode(&certificate(2, &key(4)));
    let proof = bytes.len() - 65;
    bytes[proof..].copy_from_slice(&other[proof..]);
    let certificate: Certificate = decode(&bytes, Certificate::BYTES_MAX).unwrap();
    assert_eq!(verify(&certificate, 0), Err(Refused::KeyNotShown));
}

#[test]
fn the_first_machine_with_an_invitation_is_admitted_and_stays_so() {
    let mut register = Register::default();
    let (first, second) = (certificate(2, &key(3)), certificate(2, &key(4)));
    assert_eq!(admit(&mut register, &first, 10), Ok(Admission::New(0)));
    assert_eq!(admit(&mut register, &second, 11), Err(Refused::InvitationUsed));
    assert_eq!(admit(&mut register, &first, 12), Ok(Admission::Again(0)));
    assert_eq!(admit(&mut register, &certificate(5, &key(4)), 13), Ok(Admission::New(0)));
    assert_eq!(register.used_count(), 2);
}

#[test]
fn an_invitation_for_several_serves_as_many_and_gives_each_a_number_of_its_own() {
    let mut register = Register::default();
    let invited = invitation_for(2, 3);
    let certificates = [3, 4, 5, 6].map(|seed| invited.certify(&key(seed), LASTS).unwrap());
    for (place, certificate) in certificates[..3].iter().enumerate() {
        assert_eq!(admit(&mut register, certificate, 10), Ok(Admission::New(place as u32)));
    }
    assert_eq!(admit(&mut register, &certificates[3], 11), Err(Refused::InvitationUsed));
    assert_eq!(admit(&mut register, &certificates[1], 12), Ok(Admission::Again(1)));
    let numbers: std::collections::BTreeSet<_> =
        (0..3).map(|place| invited.permit().number(place)).collect();
    assert_eq!(numbers.len(), 3);
}

#[test]
fn one_of_several_machines_is_sent_away_alone_and_can_not_come_again_as_another() {
    let (mut register, authority) = (Register::default(), authority().public());
    let invited = invitation_for(2, 5);
    let by = |seed| invited.certify(&key(seed), LASTS).unwrap();
    admit(&mut register, &by(3), 10).unwrap();
    admit(&mut register, &by(4), 10).unwrap();
    let revocation = Revocation::new(&issuer(), key(3).public(), 11);
    assert_eq!(register.revoke(&authority, &revocation, 11), Ok(true));
    // The other one stays, and the holder of the code who was sent away makes no other machine with it.
    assert_eq!(admit(&mut register, &by(4), 12), Ok(Admission::Again(1)));
    assert_eq!(admit(&mut register, &by(5), 12), Err(Refused::InvitationEnded));
    assert_eq!(register.used_count(), 2);
}

#[test]
fn an_invitation_serves_one_machine_at_least_and_no_more_than_can_be() {
    let invite = |count| Invitation::new(&issuer(), &secret(2), Terms { count, ..terms() });
    assert_eq!(invite(0).unwrap_err(), Refused::CountUnfit);
    assert_eq!(invite(Permit::COUNT_MAX + 1).unwrap_err(), Refused::CountUnfit);
    assert_eq!(invite(Permit::COUNT_MAX).unwrap().permit().count, Permit::COUNT_MAX);
    let permit = Permit { count: 0, ..invitation(2).permit().clone() };
    assert!(decode::<Permit>(&encode(&permit), 1_000).is_err());
}

#[test]
fn an_expired_invitation_admits_nobody_and_is_forgotten() {
    let mut register = Register::default();
    let certificate = certificate(2, &key(3));
    let late = Err(Refused::InvitationExpired { seconds: 5 });
    assert_eq!(admit(&mut register.clone(), &certificate, EXPIRES + 5), late);
    assert_eq!(admit(&mut register, &certificate, EXPIRES - 1), Ok(Admission::New(0)));
    register.pass(EXPIRES);
    assert_eq!(register.used_count(), 0);
    let other = self::certificate(2, &key(4));
    // A clock that goes back does not bring it back.
    let refused = admit(&mut register, &other, 10);
    assert_eq!(refused, Err(Refused::InvitationExpired { seconds: 0 }));
}

#[test]
fn a_revoked_machine_is_refused_whatever_it_shows() {
    let mut register = Register::default();
    let (machine, authority) = (key(3), authority());
    admit(&mut register, &certificate(2, &machine), 10).unwrap();
    register.check(&machine.public()).unwrap();
    let revocation = |at| Revocation::new(&issuer_of(&authority), machine.public(), at);
    assert_eq!(register.revoke(&authority.public(), &revocation(50), 70), Ok(true));
    assert_eq!(register.revoke(&authority.public(), &revocation(40), 70), Ok(false));
    assert_eq!(register.revoke(&authority.public(), &revocation(60), 70), Ok(false));
    let refused = Refused::MachineRevoked { at: 40 };
    assert_eq!(register.check(&machine.public()), Err(refused.clone()));
    for seed in [2, 5] {
        assert_eq!(admit(&mut register, &certificate(seed, &machine), 11), Err(refused.clone()));
    }
    assert_eq!(register.revoked().collect::<Vec<_>>(), [(&machine.public(), 40)]);
}

#[test]
fn only_an_issuer_of_the_cell_sends_machines_away() {
    let stranger = Issuer::by(&key(9), key(99), ISSUES);
    let mut bytes = encode(&Revocation::new(&stranger, key(3).public(), 5));
    bytes[4..36].copy_from_slice(authority().public().as_bytes());
    let mut register = Register::default();
    let mut refused = |bytes: &[u8]| {
        let forged: Revocation = decode(bytes, Revocation::BYTES_MAX).unwrap();
        register.revoke(&authority().public(), &forged, 5).unwrap_err()
    };
    assert!(matches!(refused(&bytes), Refused::CellOther { .. }));
    // The same with the warrant of somebody else, and with one that only names the root key.
    let from = bytes.len() - Warrant::BYTES_MAX;
    let mut borrowed = bytes.clone();
    borrowed[from..].copy_from_slice(&encode(issuer().warrant()));
    assert_eq!(refused(&borrowed), Refused::RevocationForged);
    bytes[from + 4..from + 36].copy_from_slice(authority().public().as_bytes());
    assert_eq!(refused(&bytes), Refused::WarrantForged);
    assert_eq!(register, Register::default());
}

#[test]
fn an_issuer_can_do_no_more_than_its_warrant_says() {
    let authority = authority().public();
    let user = || Profile {
        name: user("alice"),
        key: key(5).public(),
        uid: 7,
        gid: 7,
        groups: Default::default(),
    };
    for may in Power::ALL {
        let by = issuer_with([may]);
        let invited = Invitation::new(&by, &secret(2), terms()).unwrap();
        let invited = invited.certify(&key(3), LASTS).unwrap();
        let invited = invited.verify(&authority, 0).map(drop);
        let renewed = Renewal::new(&by, key(3).public(), LASTS);
        let renewed = renewed.verify(&authority, &key(3).public()).map(drop);
        let revoked = Revocation::new(&by, key(3).public(), 5).verify(&authority).map(drop);
        let enrolled = Enrolment::new(&by, user(), 5).unwrap();
        let enrolled = enrolled.verify(&authority).map(drop);
        let all = [
            (Power::Invite, invited),
            (Power::Renew, renewed),
            (Power::Revoke, revoked),
            (Power::Enrol, enrolled),
        ];
        for (power, done) in all {
            let expected = if power == may { Ok(()) } else { Err(Refused::PowerMissing(power)) };
            assert_eq!(done, expected, "who may {may}");
        }
    }
}

#[test]
fn an_issuer_makes_no_issuers_and_revokes_none() {
    let (authority, thief) = (authority().public(), issuer());
    // What it signs as if it were the root key is of a cell of its own.
    let friend = Issuer::by(thief.key(), key(102), ISSUES);
    let invitation = Invitation::new(&friend, &secret(2), terms()).unwrap();
    let certificate = invitation.certify(&key(3), LASTS).unwrap();
    assert!(matches!(verify(&certificate, 0), Err(Refused::CellOther { .. })));
    let revocation = IssuerRevocation::new(thief.key(), key(101).public(), 5);
    assert!(matches!(revocation.verify(&authority), Err(Refused::CellOther { .. })));
    // The same with the cell written over.
    let mut warrant = encode(friend.warrant());
    warrant[4..36].copy_from_slice(authority.as_bytes());
    let warrant: Warrant = decode(&warrant, Warrant::BYTES_MAX).unwrap();
    assert_eq!(warrant.verify(&authority), Err(Refused::WarrantForged));
    assert_eq!(Issuer::new(key(102), warrant, &authority).unwrap_err(), Refused::WarrantForged);
    let mut revocation = encode(&revocation);
    revocation[4..36].copy_from_slice(authority.as_bytes());
    let revocation: IssuerRevocation = decode(&revocation, IssuerRevocation::BYTES_MAX).unwrap();
    assert_eq!(revocation.verify(&authority), Err(Refused::RevocationForged));
    // Nor does it lend its warrant.
    let lent = Issuer::new(key(102), thief.warrant().clone(), &authority);
    assert_eq!(lent.unwrap_err(), Refused::WarrantOther);
}

#[test]
fn an_issuer_that_was_revoked_issues_nothing_more_and_what_it_has_issued_stays() {
    let (mut register, authority) = (Register::default(), authority());
    let (before, after) = (certificate(2, &key(3)), certificate(5, &key(4)));
    admit(&mut register, &before, 10).unwrap();
    let revocation = IssuerRevocation::new(&authority, issuer().tenure().issuer, 20);
    assert_eq!(register.revoke_issuer(&authority.public(), &revocation), Ok(true));
    assert_eq!(register.revoke_issuer(&authority.public(), &revocation), Ok(false));
    let refused = Refused::IssuerRevoked { at: 20 };
    assert_eq!(admit(&mut register, &after, 30), Err(refused.clone()));
    assert_eq!(admit(&mut register, &before, 30), Ok(Admission::Again(0)));
    let revocation = Revocation::new(&issuer(), key(3).public(), 25);
    assert_eq!(register.revoke(&authority.public(), &revocation, 30), Err(refused));
    // A new warrant does not bring the key back; another issuer goes on.
    let again = Issuer::by(&authority, key(100), 2 * ISSUES);
    assert!(register.check_issuer(&again.tenure(), 30).is_err());
    let other = Invitation::new(&issuer_with(Power::ALL), &secret(5), terms()).unwrap();
    let other = other.certify(&key(4), LASTS).unwrap();
    assert_eq!(admit(&mut register, &other, 30), Ok(Admission::New(0)));
}

#[test]
fn an_issuer_whose_warrant_has_expired_issues_nothing_more_whatever_moment_it_writes_down() {
    let (mut register, authority) = (Register::default(), authority());
    let terms = Terms { expires: 2 * ISSUES, ..terms() };
    let invite = |seed| Invitation::new(&issuer(), &secret(seed), terms.clone()).unwrap();
    let before = invite(2).certify(&key(3), LASTS).unwrap();
    let after = invite(5).certify(&key(4), LASTS).unwrap();
    assert_eq!(admit(&mut register, &before, ISSUES - 1), Ok(Admission::New(0)));
    assert_eq!(admit(&mut register, &before, ISSUES + 3), Ok(Admission::Again(0)));
    let refused = Refused::IssuerExpired { seconds: 3 };
    assert_eq!(admit(&mut register, &after, ISSUES + 3), Err(refused.clone()));
    let early = Revocation::new(&issuer(), key(3).public(), 5);
    assert_eq!(register.revoke(&authority.public(), &early, ISSUES + 3), Err(refused));
    assert_eq!(issuer().check(Power::Invite, ISSUES - 1), Ok(()));
    let own = issuer().check(Power::Invite, ISSUES);
    assert_eq!(own, Err(Refused::IssuerExpired { seconds: 0 }));
    let narrow = issuer_with([Power::Renew]).check(Power::Invite, 5);
    assert_eq!(narrow, Err(Refused::PowerMissing(Power::Invite)));
}

#[test]
fn every_flipped_bit_of_what_concerns_an_issuer_is_refused() {
    let authority = authority();
    let warrant = encode(issuer().warrant());
    let revocation = encode(&IssuerRevocation::new(&authority, key(100).public(), 5));
    let decree = encode(&Decree::RevokeIssuer(decode(&revocation, 200).unwrap()));
    let flip = |bytes: &[u8], bit: usize| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    for bit in 0..8 * warrant.len() {
        let bytes = flip(&warrant, bit);
        let Ok(read) = decode::<Warrant>(&bytes, Warrant::BYTES_MAX) else { continue };
        assert_eq!(encode(&read), bytes, "bit {bit}");
        assert!(read.verify(&authority.public()).is_err(), "bit {bit}");
    }
    for bit in 0..8 * decree.len() {
        let bytes = flip(&decree, bit);
        let Ok(read) = decode::<Decree>(&bytes, bytes.len()) else { continue };
        assert_eq!(encode(&read), bytes, "bit {bit}");
        assert!(read.verify(&authority.public()).is_err(), "bit {bit}");
    }
}

/// The bytes of a register that is full.
fn full_register() -> Vec<u8> {
    let keys = || {
        (0..Register::COUNT_MAX as u32).map(|number| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            PublicKey::from_bytes(bytes)
        })
    };
    let used: BTreeMap<_, _> = keys().map(|key| ((key, 0u32), (key, EXPIRES))).collect();
    let revoked: BTreeMap<_, _> = keys().map(|key| (key, 5u64)).collect();
    encode(&(7u64, used, &revoked, &revoked))
}

#[test]
fn a_full_register_refuses_more_until_there_is_room() {
    let bytes = full_register();
    assert_eq!(bytes.len(), Register::BYTES_MAX);
    let mut register: Register = decode(&bytes, Register::BYTES_MAX).unwrap();
    assert_eq!(encode(&register), bytes);
    let authority = authority();
    let revocation = Revocation::new(&issuer_of(&authority), key(4).public(), 5);
    let refused = register.revoke(&authority.public(), &revocation, 10);
    assert_eq!(refused, Err(Refused::RevocationsTooMany));
    let refused = admit(&mut register, &certificate(2, &key(3)), 10);
    assert_eq!(refused, Err(Refused::InvitationsTooMany));
    let later = Terms { expires: EXPIRES + 100, ..terms() };
    let later = Invitation::new(&issuer_of(&authority), &secret(2), later).unwrap();
    let later = later.certify(&key(3), LASTS).unwrap();
    assert_eq!(admit(&mut register, &later, EXPIRES), Ok(Admission::New(0)));
    assert_eq!(register.used_count(), 1);
}

#[test]
fn a_register_with_more_in_it_than_it_may_is_malformed() {
    let mut bytes = full_register();
    let second = 8 + 4 + Register::COUNT_MAX * 76;
    let more = [&[0xff; 32][..], &5u64.to_le_bytes()].concat();
    bytes[second..second + 4].copy_from_slice(&(Register::COUNT_MAX as u32 + 1).to_le_bytes());
    bytes.splice(second + 4 + Register::COUNT_MAX * 40.., more);
    let malformed = decode::<Register>(&bytes, bytes.len()).unwrap_err().to_string();
    assert!(malformed.contains("a register has more in it"), "{malformed}");
}

#[test]
fn an_invitation_names_no_more_users_than_fit() {
    let users =
        |count| Patrons::These((0..count).map(|number| user(&format!("u{number}"))).collect());
    let max = Patrons::COUNT_MAX;
    let invite = |patrons| {
        let terms = Terms { patrons, ..terms() };
        Invitation::new(&issuer(), &secret(2), terms).map(|_| ())
    };
    assert_eq!(invite(users(max)), Ok(()));
    assert_eq!(invite(users(max + 1)), Err(Refused::UsersTooMany));
    let permit = Permit { patrons: users(max + 1), ..invitation(2).permit().clone() };
    let malformed = decode::<Permit>(&encode(&permit), 10_000).unwrap_err().to_string();
    assert!(malformed.contains("more users than it may"), "{malformed}");
}

#[test]
fn the_largest_of_each_fits_into_its_bound_exactly() {
    let width = UserName::BYTES_MAX - 1;
    let longest = (0..Patrons::COUNT_MAX).map(|number| user(&format!("u{number:0width$}")));
    let terms = Terms { patrons: Patrons::These(longest.collect()), ..terms() };
    let invitation = Invitation::new(&issuer(), &secret(2), terms).unwrap();
    let certificate = invitation.certify(&key(3), LASTS).unwrap();
    let certificate = certificate.renewed(Renewal::new(&issuer(), key(3).public(), 2 * LASTS));
    assert_eq!(encode(&certificate).len(), Certificate::BYTES_MAX);
    let revocation = Revocation::new(&issuer(), key(3).public(), 5);
    assert_eq!(encode(&revocation).len(), Revocation::BYTES_MAX);
    assert_eq!(encode(issuer().warrant()).len(), Warrant::BYTES_MAX);
    let revocation = IssuerRevocation::new(&authority(), key(3).public(), 5);
    assert_eq!(encode(&revocation).len(), IssuerRevocation::BYTES_MAX);
}

#[test]
fn a_code_has_at_most_160_letters_with_two_addresses_of_ipv6_or_four_of_ipv4() {
    let six: SocketAddr = "[fd00::ffff:1]:65535".parse().unwrap();
    let four: SocketAddr = "203.0.113.199:65535".parse().unwrap();
    for addresses in [&[six, six][..], &[six, four, four, four], &[four; 4], &[four], &[]] {
        let text = Code::new(secret(0xff), pin(), addresses).unwrap().text();
        assert!(text.reveal().len() <= 160, "{} letters", text.reveal().len());
        assert_eq!(Code::read(text.reveal()).unwrap().addresses(), addresses);
    }
    for addresses in [&[six, six, four][..], &[six; 3], &[four; 5]] {
        let refused = Code::new(secret(2), pin(), addresses).unwrap_err();
        assert_eq!(refused, Refused::AddressesTooMany);
    }
}

#[test]
fn a_code_reads_back_as_it_was_written_and_leads_to_its_offer_and_to_no_other() {
    let text = code().text();
    let read = Code::read(text.reveal()).unwrap();
    assert_eq!((read.addresses(), read.pin), (&addresses()[..], pin()));
    assert_eq!(read.text().reveal(), text.reveal());
    let invited = invitation(2).offer().accept(&read.secret).unwrap();
    assert_eq!(invited.permit(), invitation(2).permit());
    assert!(invited.is_expired(EXPIRES) && !invited.is_expired(EXPIRES - 1));
    assert_eq!(*invited.authority(), authority().public());
    let certificate = invited.certify(&key(3), LASTS).unwrap();
    assert_eq!(verify(&certificate, 0), Ok(key(3).public()));
    assert_eq!(invitation(5).offer().accept(&read.secret).unwrap_err(), Refused::KeyOther);
}

#[test]
fn a_typing_error_is_called_one() {
    let text = code().text();
    let text = text.reveal();
    let refused = |text: &str| Code::read(text).unwrap_err();
    for at in "croft1".len()..text.len() {
        for letter in ["0", "q", "o", "Q", "-", "é"] {
            let changed = format!("{}{letter}{}", &text[..at], &text[at + 1..]);
            if changed != text {
                assert_eq!(refused(&changed), Refused::CodeMistyped, "{letter} at {at}");
            }
        }
        assert_eq!(refused(&text[..at]), Refused::CodeMistyped, "cut at {at}");
    }
    assert_eq!(refused(&format!("{text}0")), Refused::CodeMistyped);
    assert_eq!(refused(&format!("croft1{}", "0".repeat(100_000))), Refused::CodeMistyped);
    for other in ["", "croft", "Croft1", "http://croft1", " croft1"] {
        assert_eq!(refused(other), Refused::CodeOther, "{other}");
    }
}

#[test]
fn a_code_that_was_changed_on_purpose_is_no_typing_error() {
    assert!(read_changed(|_| {}).is_ok());
    let refused = |change: fn(&mut Vec<u8>)| read_changed(change).unwrap_err();
    assert_eq!(refused(|bytes| bytes[0] = 9), Refused::CodeVersion { version: 9 });
    let malformed = refused(|bytes| bytes.push(0));
    assert!(matches!(malformed, Refused::CodeMalformed(_)), "{malformed}");
    let malformed = refused(|bytes| bytes.truncate(20));
    assert!(matches!(malformed, Refused::CodeMalformed(_)), "{malformed}");
    let more = read_changed(|bytes| {
        bytes.truncate(49);
        (0..5).for_each(|_| bytes.extend(encode(&self::addresses()[0])));
    });
    assert_eq!(more.unwrap_err(), Refused::AddressesTooMany);
}

#[test]
fn every_flipped_bit_of_a_code_changes_what_it_leads_to() {
    for bit in 8..8 * 49 {
        let read = read_changed(|bytes| bytes[bit / 8] ^= 1 << (bit % 8)).unwrap();
        let is_other = read.pin != pin() || invitation(2).offer().accept(&read.secret).is_err();
        assert!(is_other, "bit {bit} is not looked at");
    }
}

#[test]
fn secrets_are_not_printed() {
    let invitation = Invitation::new(&issuer(), &secret(0xab), terms()).unwrap();
    let code = Code::new(secret(0xab), pin(), &addresses()).unwrap();
    let text = code.text();
    for shown in [format!("{code:?}"), format!("{text:?}"), format!("{invitation:?}")] {
        assert!(!shown.contains("abab") && !shown.contains("171, 171"), "{shown}");
        assert!(!shown.contains(&text.reveal()[6..20]), "{shown}");
    }
}

#[test]
fn every_flipped_bit_of_a_certificate_or_a_revocation_is_refused() {
    let authority = authority();
    let terms = Terms { patrons: some_users(), ..terms() };
    let invitation = Invitation::new(&issuer_of(&authority), &secret(2), terms).unwrap();
    let certificate = invitation.certify(&key(3), LASTS).unwrap();
    let renewal = Renewal::new(&issuer_of(&authority), key(3).public(), 2 * LASTS);
    let certificate = encode(&certificate.renewed(renewal));
    let revocation = encode(&Revocation::new(&issuer_of(&authority), key(3).public(), 5));
    let flip = |bytes: &[u8], bit: usize| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    for bit in 0..8 * certificate.len() {
        let bytes = flip(&certificate, bit);
        let Ok(read) = decode::<Certificate>(&bytes, Certificate::BYTES_MAX) else { continue };
        assert_eq!(encode(&read), bytes, "bit {bit}");
        assert!(read.verify(&authority.public(), 0).is_err(), "bit {bit}");
    }
    for bit in 0..8 * revocation.len() {
        let bytes = flip(&revocation, bit);
        let Ok(read) = decode::<Revocation>(&bytes, Revocation::BYTES_MAX) else { continue };
        assert_eq!(encode(&read), bytes, "bit {bit}");
        assert!(read.verify(&authority.public()).is_err(), "bit {bit}");
    }
}

/// What a verifier says of a machine that shows these bytes for a certificate and claims to stand there.
fn verify_claim(bytes: &[u8], claim: &Claim) -> Result<(), Option<Refused>> {
    let certificate = decode::<Certificate>(bytes, Certificate::BYTES_MAX).map_err(|_| None)?;
    let vouched = certificate.verify(&authority().public(), 0).map_err(Some)?;
    vouched.verify_claim(0, claim, CHOICES).map_err(Some)
}

const CHOICES: u32 = 8;

#[test]
fn a_machine_stands_at_each_of_its_own_positions_and_nowhere_else() {
    let own = certificate(2, &key(3));
    let number = own.verify(&authority().public(), 0).unwrap().number(0);
    let bytes = encode(&own);
    for index in 0..CHOICES {
        assert_eq!(verify_claim(&bytes, &Claim::new(&number, index)), Ok(()));
    }
    let forged = Err(Some(Refused::PositionForged));
    assert_eq!(verify_claim(&bytes, &Claim::new(&number, CHOICES)), forged);
    assert_eq!(verify_claim(&bytes, &Claim::new(&number, u32::MAX)), forged);
    let other = certificate(4, &key(3)).verify(&authority().public(), 0).unwrap().number(0);
    assert_eq!(verify_claim(&bytes, &Claim::new(&other, 0)), forged);
}

#[test]
fn every_flipped_bit_of_a_claim_or_of_the_certificate_beside_it_is_refused() {
    let own = certificate(2, &key(3));
    let number = own.verify(&authority().public(), 0).unwrap().number(0);
    let (bytes, claim) = (encode(&own), Claim::new(&number, 5));
    let flip = |bytes: &[u8], bit: usize| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    for bit in 0..8 * bytes.len() {
        assert!(verify_claim(&flip(&bytes, bit), &claim).is_err(), "bit {bit}");
    }
    let claim = encode(&claim);
    for bit in 0..8 * claim.len() {
        let forged = decode::<Claim>(&flip(&claim, bit), claim.len()).unwrap();
        assert_eq!(verify_claim(&bytes, &forged), Err(Some(Refused::PositionForged)), "bit {bit}");
    }
}

#[test]
fn every_refusal_says_what_can_be_done() {
    let cell = Cell::of(&key(1).public());
    let all = [
        Refused::CellOther { found: cell, wanted: cell },
        Refused::WarrantForged,
        Refused::WarrantOther,
        Refused::PowerMissing(Power::Enrol),
        Refused::IssuerExpired { seconds: 300 },
        Refused::IssuerRevoked { at: 7 },
        Refused::PermitForged,
        Refused::PermitOther,
        Refused::CertificateForged,
        Refused::KeyNotShown,
        Refused::CertificateTooLong,
        Refused::CertificateExpired { seconds: 300 },
        Refused::InvitationExpired { seconds: 3_000_000 },
        Refused::InvitationUsed,
        Refused::InvitationEnded,
        Refused::CountUnfit,
        Refused::InvitationsTooMany,
        Refused::MachineRevoked { at: 7 },
        Refused::RevocationForged,
        Refused::RevocationsTooMany,
        Refused::PositionForged,
        Refused::UsersTooMany,
        Refused::AnyUser,
        Refused::InvitationOther,
        Refused::EnrolmentForged,
        Refused::ShareForged,
        Refused::SharesTooMany,
        Refused::MachineUnknown,
        Refused::NameTaken(user("alice")),
        Refused::UserTaken(user("alice")),
        Refused::UserRemoved(user("alice")),
        Refused::PeopleTooMany,
        Refused::GroupsTooMany,
        Refused::RenewalForged,
        Refused::RenewalOther,
        Refused::ConsentForged,
        Refused::ConsentOther,
        Refused::AddressesTooMany,
        Refused::CodeOther,
        Refused::CodeMistyped,
        Refused::CodeVersion { version: 9 },
        Refused::CodeMalformed(base::Malformed::new("x")),
        Refused::KeyOther,
        Refused::PinOther,
        Refused::CodesAlike,
        Refused::CodesApart,
    ];
    for refused in all {
        let text = refused.to_string();
        let (what, advice) = text.rsplit_once(": ").unwrap_or_else(|| panic!("{text}"));
        assert!(what.len() > 10 && advice.len() > 10 && !advice.ends_with('.'), "{text}");
        assert!(what.starts_with(char::is_lowercase), "{text}");
    }
    let text = Refused::CertificateExpired { seconds: 300 }.to_string();
    assert!(text.contains("5 min ago"), "{text}");
    let text = Refused::InvitationExpired { seconds: 3_000_000 }.to_string();
    assert!(text.contains("34 days ago"), "{text}");
}

fn any_patrons() -> impl Strategy<Value = Patrons> {
    let name = "[a-z_][a-z0-9._-]{0,31}".prop_filter_map("reserved", |text| UserName::new(&text));
    prop_oneof![
        Just(Patrons::Any),
        prop::collection::btree_set(name, 0..16).prop_map(Patrons::These),
    ]
}

fn any_address() -> impl Strategy<Value = SocketAddr> {
    let ip = prop_oneof![
        any::<[u8; 4]>().prop_map(std::net::IpAddr::from),
        any::<[u8; 16]>().prop_map(std::net::IpAddr::from),
    ];
    (ip, any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_issued_reads_back_and_is_good(
        seeds in any::<[[u8; 32]; 3]>(),
        (expires, certificate_expires_max) in any::<(u64, u64)>(),
        count in 1..=Permit::COUNT_MAX,
        patrons in any_patrons(),
        addresses in prop::collection::vec(any_address(), 0..=2),
    ) {
        let [authority, machine] = [seeds[0], seeds[1]].map(SecretKey::from_seed);
        let terms = Terms { count, expires, certificate_expires_max, patrons };
        let issuer = Issuer::by(&authority, SecretKey::from_seed([3; 32]), 1);
        let invitation = Invitation::new(&issuer, &Secret::new(*seeds[2].first_chunk().unwrap()), terms).unwrap();
        let certificate = invitation.certify(&machine, certificate_expires_max).unwrap();
        let bytes = encode(&certificate);
        let read: Certificate = decode(&bytes, Certificate::BYTES_MAX).unwrap();
        prop_assert_eq!(&encode(&read), &bytes);
        prop_assert_eq!(&read, &certificate);
        let good = read.verify(&authority.public(), 0);
        prop_assert_eq!(good.is_ok(), certificate_expires_max > 0);
        let secret = Secret::new(*seeds[2].first_chunk().unwrap());
        let code = Code::new(secret, invitation.permit().number(0), &addresses).unwrap();
        let text = code.text();
        let read = Code::read(text.reveal()).unwrap();
        let again = read.text();
        prop_assert_eq!(again.reveal(), text.reveal());
        prop_assert_eq!(read.addresses(), &addresses[..]);
    }

    #[test]
    fn any_bytes_are_refused_or_canonical(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(read) = decode::<Certificate>(&bytes, Certificate::BYTES_MAX) {
            prop_assert_eq!(encode(&read), bytes.clone());
        }
        if let Ok(read) = decode::<Revocation>(&bytes, Revocation::BYTES_MAX) {
            prop_assert_eq!(encode(&read), bytes.clone());
        }
        if let Ok(read) = decode::<Register>(&bytes, Register::BYTES_MAX) {
            prop_assert_eq!(encode(&read), bytes);
        }
    }

    #[test]
    fn any_text_is_refused(letters in "[0-9a-z]{0,400}") {
        prop_assert!(Code::read(&letters).is_err());
        let prefixed = format!("croft1{letters}");
        prop_assert!(Code::read(&prefixed).is_err());
    }

    #[test]
    fn a_register_is_what_a_plain_list_would_say(
        steps in prop::collection::vec((2u8..5, 5u8..10, 0u64..1_200), 1..30),
    ) {
        let mut register = Register::default();
        let mut came: Vec<(u8, u8)> = Vec::new();
        let mut now = 0;
        for (seed, machine, time) in steps {
            let later = now.max(time);
            // One serves a machine, one two, and one three.
            let invited = invitation_for(seed, u32::from(seed) - 1);
            let certificate = invited.certify(&key(machine), LASTS).unwrap();
            let admitted = admit(&mut register, &certificate, time);
            let mut with_it = came.iter().filter(|(used, _)| *used == seed);
            let place = with_it.clone().position(|(_, by)| *by == machine);
            let expected = match (place, with_it.by_ref().count()) {
                _ if later >= EXPIRES => {
                    Err(Refused::InvitationExpired { seconds: later - EXPIRES })
                }
                (Some(place), _) => Ok(Admission::Again(place as u32)),
                (None, count) if count >= usize::from(seed) - 1 => Err(Refused::InvitationUsed),
                (None, count) => {
                    // What somebody says who is not let in does not move the time on.
                    now = later;
                    came.push((seed, machine));
                    Ok(Admission::New(count as u32))
                }
            };
            prop_assert_eq!(admitted, expected);
            let bytes = encode(&register);
            prop_assert_eq!(decode::<Register>(&bytes, Register::BYTES_MAX), Ok(register.clone()));
        }
    }
}
