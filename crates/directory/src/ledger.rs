//! Who has used how much of what there is, and for whom how much is set aside (L48).
//!
//! What there is are the bytes that machines have said they have room for, and a stated number of files. Nobody but
//! the superuser may have all of it, no machine more than its own room, and shares may be set besides. A client is
//! given a part of what is free for somebody before it says yes to them ([`Session::escrow`]): so what it does under
//! its leases is never refused for want of room. The group checks that it keeps to that.
//!
//! [`Session::escrow`]: crate::session::Session

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use lease::Client;

use crate::{
    charge::{Cost, Quota},
    directory::Settings,
};

/// Whose share it is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Holder {
    /// Each user of whom nothing else is said, but for the superuser.
    Everybody,
    /// The user with this number.
    User(u32),
    /// The bytes that are on a machine.
    Machine(Client),
}

/// How somebody stands with what they may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Account {
    /// What they may have in all.
    pub share: Quota,
    /// What they have.
    pub used: Quota,
    /// What is set aside for them on machines.
    pub escrow: Quota,
}

/// What is free for one user on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    /// Of their share.
    pub(crate) own: Quota,
    /// Of what there is, and of what the machine may have.
    pub(crate) room: Quota,
}

impl Free {
    pub(crate) const NONE: Free =
        Free { own: Quota { files: 0, bytes: 0 }, room: Quota { files: 0, bytes: 0 } };

    pub(crate) fn both(&self) -> Quota {
        self.own.min(self.room)
    }
}

/// The most shares that are set.
pub const SHARES_MAX: usize = 4_096;
/// Of what there is, this part is kept from any one user but the superuser, so that there is something for others.
const SPARE_PART: u64 = 16;

/// What is used and set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Ledger {
    /// By user: what they have, and what is set aside for them. As many as own files or have something set aside.
    users: BTreeMap<u32, (Quota, Quota)>,
    /// As many as were admitted.
    machines: BTreeMap<Client, Machine>,
    /// At most [`SHARES_MAX`].
    shares: BTreeMap<Holder, Quota>,
    used: Quota,
    escrow: Quota,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Machine {
    /// For so many bytes it says that it has room.
    room: u64,
    /// So many are there.
    held: u64,
    /// And so many may yet come.
    escrow: u64,
}

impl Ledger {
    /// A machine has room for so many bytes more, as it says. Nobody may claim any number.
    pub(crate) fn pledge(&mut self, settings: &Settings, client: Client, free: u64) {
        let machine = self.machines.entry(client).or_default();
        machine.room = machine.held.saturating_add(free).min(settings.room_max);
    }

    /// Sets a share, or none. False if there are too many.
    pub(crate) fn set_share(&mut self, holder: Holder, share: Option<Quota>) -> bool {
        let Some(share) = share else {
            self.shares.remove(&holder);
            return true;
        };
        if self.shares.len() >= SHARES_MAX && !self.shares.contains_key(&holder) {
            return false;
        }
        self.shares.insert(holder, share);
        true
    }

    /// All that there is.
    fn room(&self, settings: &Settings) -> Quota {
        let rooms = self.machines.values().map(|machine| machine.room);
        Quota { files: settings.files_max, bytes: rooms.fold(0, u64::saturating_add) }
    }

    /// What a user may have.
    fn share(&self, settings: &Settings, uid: u32) -> Quota {
        let room = self.room(settings);
        let set = self.shares.get(&Holder::User(uid)).copied();
        if uid == 0 {
            return set.unwrap_or(Quota::MAX).min(room);
        }
        let spare = Quota { files: room.files / SPARE_PART, bytes: room.bytes / SPARE_PART };
        let everybody = || self.shares.get(&Holder::Everybody).copied();
        set.or_else(everybody).unwrap_or(settings.share).min(room.less(spare))
    }

    /// How a user stands.
    pub(crate) fn account(&self, settings: &Settings, uid: u32) -> Account {
        let (used, escrow) = self.users.get(&uid).copied().unwrap_or_default();
        Account { share: self.share(settings, uid), used, escrow }
    }

    /// How everybody stands who has anything, or a share of their own.
    pub(crate) fn accounts(&self, settings: &Settings) -> Vec<(Holder, Account)> {
        let set = self.shares.keys().filter_map(|holder| match holder {
            Holder::User(uid) => Some(*uid),
            Holder::Everybody | Holder::Machine(_) => None,
        });
        let mut uids: Vec<u32> = self.users.keys().copied().chain(set).collect();
        uids.sort_unstable();
        uids.dedup();
        let users = uids.into_iter().map(|uid| (Holder::User(uid), self.account(settings, uid)));
        let machines = self.machines.iter().map(|(client, machine)| {
            let bytes = |bytes| Quota { files: 0, bytes };
            let share = bytes(self.machine_share(*client));
            let account =
                Account { share, used: bytes(machine.held), escrow: bytes(machine.escrow) };
            (Holder::Machine(*client), account)
        });
        let all = Account { share: self.room(settings), used: self.used, escrow: self.escrow };
        [(Holder::Everybody, all)].into_iter().chain(users).chain(machines).collect()
    }

    fn machine_share(&self, client: Client) -> u64 {
        let set = self.shares.get(&Holder::Machine(client)).map_or(u64::MAX, |share| share.bytes);
        self.machines.get(&client).map_or(0, |machine| machine.room).min(set)
    }

    /// What is free for a user on a machine.
    pub(crate) fn free(&self, settings: &Settings, client: Client, uid: u32) -> Free {
        let Account { share, used, escrow } = self.account(settings, uid);
        let machine = self.machines.get(&client).copied().unwrap_or_default();
        let here = self.machine_share(client).saturating_sub(machine.held);
        let here = Quota { files: u64::MAX, bytes: here.saturating_sub(machine.escrow) };
        let all = self.room(settings).less(self.used).less(self.escrow);
        Free { own: share.less(used).less(escrow), room: all.min(here) }
    }

    /// Sets something aside for a user, for a machine to use up.
    pub(crate) fn set_aside(&mut self, client: Client, uid: u32, quota: Quota) {
        self.users.entry(uid).or_default().1.add(quota);
        let machine = self.machines.entry(client).or_default();
        machine.escrow = machine.escrow.saturating_add(quota.bytes);
        self.escrow.add(quota);
    }

    /// What was set aside is not any more.
    pub(crate) fn free_up(&mut self, client: Client, uid: u32, quota: Quota) {
        if let Some((_, escrow)) = self.users.get_mut(&uid) {
            *escrow = escrow.less(quota);
        }
        if let Some(machine) = self.machines.get_mut(&client) {
            machine.escrow = machine.escrow.saturating_sub(quota.bytes);
        }
        self.escrow = self.escrow.less(quota);
        self.drop_idle(uid);
    }

    /// A file comes to be, costs something else, or goes.
    pub(crate) fn book(&mut self, before: Option<Cost>, after: Option<Cost>) {
        if let Some(Cost { uid, bytes, home }) = before {
            let cost = Quota { files: 1, bytes };
            if let Some((used, _)) = self.users.get_mut(&uid) {
                *used = used.less(cost);
            }
            if let Some(machine) = home.and_then(|home| self.machines.get_mut(&home)) {
                machine.held = machine.held.saturating_sub(bytes);
            }
            self.used = self.used.less(cost);
        }
        if let Some(Cost { uid, bytes, home }) = after {
            let cost = Quota { files: 1, bytes };
            self.users.entry(uid).or_default().0.add(cost);
            if let Some(home) = home {
                let machine = self.machines.entry(home).or_default();
                machine.held = machine.held.saturating_add(bytes);
            }
            self.used.add(cost);
        }
        if let Some(Cost { uid, .. }) = before {
            self.drop_idle(uid);
        }
    }

    fn drop_idle(&mut self, uid: u32) {
        if self.users.get(&uid) == Some(&Default::default()) {
            self.users.remove(&uid);
        }
    }

    /// What each user has, and each machine, as far as it is anything.
    pub(crate) fn used(&self) -> Used {
        let users = self.users.iter().map(|(uid, (used, _))| (*uid, *used));
        let machines = self.machines.iter().map(|(client, machine)| (*client, machine.held));
        Used {
            users: users.filter(|(_, used)| *used != Quota::default()).collect(),
            machines: machines.filter(|(_, held)| *held > 0).collect(),
        }
    }

    /// What is set aside for each user, as far as it is anything.
    pub(crate) fn escrow(&self) -> BTreeMap<u32, Quota> {
        let users = self.users.iter().map(|(uid, (_, escrow))| (*uid, *escrow));
        users.filter(|(_, escrow)| *escrow != Quota::default()).collect()
    }
}

/// What files cost, added up. Bounded by how many own files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) users: BTreeMap<u32, Quota>,
    pub(crate) machines: BTreeMap<Client, u64>,
}

impl Used {
    pub(crate) fn add(&mut self, cost: Cost) {
        self.users.entry(cost.uid).or_default().add(Quota { files: 1, bytes: cost.bytes });
        if let Some(home) = cost.home
            && cost.bytes > 0
        {
            let held = self.machines.entry(home).or_default();
            *held = held.saturating_add(cost.bytes);
        }
    }
}
