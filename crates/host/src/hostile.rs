//! Reads bytes from outside as what only this crate knows of, for a fuzzer.

use crate::cell::Membership;

/// The most bytes that are tried.
const BYTES_MAX: usize = 1 << 20;

/// Whether bytes are the file in which a machine keeps what it knows of its cell.
///
/// # Panics
///
/// If something is accepted that would be written otherwise.
pub fn is_membership(bytes: &[u8]) -> bool {
    let read = base::decode::<Membership>(bytes, BYTES_MAX);
    if let Ok(read) = &read {
        assert_eq!(base::encode(read), bytes, "a second encoding");
    }
    read.is_ok()
}

/// Such a file.
pub fn membership() -> Vec<u8> {
    use base::SecretKey;
    use lease::Client;
    use overlay::{
        Consent, Invitation, Issuer, Patrons, Profile, Renewal, Secret, Terms, UserName, Users,
    };
    use wire::Neighbour;

    let [authority, machine] = [1, 2].map(|seed| SecretKey::from_seed([seed; 32]));
    let terms =
        Terms { count: 2, expires: 1_000, certificate_expires_max: 9_000, patrons: Patrons::Any };
    let issuer = Issuer::by(&authority, machine.clone(), 2_000);
    let invited = Invitation::new(&issuer, &Secret::new([3; 16]), terms);
    let invited = invited.expect("the terms are in order");
    let certificate = invited.certify(&machine, 9_000).expect("it is as long as it may be");
    let certificate = certificate.renewed(Renewal::new(&issuer, machine.public(), 9_999));
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 7));
    let (client, key) = (Client(3), machine.public());
    let founder = group::Seat { key, incarnation: 0 };
    let roll = group::Roll { epoch: 1, seats: vec![founder], leader: founder };
    let machines =
        vec![Neighbour { client, key, addresses: vec![address], expires: 9, users: Users::Any }];
    let consents = vec![Consent::new(&SecretKey::from_seed([4; 32]), authority.public(), key)];
    let name = UserName::new("alice").expect("it is a name");
    let user = Profile { name, key, uid: 7, gid: 7, groups: [20].into() };
    let membership = Membership {
        authority: authority.public(),
        founder,
        pin: roll.clone(),
        client,
        certificate,
        consents,
        users: Some(vec![user]),
        listen: Some(address),
        roll,
        machines,
    };
    base::encode(&membership)
}
