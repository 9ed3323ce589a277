//! Reads bytes from outside as what they may be, for a fuzzer.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::cell::{ANSWER_BYTES_MAX, Answer, Errand, Membership};

/// Reads bytes as what one machine asks another out of turn, as the answer, and as the file in which a machine
/// keeps what it knows of its cell. Says how many of these they are.
///
/// # Panics
///
/// If something is accepted that would be written otherwise.
pub fn read(bytes: &[u8]) -> usize {
    let read = [is_one::<Errand>, is_one::<Answer>, is_one::<Membership>];
    read.iter().filter(|is_one| is_one(bytes)).count()
}

fn is_one<T: BorshSerialize + BorshDeserialize>(bytes: &[u8]) -> bool {
    let read = base::decode::<T>(bytes, ANSWER_BYTES_MAX);
    if let Ok(read) = &read {
        assert_eq!(base::encode(read), bytes, "a second encoding");
    }
    read.is_ok()
}

/// Bytes that are read as something.
pub fn samples() -> Vec<Vec<u8>> {
    use base::{FileId, SecretKey};
    use lease::Client;
    use overlay::{
        Consent, Decree, Enrolment, Invitation, Issuer, IssuerRevocation, Patrons, Profile,
        Renewal, Revocation, Secret, Terms, UserName,
    };

    use crate::cell::{Deed, Done, Lead, Neighbour, Person, Ticket, Whom};

    let [authority, machine] = [1, 2].map(|seed| SecretKey::from_seed([seed; 32]));
    let terms =
        Terms { count: 2, expires: 1_000, certificate_expires_max: 9_000, patrons: Patrons::Any };
    let issuer = Issuer::by(&authority, machine.clone(), 2_000);
    let invited = Invitation::new(&issuer, &Secret::new([3; 16]), terms);
    let invited = invited.expect("the terms are in order");
    let certificate = invited.certify(&machine, 9_000).expect("it is as long as it may be");
    let renewal = Renewal::new(&issuer, machine.public(), 9_999);
    let certificate = certificate.renewed(renewal.clone());
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 7));
    let (client, key) = (Client(3), machine.public());
    let founder = group::Seat { key, incarnation: 0 };
    let roll = group::Roll { epoch: 1, seats: vec![founder], leader: founder };
    let machines = vec![Neighbour {
        client,
        key,
        addresses: vec![address],
        expires: 9,
        users: overlay::Users::Any,
    }];
    let whereabouts = node::Whereabouts { addresses: vec![address], number: 4 };
    let consents = vec![Consent::new(&SecretKey::from_seed([4; 32]), authority.public(), key)];
    let join = node::Join::new(certificate.clone(), whereabouts, &machine, 5);
    let join = join.with(consents.clone());
    let name = UserName::new("alice").expect("it is a name");
    let user = Profile { name, key, uid: 7, gid: 7, groups: [20].into() };
    let enrolment = Enrolment::new(&issuer, user.clone(), 5).expect("there are few groups");
    let ticket = Ticket { client, machines: machines.clone(), users: Some(vec![user.clone()]) };
    let pin = node::Pin { offer: invited.offer(), inviter: key, founder, roll: roll.clone() };
    let errands = [
        Errand::Invited(pin.digest()),
        Errand::Join(Box::new(join)),
        Errand::Read { serial: 1, file: FileId::ROOT, offset: 2, length: 3 },
        Errand::Rights { machine: key, serial: 1, file: FileId::ROOT },
        Errand::Look(FileId::ROOT),
        Errand::Who(Whom::Client(client)),
        Errand::Who(Whom::Key(key)),
        Errand::Decree(Box::new(Decree::Revoke(Revocation::new(&issuer, key, 5)))),
        Errand::Decree(Box::new(Decree::Enrol(enrolment))),
        Errand::Decree(Box::new(Decree::RevokeIssuer(IssuerRevocation::new(&authority, key, 5)))),
        Errand::People,
        Errand::Renew,
        Errand::Do { serial: 4, file: FileId::ROOT, who: (0, 0), deed: Deed::Sync },
        Errand::Do {
            serial: 4,
            file: FileId::ROOT,
            who: (1, 2),
            deed: Deed::Write { offset: Some(1), bytes: vec![2] },
        },
    ];
    let answers = [
        Answer::Joined(Box::new(ticket)),
        Answer::Refused("no".into()),
        Answer::Invited(Box::new(Lead { pin, changes: Vec::new(), members: vec![address] })),
        Answer::Bytes(vec![1, 2, 3]),
        Answer::Machine(machines[0].clone()),
        Answer::People(vec![Person { user: user.clone(), is_removed: true }]),
        Answer::Renewed(Box::new(renewal)),
        Answer::Done(Done::Bytes(vec![4])),
        Answer::Done(Done::Away),
    ];
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
    let errands = errands.iter().map(base::encode);
    errands.chain(answers.iter().map(base::encode)).chain([base::encode(&membership)]).collect()
}
