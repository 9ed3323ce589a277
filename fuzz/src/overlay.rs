//! What machines, issuers and users show: warrants, certificates, renewals, revocations, enrolments, consents, registers and codes;
//! canonical or refused.

use base::{PublicKey, decode, encode};
use overlay::{
    Certificate, Code, Consent, Decree, Enrolment, IssuerRevocation, People, Register, Renewal,
    Revocation, Warrant,
};

/// Reads the bytes as each of them; what is accepted must be written as the same bytes.
pub fn overlay(bytes: &[u8]) {
    let authority = PublicKey::from_bytes([7; 32]);
    if let Ok(read) = decode::<Certificate>(bytes, Certificate::BYTES_MAX) {
        assert_eq!(encode(&read), bytes, "a second encoding");
        assert!(read.verify(&authority, 0).is_err(), "nobody has this authority's key");
    }
    if let Ok(read) = decode::<Revocation>(bytes, Revocation::BYTES_MAX) {
        assert_eq!(encode(&read), bytes, "a second encoding");
        assert!(read.verify(&authority).is_err(), "nobody has this authority's key");
    }
    if let Ok(read) = decode::<Warrant>(bytes, Warrant::BYTES_MAX) {
        assert_eq!(encode(&read), bytes, "a second encoding");
        assert!(read.verify(&authority).is_err(), "nobody has this authority's key");
    }
    if let Ok(read) = decode::<IssuerRevocation>(bytes, IssuerRevocation::BYTES_MAX) {
        assert_eq!(encode(&read), bytes, "a second encoding");
        assert!(read.verify(&authority).is_err(), "nobody has this authority's key");
    }
    if let Ok(read) = decode::<Renewal>(bytes, Renewal::BYTES_MAX) {
        assert_eq!(encode(&read), bytes, "a second encoding");
        assert!(read.verify(&authority, &authority).is_err(), "nobody has this authority's key");
    }
    if let Ok(read) = decode::<Enrolment>(bytes, Enrolment::BYTES_MAX) {
        assert_eq!(encode(&read), bytes, "a second encoding");
        assert!(read.verify(&authority).is_err(), "nobody has this authority's key");
    }
    if let Ok(read) = decode::<Consent>(bytes, Consent::BYTES_MAX) {
        assert_eq!(encode(&read), bytes, "a second encoding");
        assert!(read.verify(&authority, &authority).is_err(), "nobody has signed that");
    }
    if let Ok(read) = decode::<Decree>(bytes, bytes.len()) {
        assert_eq!(encode(&read), bytes, "a second encoding");
        assert!(read.verify(&authority).is_err(), "nobody has this authority's key");
    }
    if let Ok(read) = decode::<People>(bytes, bytes.len()) {
        assert_eq!(encode(&read), bytes, "a second encoding");
    }
    if let Ok(read) = decode::<Register>(bytes, Register::BYTES_MAX) {
        assert_eq!(encode(&read), bytes, "a second encoding");
    }
    if let Ok(text) = str::from_utf8(bytes)
        && let Ok(read) = Code::read(text)
    {
        assert_eq!(read.text().reveal(), text, "a second text");
    }
}

#[cfg(test)]
mod tests {
    use base::{Rng, SecretKey};
    use overlay::{Invitation, Issuer, Patrons, Profile, Secret, Terms, UserName};

    use super::*;

    fn samples() -> [Vec<u8>; 10] {
        let [authority, machine] = [1, 2].map(|seed| SecretKey::from_seed([seed; 32]));
        let name = UserName::new("alice").unwrap();
        let patrons = Patrons::These([name.clone()].into());
        let terms = Terms { count: 2, expires: 1_000, certificate_expires_max: 9_000, patrons };
        let issuer = Issuer::by(&authority, machine.clone(), 2_000);
        let warrant = encode(issuer.warrant());
        let of_issuer = encode(&IssuerRevocation::new(&authority, machine.public(), 5));
        let invitation = Invitation::new(&issuer, &Secret::new([3; 16]), terms).unwrap();
        let renewal = Renewal::new(&issuer, machine.public(), 19_000);
        let certificate = invitation.certify(&machine, 9_000).unwrap();
        let certificate = encode(&certificate.renewed(renewal.clone()));
        let user = Profile { name, key: machine.public(), uid: 7, gid: 7, groups: [20].into() };
        let mut people = People::default();
        people.enrol(&user, 5).unwrap();
        let enrolment = Enrolment::new(&issuer, user, 5).unwrap();
        let decree = encode(&Decree::Enrol(enrolment.clone()));
        let consent = encode(&Consent::new(&machine, authority.public(), machine.public()));
        let revocation = encode(&Revocation::new(&issuer, machine.public(), 5));
        let pin = invitation.permit().number(0);
        let code =
            Code::new(Secret::new([3; 16]), pin, &["127.0.0.1:7000".parse().unwrap()]).unwrap();
        let code = code.text().reveal().as_bytes().to_vec();
        let (renewal, enrolment, people) = (encode(&renewal), encode(&enrolment), encode(&people));
        [
            certificate,
            revocation,
            code,
            renewal,
            enrolment,
            decree,
            consent,
            people,
            warrant,
            of_issuer,
        ]
    }

    #[test]
    fn the_samples_are_accepted() {
        let [certificate, revocation, code, renewal, enrolment, decree, consent, people, rest @ ..] =
            samples();
        let [warrant, of_issuer] = rest;
        assert!(decode::<Warrant>(&warrant, Warrant::BYTES_MAX).is_ok());
        assert!(decode::<IssuerRevocation>(&of_issuer, IssuerRevocation::BYTES_MAX).is_ok());
        assert!(decode::<Certificate>(&certificate, Certificate::BYTES_MAX).is_ok());
        assert!(decode::<Revocation>(&revocation, Revocation::BYTES_MAX).is_ok());
        assert!(Code::read(str::from_utf8(&code).unwrap()).is_ok());
        assert!(decode::<Renewal>(&renewal, Renewal::BYTES_MAX).is_ok());
        assert!(decode::<Enrolment>(&enrolment, Enrolment::BYTES_MAX).is_ok());
        assert!(decode::<Decree>(&decree, decree.len()).is_ok());
        assert!(decode::<Consent>(&consent, Consent::BYTES_MAX).is_ok());
        assert!(decode::<People>(&people, people.len()).is_ok());
    }

    #[test]
    fn every_small_change_is_refused_or_canonical() {
        let (samples, mut rng) = (samples(), Rng::new(12));
        for round in 0..8_000 {
            let mut bytes = samples[round % samples.len()].clone();
            for _ in 0..=rng.below(3) {
                let at = rng.index(bytes.len());
                match rng.below(3) {
                    0 => bytes[at] ^= 1 << rng.below(8),
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, rng.next_u64() as u8),
                }
            }
            overlay(&bytes);
        }
    }
}
