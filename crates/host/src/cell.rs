//! What a machine knows of the cell that it is one of, in a file beside its key.
//!
//! Whoever founds a cell makes its authority's key and invites itself. Whoever joins asks a machine of the
//! cell, which has the group decide, and is told who else there is.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    path::Path,
    sync::Arc,
    time::Duration,
};

use base::{Digest, Domain, FileId, PublicKey, SecretKey};
use borsh::{BorshDeserialize, BorshSerialize};
use group::{Charter, Decision, Ed25519, Roll, Seat, Tip};
use lease::Client;
use node::{Identity, Join, Whereabouts};
use overlay::{Certificate, Code, Invitation, Revocation, Terms, Text, Users};

use crate::{
    Asker, Clock, Failure, Lane, Limits, Network, NetworkSettings, Reception, Welcome,
    discovery::{self, Mdns},
    group::Survivor,
    key,
    machine::replace,
};

const GROUP: Domain = Domain::new("first group of a cell v1");
/// How long a certificate lasts.
const CERTIFICATE: Duration = Duration::from_secs(3 * 365 * 86_400);
/// So long before it expires people are told.
const WARNING: Duration = Duration::from_secs(30 * 86_400);
/// How long whoever asks to join waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long whoever asks to join looks for machines nearby, if those it was invited by are not where they were.
const NEARBY: Duration = Duration::from_secs(5);
/// The most addresses nearby that are asked.
const NEARBY_MAX: usize = 8;
/// The most bytes of an answer.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 << 20;
/// The most bytes of the file.
const BYTES_MAX: usize = 16 << 20;

/// What a machine knows of its cell.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Membership {
    /// The key of the cell's authority.
    pub(crate) authority: PublicKey,
    /// Who has founded it: its group began with this one.
    pub(crate) founder: Seat,
    /// Which client this machine is.
    pub(crate) client: Client,
    /// What shows that it is one of the cell.
    pub(crate) certificate: Certificate,
    /// Where it listens, if it does.
    pub(crate) listen: Option<SocketAddr>,
    /// The members of the group, as last known.
    pub(crate) roll: Roll,
    /// The other machines and where they can be reached, as last known.
    pub(crate) machines: Vec<Neighbour>,
}

/// Another machine of the cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub(crate) struct Neighbour {
    /// Which client it is.
    pub(crate) client: Client,
    /// What it is known by.
    pub(crate) key: PublicKey,
    /// Where it can be reached.
    pub(crate) addresses: Vec<SocketAddr>,
    /// When its certificate expires, in seconds since 1970.
    pub(crate) expires: u64,
}

impl Neighbour {
    pub(crate) fn of(client: Client, machine: &node::Machine) -> Neighbour {
        let addresses = machine.whereabouts.addresses.clone();
        Neighbour { client, key: machine.key, addresses, expires: machine.expires }
    }
}

/// What one machine asks another, out of turn.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) enum Errand {
    /// "I want to be one of you."
    Join(Box<Join>),
    /// "What are these bytes of the file with this number?"
    Read {
        /// The number.
        serial: u64,
        /// The first byte.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// "What you sent of this file is not what the directory says. Look at it."
    Look(FileId),
    /// "Who is that?"
    Who(Whom),
    /// "The authority sends a machine away."
    Revoke(Revocation),
    /// "How much of the group's decisions do you have?"
    Survivor,
    /// "The members of the group have changed like this."
    Changes(Vec<Decision>),
}

/// How somebody is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) enum Whom {
    /// The machine that is this client.
    Client(Client),
    /// The machine with this key.
    Key(PublicKey),
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) enum Answer {
    /// "You are", and what there is to know.
    Joined(Box<Ticket>),
    /// "No", and why.
    Refused(String),
    /// "These."
    Bytes(Vec<u8>),
    /// "I will, soon."
    Looking,
    /// "This one."
    Machine(Neighbour),
    /// "It is no longer one of us."
    Revoked,
    /// "So much."
    Survivor(Box<Survivor>),
    /// "I have heard it."
    Heard,
}

/// What a machine that has joined has to know.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Ticket {
    pub(crate) client: Client,
    pub(crate) founder: Seat,
    pub(crate) roll: Roll,
    pub(crate) machines: Vec<Neighbour>,
    /// That of the machine that answers.
    pub(crate) certificate: Certificate,
}

impl Membership {
    /// Makes a cell: the machine's key and that of the authority come to be in a directory.
    pub(crate) fn found(
        directory: &Path,
        listen: Option<SocketAddr>,
    ) -> Result<Membership, Failure> {
        let listen = listen.map(free_port).transpose()?;
        key::make(&directory.join("key"))?;
        key::make(&directory.join("authority"))?;
        let machine = key::read(&directory.join("key"))?;
        // It is used when the machine first starts, whenever that is.
        let invitation = Membership::invitation(directory, CERTIFICATE)?;
        let seat = Seat { key: machine.public(), incarnation: 0 };
        let first = Tip::first(vec![seat]).expect("one is a group");
        Ok(Membership {
            authority: *invitation.authority(),
            founder: seat,
            client: Client(1),
            certificate: certify(&invitation, &machine)?,
            listen,
            roll: Roll::from(&first),
            machines: Vec::new(),
        })
    }

    /// The key of the cell's authority, to do this with it.
    pub(crate) fn authority_key(directory: &Path, what: &str) -> Result<SecretKey, Failure> {
        let path = directory.join("authority");
        if !path.exists() {
            let what = format!(
                "the key of the cell's authority is not in {}; {what} where it is",
                directory.display()
            );
            return Err(Failure::Unfit(what));
        }
        key::read(&path)
    }

    /// Sends a machine away, from where the authority's key is.
    pub(crate) fn revocation(directory: &Path, key: PublicKey) -> Result<Revocation, Failure> {
        let authority = Membership::authority_key(directory, "revoke")?;
        Ok(Revocation::new(&authority, key, seconds_now()))
    }

    /// Invites a machine, from where the authority's key is.
    pub(crate) fn invitation(directory: &Path, span: Duration) -> Result<Invitation, Failure> {
        let authority = Membership::authority_key(directory, "invite")?;
        let now = seconds_now();
        let terms = Terms {
            expires: now.saturating_add(span.as_secs()),
            certificate_expires_max: now.saturating_add((CERTIFICATE + span).as_secs()),
            users: Users::Any,
        };
        Invitation::new(&authority, key::fresh_seed()?, terms).map_err(unfit)
    }

    /// Invites a machine to where this one listens.
    pub(crate) fn invite(&self, directory: &Path, span: Duration) -> Result<Text, Failure> {
        let Some(listen) = self.listen else {
            let what = "this machine does not listen, so nobody can join; start it with \
                        `croft run --listen ADDRESS`";
            return Err(Failure::Unfit(what.into()));
        };
        let invitation = Membership::invitation(directory, span)?;
        Ok(Code::new(invitation, &[listen]).map_err(unfit)?.text())
    }

    /// Joins the cell that a code invites to; the machine's key comes to be in a directory.
    pub(crate) fn join(
        directory: &Path,
        code: &Code,
        listen: SocketAddr,
    ) -> Result<Membership, Failure> {
        let path = directory.join("key");
        // After a join that came to nothing it is there: the invitation may be used up for it.
        if !path.exists() {
            key::make(&path)?;
        }
        let machine = key::read(&path)?;
        let (key, limits) = (machine.clone(), Limits::default());
        let network =
            Network::start(NetworkSettings { key, bind: listen, limits }, Arc::new(Nobody))?;
        let listen = network.address()?;
        let certificate = certify(&code.invitation, &machine)?;
        let authority = *code.invitation.authority();
        let join =
            Join::new(certificate.clone(), whereabouts(Some(listen)), &machine, seconds_now());
        let errand = Errand::Join(Box::new(join));
        let ask = |address: &SocketAddr| {
            let answer = network.ask_at(*address, base::encode(&errand), PATIENCE);
            answer.and_then(|(key, bytes)| read_answer(&key, &bytes, &authority))
        };
        let none = Failure::Unfit("the invitation names no address; ask for another".into());
        let mut ticket = first_of(code.addresses(), Err(none), &ask);
        if matches!(ticket, Err(Failure::Peer { .. })) && !listen.ip().is_loopback() {
            // Nobody of the cell is there any more. Whoever else is of it can let the machine in, too.
            let medium = Mdns::new(listen.ip(), None);
            let cell = discovery::Cell::of(&authority);
            let nearby = discovery::look_around(cell, medium, NEARBY, NEARBY_MAX);
            ticket = first_of(&nearby, ticket, &ask);
        }
        let Ticket { client, founder, roll, machines, .. } = ticket?;
        let listen = Some(listen);
        Ok(Membership { authority, founder, client, certificate, listen, roll, machines })
    }

    /// The one of a machine that lives in a directory.
    pub(crate) fn read(directory: &Path) -> Result<Membership, Failure> {
        let path = directory.join("cell");
        let bytes = fs::read(&path).map_err(Failure::of("can't read", &path))?;
        base::decode(&bytes, BYTES_MAX).map_err(|malformed| {
            let what = format!("{malformed}; put it back from a copy");
            Failure::Damaged { path, what }
        })
    }

    /// The same with a certificate that has not expired. Where the authority's key is, a new one is made in time;
    /// elsewhere people are told. Who has nobody else to show it to needs none.
    pub(crate) fn renewed(mut self, directory: &Path) -> Result<Membership, Failure> {
        let expires = self.certificate.verify(&self.authority, 0).map_err(unfit)?.expires;
        let left = Duration::from_secs(expires.saturating_sub(seconds_now()));
        if directory.join("authority").exists() && left < CERTIFICATE / 2 {
            let machine = key::read(&directory.join("key"))?;
            self.certificate = certify(&Membership::invitation(directory, CERTIFICATE)?, &machine)?;
            self.save(directory)?;
        } else if left.is_zero() && !self.machines.is_empty() {
            let what = "the certificate of this machine has expired, and the others do not let it in; make a \
                        new directory and join with a new invitation";
            return Err(Failure::Unfit(what.into()));
        } else if left < WARNING {
            let days = left.as_secs() / 86_400;
            eprintln!(
                "croft: the certificate of this machine expires in {days} days; then the others do not let it \
                 in. Join from a new directory, with a new invitation, before that"
            );
        }
        Ok(self)
    }

    pub(crate) fn save(&self, directory: &Path) -> Result<(), Failure> {
        replace(&directory.join("cell"), &base::encode(self))
    }

    /// Who the machine is in its group.
    pub(crate) fn identity(&self, key: &SecretKey) -> Identity<Ed25519> {
        Identity {
            group: self.group(),
            seat: Seat { key: key.public(), incarnation: 0 },
            authority: Some(self.authority),
            notary: Ed25519::new(key.clone()),
        }
    }

    /// What the group is known by.
    pub(crate) fn charter(&self) -> Charter {
        Charter { group: self.group(), authority: Some(self.authority) }
    }

    /// The group's name.
    pub(crate) fn group(&self) -> Digest {
        Digest::of(GROUP, self.founder.key.as_bytes())
    }

    /// Listens somewhere else from now on. Whether that is news.
    pub(crate) fn move_to(&mut self, listen: SocketAddr) -> Result<bool, Failure> {
        let is_there =
            |now: SocketAddr| now == listen || listen.port() == 0 && now.ip() == listen.ip();
        let is_news = !self.listen.is_some_and(is_there);
        if is_news {
            self.listen = Some(free_port(listen)?);
        }
        Ok(is_news)
    }

    /// What the machine says of itself, and where it is.
    pub(crate) fn own_join(&self, key: &SecretKey) -> Join {
        Join::new(self.certificate.clone(), whereabouts(self.listen), key, seconds_now())
    }
}

/// What the first says who has a ticket, else what the last says; else this.
fn first_of(
    addresses: &[SocketAddr],
    mut last: Result<Ticket, Failure>,
    ask: &dyn Fn(&SocketAddr) -> Result<Ticket, Failure>,
) -> Result<Ticket, Failure> {
    for address in addresses {
        last = ask(address);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// The address of this machine from which a code's addresses are reached, with any port.
pub(crate) fn way_to(code: &Code) -> Result<SocketAddr, Failure> {
    let Some(first) = code.addresses().first() else {
        return Err(Failure::Unfit("the invitation names no address; ask for another".into()));
    };
    let local = |to: &SocketAddr| {
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        // Nothing is sent by this: the kernel only looks for the way.
        socket.connect(to).ok()?;
        Some(SocketAddr::new(socket.local_addr().ok()?.ip(), 0))
    };
    code.addresses().iter().find_map(local).ok_or_else(|| {
        let what = format!(
            "no way leads from here to {first}; mend that, or name the address at which other \
             machines reach this one with `--listen ADDRESS`"
        );
        Failure::Unfit(what)
    })
}

/// Where a machine is that listens there from now on.
fn whereabouts(listen: Option<SocketAddr>) -> Whereabouts {
    // Finer than seconds: a machine may move, and start again, within one.
    let number = u64::try_from(Clock.wall()).unwrap_or(0);
    Whereabouts { addresses: listen.into_iter().collect(), number }
}

/// Lets nobody in: whoever joins does not listen yet.
struct Nobody;

impl Reception for Nobody {
    fn welcome(&self, _: &PublicKey) -> Welcome {
        Welcome::Refused
    }

    fn on_frame(&self, _: &PublicKey, _: Lane, _: Vec<u8>) {}

    fn on_ask(&self, _: &Asker, _: Vec<u8>) -> Vec<u8> {
        Vec::new()
    }
}

fn read_answer(key: &PublicKey, bytes: &[u8], authority: &PublicKey) -> Result<Ticket, Failure> {
    match base::decode::<Answer>(bytes, BYTES_MAX)? {
        Answer::Refused(why) => Err(Failure::Unfit(why)),
        Answer::Joined(ticket) => {
            // Else anybody at that address could make up a cell.
            let vouched = ticket.certificate.verify(authority, seconds_now()).map_err(unfit)?;
            if vouched.machine != *key {
                let what =
                    "it shows the certificate of another machine; ask for a new invitation, \
                            with an address of the cell"
                        .to_owned();
                return Err(Failure::Peer { who: format!("{key:?}"), what });
            }
            Ok(*ticket)
        }
        _ => {
            let what = "it answers something else".to_owned();
            Err(Failure::Peer { who: format!("{key:?}"), what })
        }
    }
}

fn certify(invitation: &Invitation, machine: &SecretKey) -> Result<Certificate, Failure> {
    let now = seconds_now();
    if invitation.is_expired(now) {
        let what = "the invitation has expired; ask for a new one, and look at the clocks if that can't be";
        return Err(Failure::Unfit(what.into()));
    }
    let expires = invitation.permit().certificate_expires_max;
    invitation.certify(machine, expires).map_err(unfit)
}

/// The same address with a port that is free, if any will do: others have to know it.
fn free_port(address: SocketAddr) -> Result<SocketAddr, Failure> {
    let bound = UdpSocket::bind(address).and_then(|socket| socket.local_addr());
    bound.map_err(|error| {
        let what = format!("can't listen at {address}: {error}; name an address of this machine");
        Failure::Unfit(what)
    })
}

fn unfit(refused: overlay::Refused) -> Failure {
    Failure::Unfit(refused.to_string())
}

/// The wall clock, in seconds since 1970.
pub(crate) fn seconds_now() -> u64 {
    u64::try_from(Clock.wall() / 1_000_000_000).unwrap_or(0)
}
