//! The machines and users of a cell, as its group knows them: which client each machine is, where it can be
//! reached, and for whom it acts.

use std::collections::{BTreeMap, BTreeSet};

use base::{Malformed, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize, io};
use directory::{Command, Holder, Quota};
use group::Rescue;
use lease::Client;
use overlay::{
    Admission, Decree, Enrolment, Patrons, People, Profile, Refused, Register, Share, Sharer,
    Users, Vouched,
};
use wire::{Join, Neighbour, Whereabouts};

/// The machines of a cell, at most [`Register::COUNT_MAX`], and its users.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Book {
    register: Register,
    #[borsh(deserialize_with = "read_machines")]
    machines: BTreeMap<Client, Machine>,
    /// How often, and from whom, the group had to go on. The last [`Book::RESCUES_MAX`].
    #[borsh(deserialize_with = "read_rescues")]
    rescues: Vec<Rescue>,
    people: People,
    /// Whether machines act only for users that are named and agree. So it is if the first one came so.
    is_named: bool,
    /// Whose share was set, and when, in seconds since 1970. At most [`Share::COUNT_MAX`].
    #[borsh(deserialize_with = "read_shares")]
    shares: BTreeMap<Sharer, u64>,
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
    /// The key of the invitation that it came with: it has no other.
    invitation: PublicKey,
    /// Which of the machines that came with that it is. Where it may stand follows from both.
    place: u32,
    /// Who has issued that.
    pub issuer: PublicKey,
    /// For whom it may act by that.
    pub patrons: Patrons,
    /// The users who have agreed, by their keys. As many as there are patrons at the most.
    agreed: BTreeSet<PublicKey>,
}

impl Book {
    /// A machine as others are told of it.
    pub fn neighbour(&self, client: Client, machine: &Machine) -> Neighbour {
        let (addresses, users) = (machine.whereabouts.addresses.clone(), self.users(machine));
        Neighbour { client, key: machine.key, addresses, expires: machine.expires, users }
    }

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

    /// Whether a machine was sent away, or a user removed.
    pub fn is_revoked(&self, key: &PublicKey) -> bool {
        self.register.check(key).is_err()
    }

    /// Whether that is known already which a decree ends.
    pub fn has_heard(&self, decree: &Decree) -> bool {
        match decree {
            Decree::Revoke(revocation) => self.is_revoked(&revocation.subject()),
            Decree::RevokeIssuer(revocation) => self.is_issuer_revoked(&revocation.subject()),
            Decree::Enrol(_) | Decree::Share(_) => false,
        }
    }

    /// Whether machines of this cell act only for users that are named and agree.
    pub fn is_named(&self) -> bool {
        self.is_named
    }

    /// The users that the cell has, and those that were removed.
    pub fn people(&self) -> &People {
        &self.people
    }

    /// The users that a machine acts for; none if it acts for any.
    pub fn served(&self, machine: &Machine) -> Option<Vec<Profile>> {
        let Patrons::These(names) = &machine.patrons else { return None };
        let known = names.iter().filter_map(|name| self.people.get(name));
        let served = known
            .filter(|user| machine.agreed.contains(&user.key) && !self.is_revoked(&user.key))
            .cloned();
        Some(served.collect())
    }

    /// The same by number.
    pub fn users(&self, machine: &Machine) -> Users {
        match self.served(machine) {
            None => Users::Any,
            Some(users) => {
                Users::These(users.into_iter().map(|user| (user.uid, user.gids())).collect())
            }
        }
    }

    /// What a decree that holds makes of somebody's share.
    pub(crate) fn share(&self, decree: &Decree, authority: &PublicKey) -> Option<Command> {
        let Decree::Share(share) = decree else { return None };
        let (sharer, files, bytes, at, _) = share.verify(authority).ok()?;
        // One that was said before, perhaps: the later one counts.
        self.shares.get(&sharer).filter(|since| **since == at)?;
        let holder = match sharer {
            Sharer::Everybody => Holder::Everybody,
            Sharer::User(uid) => Holder::User(uid),
            Sharer::Machine(key) => Holder::Machine(self.client(&key)?),
        };
        let all = |amount: Option<u64>| amount.unwrap_or(u64::MAX);
        let is_set = files.is_some() || bytes.is_some();
        let share = is_set.then(|| Quota { files: all(files), bytes: all(bytes) });
        Some(Command::Share { holder, share })
    }

    /// Does what a decree says that was heard at this moment in seconds since 1970. The machines for which something
    /// else holds now, and for whom they may act.
    pub(crate) fn obey(
        &mut self,
        decree: &Decree,
        authority: &PublicKey,
        heard: u64,
    ) -> Result<Vec<(Client, Users)>, Refused> {
        let key = decree.verify(authority)?;
        match decree {
            Decree::Revoke(revocation) => {
                self.register.revoke(authority, revocation, heard).map(drop)?;
            }
            Decree::Enrol(enrolment) => self.enrol(enrolment, authority, heard)?,
            Decree::RevokeIssuer(revocation) => {
                self.register.revoke_issuer(authority, revocation).map(drop)?;
            }
            Decree::Share(share) => {
                let is_news = self.judge(decree, authority, heard)?;
                let (sharer, _, _, at, _) = share.verify(authority)?;
                if is_news {
                    self.shares.insert(sharer, at);
                }
            }
        }
        let concerned = self.machines.iter().filter(|(_, machine)| machine.agreed.contains(&key));
        Ok(concerned.map(|(client, machine)| (*client, self.users(machine))).collect())
    }

    /// Whether a decree would change something, or why it must not.
    pub(crate) fn judge(
        &self,
        decree: &Decree,
        authority: &PublicKey,
        heard: u64,
    ) -> Result<bool, Refused> {
        if let Some(tenure) = decree.tenure(authority)? {
            self.register.check_issuer(&tenure, heard)?;
        }
        match decree {
            Decree::Revoke(_) => decree.verify(authority).map(|key| !self.is_revoked(&key)),
            Decree::Enrol(enrolment) => {
                let (user, at, _) = enrolment.verify(authority)?;
                if self.is_revoked(&user.key) {
                    return Err(Refused::UserRemoved(user.name.clone()));
                }
                self.people.check(user, at)
            }
            Decree::RevokeIssuer(_) => {
                decree.verify(authority).map(|key| !self.register.is_issuer_revoked(&key))
            }
            Decree::Share(share) => {
                let (sharer, _, _, at, _) = share.verify(authority)?;
                if let Sharer::Machine(key) = sharer
                    && self.client(&key).is_none()
                {
                    return Err(Refused::MachineUnknown);
                }
                match self.shares.get(&sharer) {
                    None if self.shares.len() >= Share::COUNT_MAX => Err(Refused::SharesTooMany),
                    since => Ok(since.is_none_or(|since| *since < at)),
                }
            }
        }
    }

    /// Whether nothing more is taken from an issuer.
    pub fn is_issuer_revoked(&self, issuer: &PublicKey) -> bool {
        self.register.is_issuer_revoked(issuer)
    }

    fn enrol(
        &mut self,
        enrolment: &Enrolment,
        authority: &PublicKey,
        heard: u64,
    ) -> Result<(), Refused> {
        self.judge(&Decree::Enrol(enrolment.clone()), authority, heard)?;
        let (user, at, _) = enrolment.verify(authority)?;
        self.people.enrol(user, at).map(drop)
    }

    /// Whether a certificate lets a machine that is known stay for longer, and who has renewed it still may.
    fn extends(&self, known: &Machine, vouched: &Vouched<'_>, heard: u64) -> bool {
        let may = |renewer| self.register.check_issuer(renewer, heard).is_ok();
        vouched.expires > known.expires && vouched.renewer.as_ref().is_none_or(may)
    }

    /// Whether a client is the machine with this key.
    pub(crate) fn is_its(&self, client: Client, key: &PublicKey) -> bool {
        let known = self.machines.get(&client);
        known.is_some_and(|known| known.key == *key) && !self.is_revoked(key)
    }

    /// In a group without an authority: whoever is the first to speak as a client that was admitted is the
    /// only one from then on.
    pub(crate) fn come(&mut self, client: Client, key: &PublicKey) {
        self.machines.entry(client).or_insert(Machine {
            key: *key,
            whereabouts: Whereabouts::default(),
            expires: u64::MAX,
            invitation: *key,
            place: 0,
            issuer: *key,
            patrons: Patrons::Any,
            agreed: BTreeSet::new(),
        });
    }

    /// Whether a machine may be one of the cell, as heard at this moment in seconds since 1970, and which it is if it
    /// is known. Of what this says no nothing will ever come, so nobody has to decide it.
    pub(crate) fn may_join(
        &self,
        vouched: &Vouched<'_>,
        heard: u64,
    ) -> Result<Option<Client>, Refused> {
        self.register.check(&vouched.machine)?;
        if let Some(client) = self.client(&vouched.machine) {
            // Else it could take whatever another's invitation allows.
            return match self.machines[&client].invitation == vouched.permit.invitation {
                true => Ok(Some(client)),
                false => Err(Refused::InvitationOther),
            };
        }
        if self.is_named && *vouched.patrons() == Patrons::Any {
            return Err(Refused::AnyUser);
        }
        if self.machines.len() >= Register::COUNT_MAX {
            return Err(Refused::InvitationsTooMany);
        }
        self.register.judge(vouched, heard).map(|_| None)
    }

    /// Takes a machine in, or notes where it is now; says which client it is and for whom it may act.
    pub(crate) fn admit(
        &mut self,
        join: &Join,
        authority: &PublicKey,
    ) -> Result<(Client, Users), Refused> {
        let vouched = join.check(authority)?;
        let (key, expires) = (vouched.machine, vouched.expires);
        let known = self.may_join(&vouched, join.heard)?;
        let whereabouts = join.whereabouts.clone();
        let agreed = self.heeded(join, vouched.patrons(), authority)?;
        let extends = known.is_some_and(|client| {
            let known = &self.machines[&client];
            self.extends(known, &vouched, join.heard)
        });
        if let Some(client) = known
            && let Some(machine) = self.machines.get_mut(&client)
        {
            if whereabouts.number > machine.whereabouts.number {
                machine.whereabouts = whereabouts;
            }
            if extends {
                machine.expires = expires;
            }
            machine.agreed.extend(agreed);
            return Ok((client, self.users(&self.machines[&client])));
        }
        let patrons = vouched.patrons().clone();
        let last = self.machines.last_key_value().map_or(0, |(client, _)| client.0);
        let client = Client(last.checked_add(1).ok_or(Refused::InvitationsTooMany)?);
        let (Admission::New(place) | Admission::Again(place)) =
            self.register.admit(&vouched, join.heard)?;
        self.is_named |= self.machines.is_empty() && patrons != Patrons::Any;
        let (invitation, issuer) = (vouched.permit.invitation, vouched.inviter.issuer);
        let machine =
            Machine { key, whereabouts, expires, invitation, place, issuer, patrons, agreed };
        let users = self.users(&machine);
        self.machines.insert(client, machine);
        Ok((client, users))
    }

    /// Of the users who have agreed that a machine acts for them those who are known, and whom it may act for.
    fn heeded(
        &self,
        join: &Join,
        patrons: &Patrons,
        authority: &PublicKey,
    ) -> Result<BTreeSet<PublicKey>, Refused> {
        let Patrons::These(names) = patrons else { return Ok(BTreeSet::new()) };
        let mut agreed = join.agreed(authority)?;
        agreed
            .retain(|key| self.people.with_key(key).is_some_and(|user| names.contains(&user.name)));
        Ok(agreed)
    }

    /// Whether a machine that is known says something of itself that was not known.
    pub(crate) fn is_news(&self, client: Client, join: &Join, authority: &PublicKey) -> bool {
        let (Some(known), Ok(vouched)) = (self.machines.get(&client), join.check(authority)) else {
            return false;
        };
        let agreed = self.heeded(join, &known.patrons, authority).unwrap_or_default();
        join.whereabouts.number > known.whereabouts.number
            && join.whereabouts.addresses != known.whereabouts.addresses
            || self.extends(known, &vouched, join.heard)
            || !agreed.is_subset(&known.agreed)
    }
}

fn read_rescues<R: io::Read>(reader: &mut R) -> io::Result<Vec<Rescue>> {
    let rescues: Vec<Rescue> = Vec::deserialize_reader(reader)?;
    match rescues.len() <= Book::RESCUES_MAX {
        true => Ok(rescues),
        false => Err(Malformed::new("more rescues than are remembered").into()),
    }
}

fn read_shares<R: io::Read>(reader: &mut R) -> io::Result<BTreeMap<Sharer, u64>> {
    let shares: BTreeMap<Sharer, u64> = BTreeMap::deserialize_reader(reader)?;
    match shares.len() <= Share::COUNT_MAX {
        true => Ok(shares),
        false => Err(Malformed::new("more shares than are remembered").into()),
    }
}

fn read_machines<R: io::Read>(reader: &mut R) -> io::Result<BTreeMap<Client, Machine>> {
    let machines: BTreeMap<Client, Machine> = BTreeMap::deserialize_reader(reader)?;
    match machines.len() <= Register::COUNT_MAX {
        true => Ok(machines),
        false => Err(Malformed::new("more machines than a cell may have").into()),
    }
}

#[cfg(test)]
mod tests;
