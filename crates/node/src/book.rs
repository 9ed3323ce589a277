//! The machines of a cell, as its group knows them: which client each is, and where it can be reached.

use std::{collections::BTreeMap, net::SocketAddr};

use base::{Malformed, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize, io};
use lease::Client;
use overlay::{Certificate, Refused, Register, Users};

/// A machine that wants to be, or is, one of the cell.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Join {
    /// What it shows.
    pub certificate: Certificate,
    /// Where it can be reached. At most [`Join::ADDRESSES_MAX`].
    #[borsh(deserialize_with = "read_addresses")]
    pub addresses: Vec<SocketAddr>,
    /// When it was heard, in seconds since 1970, by the clock of the member that has heard it.
    pub heard: u64,
}

impl Join {
    /// A machine is reached at no more addresses.
    pub const ADDRESSES_MAX: usize = 4;

    /// Whether the certificate is good, as far as can be told from it alone.
    pub(crate) fn check(&self, authority: &PublicKey) -> Result<(), Refused> {
        if self.addresses.len() > Join::ADDRESSES_MAX {
            return Err(Refused::AddressesTooMany);
        }
        self.certificate.verify(authority, self.heard).map(drop)
    }
}

/// The machines of a cell. At most [`Register::COUNT_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Book {
    register: Register,
    #[borsh(deserialize_with = "read_machines")]
    machines: BTreeMap<Client, Machine>,
}

/// A machine of the cell.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Machine {
    /// The key that it is known by.
    pub key: PublicKey,
    /// Where it can be reached, as it has last said.
    #[borsh(deserialize_with = "read_addresses")]
    pub addresses: Vec<SocketAddr>,
}

impl Book {
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

    /// Whoever is the first to speak as a client is the only one from then on. Whether this is that one.
    pub(crate) fn is_its(&mut self, client: Client, key: &PublicKey) -> bool {
        let machine = Machine { key: *key, addresses: Vec::new() };
        let known = self.machines.entry(client).or_insert(machine);
        known.key == *key && self.register.check(key).is_ok()
    }

    /// Takes a machine in, or notes where it is now; says which client it is and for whom it may act.
    pub(crate) fn admit(
        &mut self,
        join: &Join,
        authority: &PublicKey,
    ) -> Result<(Client, Users), Refused> {
        join.check(authority)?;
        let vouched = join.certificate.verify(authority, join.heard)?;
        self.register.check(&vouched.machine)?;
        let known = self.client(&vouched.machine);
        if known.is_none() {
            self.register.admit(&vouched, join.heard)?;
        }
        let last = self.machines.last_key_value().map_or(0, |(client, _)| client.0);
        let client = known.or_else(|| Some(Client(last.checked_add(1)?)));
        let client = client.ok_or(Refused::InvitationsTooMany)?;
        if self.machines.len() >= Register::COUNT_MAX && known.is_none() {
            return Err(Refused::InvitationsTooMany);
        }
        let machine = Machine { key: vouched.machine, addresses: join.addresses.clone() };
        self.machines.insert(client, machine);
        Ok((client, vouched.users().clone()))
    }
}

fn read_addresses<R: io::Read>(reader: &mut R) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = Vec::deserialize_reader(reader)?;
    match addresses.len() <= Join::ADDRESSES_MAX {
        true => Ok(addresses),
        false => Err(Malformed::new("a machine with more addresses than it may have").into()),
    }
}

fn read_machines<R: io::Read>(reader: &mut R) -> io::Result<BTreeMap<Client, Machine>> {
    let machines: BTreeMap<Client, Machine> = BTreeMap::deserialize_reader(reader)?;
    match machines.len() <= Register::COUNT_MAX {
        true => Ok(machines),
        false => Err(Malformed::new("more machines than a cell may have").into()),
    }
}
