//! What has been wanted back and has not come yet, with its deadlines.

use std::collections::{BTreeMap, BTreeSet};

use base::{FileId, Instant};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Client, Field, Scope, kind::Side};

/// A lease, by who holds it.
pub(super) type Lot = (Client, Scope, Side);

/// The recalls that are out: at most one for each lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub(super) struct Recalls {
    all: BTreeMap<Lot, Recalled>,
    /// When each recall is to be repeated.
    repeats: BTreeSet<(Instant, Lot)>,
    /// Past when a client's session is not renewed, for each of its recalls.
    deadlines: BTreeSet<(Client, Instant, Lot)>,
    /// How many recalls of each client are about a file that it can't know of; see `birth`.
    estranged: BTreeMap<Client, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
struct Recalled {
    /// What is wanted back, and whether reading may go on.
    parts: BTreeMap<Scope, bool>,
    repeat_at: Instant,
    deadline: Instant,
    is_estranged: bool,
}

impl Recalls {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many parts of a lease are wanted back.
    pub(super) fn part_count(&self, lot: &Lot) -> usize {
        self.all.get(lot).map_or(0, |recalled| recalled.parts.len())
    }

    /// Whether something of this is wanted back.
    pub(super) fn has(&self, lot: &Lot, part: &Scope) -> bool {
        let recalled = self.all.get(lot);
        recalled.is_some_and(|recalled| recalled.parts.keys().any(|wanted| wanted.meets(part)))
    }

    /// Wants a part back; false if that is known already. The times count for the first part.
    pub(super) fn add(
        &mut self,
        lot: &Lot,
        part: &Scope,
        keep: bool,
        repeat_at: Instant,
        deadline: Instant,
    ) -> bool {
        let recalled = self.all.entry(lot.clone()).or_insert_with(|| {
            self.repeats.insert((repeat_at, lot.clone()));
            self.deadlines.insert((lot.0, deadline, lot.clone()));
            Recalled { parts: BTreeMap::new(), repeat_at, deadline, is_estranged: false }
        });
        let mut known = recalled.parts.iter();
        let is_known =
            known.any(|(known, known_keep)| known.contains(part) && (keep || !known_keep));
        if !is_known {
            recalled.parts.insert(part.clone(), keep);
        }
        !is_known
    }

    /// Notes that a recall is about a file that the client can't know of.
    pub(super) fn estrange(&mut self, lot: &Lot) {
        if let Some(recalled) = self.all.get_mut(lot).filter(|recalled| !recalled.is_estranged) {
            recalled.is_estranged = true;
            *self.estranged.entry(lot.0).or_insert(0) += 1;
        }
    }

    pub(super) fn is_estranged(&self, client: Client) -> bool {
        self.estranged.contains_key(&client)
    }

    /// A part has come back. Whether the client is no longer estranged because of that.
    pub(super) fn answer(&mut self, lot: &Lot, part: &Scope) -> bool {
        let Some(recalled) = self.all.get_mut(lot) else { return false };
        recalled.parts.retain(|wanted, _| !part.contains(wanted));
        recalled.parts.is_empty() && self.remove(lot)
    }

    /// There is nothing left to recall. Whether the client is no longer estranged because of that.
    pub(super) fn remove(&mut self, lot: &Lot) -> bool {
        let Some(recalled) = self.all.remove(lot) else { return false };
        self.repeats.remove(&(recalled.repeat_at, lot.clone()));
        self.deadlines.remove(&(lot.0, recalled.deadline, lot.clone()));
        if !recalled.is_estranged {
            return false;
        }
        let count = self.estranged.get_mut(&lot.0).map_or(0, |count| {
            *count -= 1;
            *count
        });
        if count == 0 {
            self.estranged.remove(&lot.0);
        }
        count == 0
    }

    /// Forgets everything that a client should give back.
    pub(super) fn forget(&mut self, client: Client) {
        let all = self.all.range((client, Field::Access.of(&FileId::ROOT), Side::Own)..);
        let all = all.map(|(lot, _)| lot).take_while(|lot| lot.0 == client);
        for lot in all.cloned().collect::<Vec<_>>() {
            self.remove(&lot);
        }
    }

    /// The earliest deadline of a client.
    pub(super) fn deadline(&self, client: Client) -> Option<Instant> {
        if self.deadlines.is_empty() {
            return None;
        }
        let lowest = (client, Field::Access.of(&FileId::ROOT), Side::Own);
        let first = self.deadlines.range((client, Instant::START, lowest)..).next()?;
        (first.0 == client).then_some(first.1)
    }

    /// The clients that have still to give back something.
    pub(super) fn clients(&self) -> impl Iterator<Item = Client> {
        let mut next = self.all.keys().next().map(|lot| lot.0);
        std::iter::from_fn(move || {
            let client = next?;
            let after = client.0.checked_add(1).map(|after| {
                let lowest = (Client(after), Field::Access.of(&FileId::ROOT), Side::Own);
                self.all.range(lowest..).next().map(|(lot, _)| lot.0)
            });
            next = after.flatten();
            Some(client)
        })
    }

    /// When a recall is to be repeated next.
    pub(super) fn repeat_at(&self) -> Option<Instant> {
        self.repeats.first().map(|(at, _)| *at)
    }

    /// The recalls to be repeated now, and then at this moment: lease, part, whether reading may go on.
    pub(super) fn due(&mut self, now: Instant, again_at: Instant) -> Vec<(Lot, Scope, bool)> {
        let mut due = Vec::new();
        while let Some((at, lot)) = self.repeats.pop_first() {
            if at > now {
                self.repeats.insert((at, lot));
                break;
            }
            if let Some(recalled) = self.all.get_mut(&lot) {
                recalled.repeat_at = again_at;
                let parts = recalled.parts.iter();
                due.extend(parts.map(|(part, keep)| (lot.clone(), part.clone(), *keep)));
                self.repeats.insert((again_at, lot));
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::scope;

    fn lot(client: u32, at: &str) -> Lot {
        (Client(client), scope(at), Side::Own)
    }

    fn filled() -> Recalls {
        let mut recalls = Recalls::default();
        let at = Instant::from_secs;
        assert!(recalls.add(&lot(1, "1:*"), &scope("1:/a"), false, at(5), at(30)));
        assert!(recalls.add(&lot(1, "2:*"), &scope("2:*"), true, at(4), at(20)));
        assert!(recalls.add(&lot(7, "2:*"), &scope("2:*"), false, at(6), at(10)));
        recalls
    }

    #[test]
    fn what_is_known_is_not_said_again() {
        let mut recalls = filled();
        let mut add = |part, keep| {
            recalls.add(&lot(1, "2:*"), &scope(part), keep, Instant::END, Instant::END)
        };
        assert!(!add("2:/a", true) && add("2:/a", false) && add("2:*", false) && !add("2:*", true));
    }

    #[test]
    fn each_client_has_its_earliest_deadline() {
        let mut recalls = filled();
        let clients: Vec<Client> = recalls.clients().collect();
        assert_eq!(clients, [Client(1), Client(7)]);
        assert_eq!(recalls.deadline(Client(1)), Some(Instant::from_secs(20)));
        assert_eq!(recalls.deadline(Client(2)), None);
        recalls.answer(&lot(1, "2:*"), &scope("2:*"));
        assert_eq!(recalls.deadline(Client(1)), Some(Instant::from_secs(30)));
        recalls.forget(Client(1));
        assert_eq!(recalls.clients().collect::<Vec<_>>(), [Client(7)]);
        recalls.forget(Client(7));
        assert_eq!(recalls, Recalls::default());
    }

    #[test]
    fn what_is_due_comes_again_later() {
        let mut recalls = filled();
        assert_eq!(recalls.repeat_at(), Some(Instant::from_secs(4)));
        let due = recalls.due(Instant::from_secs(5), Instant::from_secs(9));
        let due: Vec<String> =
            due.iter().map(|(lot, part, _)| format!("{:?} {part}", lot.0)).collect();
        assert_eq!(due, ["Client(1) 2:*", "Client(1) 1:/a"]);
        assert_eq!(recalls.repeat_at(), Some(Instant::from_secs(6)));
        assert_eq!(recalls.due(Instant::from_secs(20), Instant::from_secs(30)).len(), 3);
    }

    #[test]
    fn a_client_is_estranged_until_all_is_answered() {
        let mut recalls = filled();
        for at in ["1:*", "1:*", "2:*"] {
            recalls.estrange(&lot(1, at));
        }
        assert!(!recalls.answer(&lot(1, "1:*"), &scope("1:*")) && recalls.is_estranged(Client(1)));
        assert!(recalls.answer(&lot(1, "2:*"), &scope("2:*")) && !recalls.is_estranged(Client(1)));
    }
}
