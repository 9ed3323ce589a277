//! What a machine knows of the cell that it is one of, in a file beside its key.
//!
//! Whoever founds a cell makes its root key and an issuer, and invites itself. Whoever joins asks a machine of the
//! cell, which has the group decide, and is told who else there is.

mod joining;
mod pins;

use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    path::Path,
    time::Duration,
};

use base::{Digest, Domain, FileId, PublicKey, SecretKey};
use borsh::{BorshDeserialize, BorshSerialize};
use group::{Charter, Ed25519, Roll, Seat, Tip};
use lease::Client;
use node::Identity;
use overlay::{
    Certificate, Consent, Invitation, Patrons, Power, Profile, Renewal, Renewer, Revocation,
    Secret, Users, Warrant,
};
use wire::{Io, Join, Neighbour, Whereabouts};

use crate::{
    Clock, Failure, Root,
    authority::{issuer_for, issuer_path},
    key,
    machine::replace,
};

pub(crate) use joining::way_to;
pub(crate) use pins::recall;

const GROUP: Domain = Domain::new("first group of a cell v1");
/// How long a certificate lasts.
const CERTIFICATE: Duration = Duration::from_secs(Renewal::SPAN);
/// How long whoever asks to join waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long whoever asks to join looks for machines nearby, if those it was invited by are not where they were.
const NEARBY: Duration = Duration::from_secs(5);
/// The most addresses nearby that are asked.
const NEARBY_MAX: usize = 8;
/// The most bytes of the file.
const BYTES_MAX: usize = 16 << 20;

/// What a machine knows of its cell.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Membership {
    /// The root key of the cell.
    pub(crate) authority: PublicKey,
    /// Who has founded it: its group began with this one.
    pub(crate) founder: Seat,
    /// Who sat in the group when this machine was let in: what it believes before it has a state of its own.
    pub(crate) pin: Roll,
    /// Which client this machine is.
    pub(crate) client: Client,
    /// What shows that it is one of the cell.
    pub(crate) certificate: Certificate,
    /// The users who have agreed that it acts for them.
    pub(crate) consents: Vec<Consent>,
    /// The users that it acts for, as last known; none if it acts for any.
    pub(crate) users: Option<Vec<Profile>>,
    /// Where it listens, if it does.
    pub(crate) listen: Option<SocketAddr>,
    /// The members of the group, as last known.
    pub(crate) roll: Roll,
    /// The other machines and where they can be reached, as last known.
    pub(crate) machines: Vec<Neighbour>,
}

/// Something that another machine wants done to the bytes of a file here.
pub struct IoRequest<'a> {
    /// For whom that machine acts.
    pub users: &'a Users,
    /// The number of the file.
    pub serial: u64,
    /// The file.
    pub file: &'a FileId,
    /// On whose behalf: user and group.
    pub who: (u32, u32),
    /// What.
    pub io: Io,
    /// Whether that machine still waits. If it does not, it believes that nothing was done, or asks again.
    pub is_awaited: &'a dyn Fn() -> bool,
}

/// On which terms machines are invited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How many may come with the code.
    pub count: u32,
    /// For how long.
    pub span: Duration,
    /// For whom they may act, if it is said.
    pub patrons: Option<Patrons>,
}

impl Terms {
    /// For one machine, for so long.
    pub fn one(span: Duration) -> Terms {
        Terms { count: 1, span, patrons: None }
    }
}

impl Membership {
    /// Makes a cell: the machine's key and an issuer's come to be in a directory, and the root key where it is said.
    /// If the machine acts for any user, so may others of the cell.
    pub(crate) fn found(
        directory: &Path,
        listen: Option<SocketAddr>,
        patrons: Patrons,
        root: &Path,
    ) -> Result<Membership, Failure> {
        let listen = listen.map(free_port).transpose()?;
        key::make(root)?;
        key::make(&directory.join("key"))?;
        let root = Root::made(root)?;
        let issuer = root.new_issuer(Power::ALL.into(), Duration::from_secs(Warrant::SPAN))?;
        key::write_over(&issuer_path(directory), &issuer.text)?;
        let machine = key::read(&directory.join("key"))?;
        // It is used when the machine first starts, whenever that is.
        let users = (patrons != Patrons::Any).then(Vec::new);
        let authority = root.public();
        let terms = Terms { patrons: Some(patrons), ..Terms::one(CERTIFICATE) };
        let secret = key::fresh_secret()?;
        let invitation = Membership::invitation(directory, &authority, &secret, terms)?;
        let seat = Seat { key: machine.public(), incarnation: 0 };
        let first = Tip::first(vec![seat]).expect("one is a group");
        Ok(Membership {
            authority,
            founder: seat,
            pin: Roll::from(&first),
            client: Client(1),
            certificate: certify(&invitation, &machine)?,
            consents: Vec::new(),
            users,
            listen,
            roll: Roll::from(&first),
            machines: Vec::new(),
        })
    }

    /// Lets a machine stay for as long as certificates last, with an issuer's key in a file.
    pub(crate) fn renewal(
        issuer: &Path,
        authority: &PublicKey,
        machine: PublicKey,
    ) -> Result<Renewal, Failure> {
        let expires = seconds_now().saturating_add(Renewal::SPAN);
        let issuer = issuer_for(issuer, authority, Power::Renew)?;
        Ok(Renewal::new(&issuer, machine, expires))
    }

    /// Sends a machine away, or removes a user, from where an issuer's key is.
    pub(crate) fn revocation(
        &self,
        directory: &Path,
        key: PublicKey,
    ) -> Result<Revocation, Failure> {
        let issuer = issuer_for(&issuer_path(directory), &self.authority, Power::Revoke)?;
        Ok(Revocation::new(&issuer, key, seconds_now()))
    }

    /// Invites machines, from where an issuer's key is. They act for nobody if it is not said for whom.
    pub(crate) fn invitation(
        directory: &Path,
        authority: &PublicKey,
        secret: &Secret,
        terms: Terms,
    ) -> Result<Invitation, Failure> {
        let issuer = issuer_for(&issuer_path(directory), authority, Power::Invite)?;
        let (now, Terms { count, span, patrons }) = (seconds_now(), terms);
        let terms = overlay::Terms {
            count,
            expires: now.saturating_add(span.as_secs()),
            certificate_expires_max: now.saturating_add((CERTIFICATE + span).as_secs()),
            patrons: patrons.unwrap_or_else(|| Patrons::These(Default::default())),
        };
        Invitation::new(&issuer, secret, terms).map_err(unfit)
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

    /// The same with a certificate that has not expired. Where an issuer's key is that may do so, it is renewed in
    /// time. Who has nobody else to show it to needs none.
    pub(crate) fn renewed(mut self, directory: &Path) -> Result<Membership, Failure> {
        let (expires, now) = (self.expires()?, seconds_now());
        let (issuer, machine) = (issuer_path(directory), *self.certificate.machine());
        let is_due = expires.saturating_sub(now) < Renewer::LEAD && issuer.exists();
        let renewal = is_due.then(|| Membership::renewal(&issuer, &self.authority, machine));
        if let Some(Ok(renewal)) = renewal {
            self.renew(renewal)?;
            self.save(directory)?;
        } else if expires <= now && !self.machines.is_empty() {
            let what = "the certificate of this machine has expired, and the others do not let it in; make a \
                        new directory and join with a new invitation";
            return Err(Failure::Unfit(what.into()));
        }
        Ok(self)
    }

    /// When the certificate expires, in seconds since 1970.
    pub(crate) fn expires(&self) -> Result<u64, Failure> {
        Ok(self.certificate.verify(&self.authority, 0).map_err(unfit)?.expires)
    }

    /// Takes a renewal of the certificate. Whether it makes it last longer.
    pub(crate) fn renew(&mut self, renewal: Renewal) -> Result<bool, Failure> {
        let renewed = renewal.verify(&self.authority, self.certificate.machine());
        let (expires, _) = renewed.map_err(unfit)?;
        let is_longer = expires > self.expires()?;
        if is_longer {
            self.certificate = self.certificate.renewed(renewal);
        }
        Ok(is_longer)
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
        charter(&self.founder, self.authority)
    }

    /// The group's name.
    pub(crate) fn group(&self) -> Digest {
        self.charter().group
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
        let join =
            Join::new(self.certificate.clone(), whereabouts(self.listen), key, seconds_now());
        join.with(self.consents.clone())
    }
}

/// What the group is known by that somebody has founded, in the cell with this root key.
fn charter(founder: &Seat, authority: PublicKey) -> Charter {
    let group = Digest::of(GROUP, founder.key.as_bytes());
    Charter { group, authority: Some(authority) }
}

/// Where a machine is that listens there from now on.
fn whereabouts(listen: Option<SocketAddr>) -> Whereabouts {
    // Finer than seconds: a machine may move, and start again, within one.
    let number = u64::try_from(Clock.wall()).unwrap_or(0);
    Whereabouts { addresses: listen.into_iter().collect(), number }
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
