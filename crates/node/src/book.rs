//! The machines of a cell, as its group knows them: which client each is, and where it can be reached.

use std::{collections::BTreeMap, net::SocketAddr};

use base::{Domain, Malformed, PublicKey, SecretKey, Signature};
use borsh::{BorshDeserialize, BorshSerialize, io};
use group::Rescue;
use lease::Client;
use overlay::{Certificate, Refused, Register, Revocation, Users, Vouched};

const WHEREABOUTS: Domain = Domain::new("whereabouts of a machine v1");

/// Where a machine says that it can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Whereabouts {
    /// The addresses. At most [`Whereabouts::ADDRESSES_MAX`].
    #[borsh(deserialize_with = "read_addresses")]
    pub addresses: Vec<SocketAddr>,
    /// Of two that a machine has said the one with the greater number counts.
    pub number: u64,
}

impl Whereabouts {
    /// A machine is reached at no more addresses.
    pub const ADDRESSES_MAX: usize = 4;
}

/// A machine that wants to be, or is, one of the cell.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Join {
    /// What it shows.
    pub certificate: Certificate,
    /// Where it can be reached.
    pub whereabouts: Whereabouts,
    /// The machine's own, over its whereabouts: else whoever has seen the certificate could move it elsewhere.
    signature: Signature,
    /// When it was heard, in seconds since 1970, by the clock of the member that has heard it.
    pub heard: u64,
}

impl Join {
    /// What the machine with this key says, heard at this moment in seconds since 1970.
    pub fn new(
        certificate: Certificate,
        whereabouts: Whereabouts,
        key: &SecretKey,
        heard: u64,
    ) -> Join {
        let signature = key.sign(WHEREABOUTS, &base::encode(&whereabouts));
        Join { certificate, whereabouts, signature, heard }
    }

    /// What the certificate says, if all is as it seems, as far as can be told from this alone.
    pub(crate) fn check(&self, authority: &PublicKey) -> Result<Vouched<'_>, Refused> {
        let vouched = self.certificate.verify(authority, self.heard)?;
        let bytes = base::encode(&self.whereabouts);
        let signed = vouched.machine.verify(WHEREABOUTS, &bytes, &self.signature);
        signed.map_err(|_| Refused::KeyNotShown)?;
        Ok(vouched)
    }
}

/// The machines of a cell. At most [`Register::COUNT_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Book {
    register: Register,
    #[borsh(deserialize_with = "read_machines")]
    machines: BTreeMap<Client, Machine>,
    /// How often, and from whom, the group had to go on. The last [`Book::RESCUES_MAX`].
    #[borsh(deserialize_with = "read_rescues")]
    rescues: Vec<Rescue>,
}

/// A machine of the cell.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Machine {
    /// The key that it is known by.
    pub key: PublicKey,
    /// Where it can be reached, as it has last said.
    pub whereabouts: Whereabouts,
    /// When its certificate expires, in seconds since 1970. That is for those who let machines in, by their own
    /// clocks: it changes nothing that the group agrees on.
    pub expires: u64,
}

impl Book {
    /// So many rescues are remembered.
    pub const RESCUES_MAX: usize = 64;

    /// The rescues of the group, in order, the last of them.
    pub fn rescues(&self) -> &[Rescue] {
        &self.rescues
    }

    /// The group has gone on from one survivor.
    pub(crate) fn note_rescue(&mut self, rescue: &Rescue) {
        if self.rescues.len() == Book::RESCUES_MAX {
            self.rescues.remove(0);
        }
        self.rescues.push(rescue.clone());
    }

    /// Which client a machine is.
    pub fn client(&self, key: &PublicKey) -> Option<Client> {
        let mut machines = self.machines.iter();
        machines.find(|(_, machine)| machine.key == *key).map(|(client, _)| *client)
    }

    /// The machine that a client is.
    pub fn machine(&self, client: Client) -> Option<&Machine> {
        self.machines.get(&client)
    }

    /// All of them, the first to come first.
    pub fn machines(&self) -> impl Iterator<Item = (Client, &Machine)> {
        self.machines.iter().map(|(client, machine)| (*client, machine))
    }

    /// Whether the authority has sent a machine away.
    pub fn is_revoked(&self, key: &PublicKey) -> bool {
        self.register.check(key).is_err()
    }

    /// Sends a machine away, if the authority says so. Says which.
    pub(crate) fn revoke(
        &mut self,
        revocation: &Revocation,
        authority: &PublicKey,
    ) -> Result<PublicKey, Refused> {
        let (machine, _) = revocation.verify(authority)?;
        self.register.revoke(authority, revocation)?;
        Ok(machine)
    }

    /// Whether a client is the machine with this key.
    pub(crate) fn is_its(&self, client: Client, key: &PublicKey) -> bool {
        let known = self.machines.get(&client);
        known.is_some_and(|known| known.key == *key) && !self.is_revoked(key)
    }

    /// In a group without an authority: whoever is the first to speak as a client that was admitted is the
    /// only one from then on.
    pub(crate) fn come(&mut self, client: Client, key: &PublicKey) {
        let whereabouts = Whereabouts::default();
        self.machines.entry(client).or_insert(Machine {
            key: *key,
            whereabouts,
            expires: u64::MAX,
        });
    }

    /// Takes a machine in, or notes where it is now; says which client it is and for whom it may act.
    pub(crate) fn admit(
        &mut self,
        join: &Join,
        authority: &PublicKey,
    ) -> Result<(Client, Users), Refused> {
        let vouched = join.check(authority)?;
        let (key, users, expires) = (vouched.machine, vouched.users().clone(), vouched.expires);
        self.register.check(&key)?;
        let whereabouts = join.whereabouts.clone();
        let known = self.machines.iter_mut().find(|(_, machine)| machine.key == key);
        if let Some((client, machine)) = known {
            if whereabouts.number > machine.whereabouts.number {
                machine.whereabouts = whereabouts;
            }
            machine.expires = expires.max(machine.expires);
            return Ok((*client, users));
        }
        let last = self.machines.last_key_value().map_or(0, |(client, _)| client.0);
        let next = last.checked_add(1).filter(|_| self.machines.len() < Register::COUNT_MAX);
        let client = Client(next.ok_or(Refused::InvitationsTooMany)?);
        self.register.admit(&vouched, join.heard)?;
        self.machines.insert(client, Machine { key, whereabouts, expires });
        Ok((client, users))
    }
}

fn read_addresses<R: io::Read>(reader: &mut R) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = Vec::deserialize_reader(reader)?;
    match addresses.len() <= Whereabouts::ADDRESSES_MAX {
        true => Ok(addresses),
        false => Err(Malformed::new("a machine with more addresses than it may have").into()),
    }
}

fn read_rescues<R: io::Read>(reader: &mut R) -> io::Result<Vec<Rescue>> {
    let rescues: Vec<Rescue> = Vec::deserialize_reader(reader)?;
    match rescues.len() <= Book::RESCUES_MAX {
        true => Ok(rescues),
        false => Err(Malformed::new("more rescues than are remembered").into()),
    }
}

fn read_machines<R: io::Read>(reader: &mut R) -> io::Result<BTreeMap<Client, Machine>> {
    let machines: BTreeMap<Client, Machine> = BTreeMap::deserialize_reader(reader)?;
    match machines.len() <= Register::COUNT_MAX {
        true => Ok(machines),
        false => Err(Malformed::new("more machines than a cell may have").into()),
    }
}
