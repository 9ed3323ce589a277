//! Which machine may have bytes that are here, or ask for something else beside them.
//!
//! In whose name a machine asks it says itself. So bytes are given to a machine if the group says that it acts for
//! somebody who may read them. What this machine knows under a lease is as the group would say it, and what was
//! changed here is known sooner; else its member is asked, or enough members if it is none. Whoever has taken a
//! right away is obeyed as soon as the group has heard of it and a member or two have applied it, and not more than
//! [`AGE_MAX`] later.

use std::time::{Duration, Instant};

use base::{FileId, PublicKey};
use overlay::Users;

use wire::{Answer, Io, Query, Rights, Whom};

use super::Neighbours;

/// For so long it is not asked again whether somebody may have the bytes of a file.
const AGE_MAX: Duration = Duration::from_secs(1);
/// So much of that is remembered.
pub(super) const JUDGED_MAX: usize = 256;

impl Neighbours {
    /// Whether a machine may ask for this. One that acts for anybody may; one that acts for nobody may ask nothing.
    pub(crate) fn may_ask(&self, from: &PublicKey, query: &Query) -> bool {
        if self.recall(Whom::Key(*from)).is_some_and(|machine| machine.users == Users::Any) {
            return true;
        }
        match query {
            Query::Read { serial, file, .. }
            | Query::Io { serial, file, io: Io::Read { .. }, .. } => {
                self.may_read(from, (*serial, file))
            }
            // Whoever changes something is looked at where it is done.
            Query::Find { .. } | Query::Look(_) | Query::Io { .. } => {
                !matches!(self.acts_for(from), Users::These(users) if users.is_empty())
            }
            _ => true,
        }
    }

    fn may_read(&self, from: &PublicKey, (serial, file): (u64, &FileId)) -> bool {
        let (now, key) = (Instant::now(), (*from, serial));
        let is_judged = |at: &Instant| now - *at < AGE_MAX;
        if self.known().judged.get(&key).is_some_and(is_judged) {
            return true;
        }
        let may = self.rights(from, (serial, file)).is_some_and(|rights| {
            let desk = self.known().desk.upgrade();
            let own = desk.and_then(|desk| desk.access(serial, file));
            own.or(rights.access())
                .is_some_and(|access| directory::may_read(&rights.users, &access))
        });
        let judged = &mut self.known().judged;
        judged.retain(|_, at| is_judged(at));
        if may && judged.len() < JUDGED_MAX {
            judged.insert(key, now);
        }
        may
    }

    /// What the group says of a machine and a file.
    fn rights(&self, machine: &PublicKey, (serial, file): (u64, &FileId)) -> Option<Rights> {
        let pick = |answer| match answer {
            Answer::Rights(rights) => Some(*rights),
            _ => None,
        };
        let here = self.rights_here(machine, serial, file);
        if let Some(rights) = pick(here) {
            return Some(rights);
        }
        let (group, machine, file) = (self.known().group().ok()?, *machine, file.clone());
        let query = Query::Rights { group, machine, serial, file };
        self.hear(&query, pick).ok().flatten()
    }

    /// The same as this machine's member of the group has heard.
    pub(crate) fn rights_here(&self, machine: &PublicKey, serial: u64, file: &FileId) -> Answer {
        let desk = self.known().desk.upgrade();
        let rights = desk.ok_or(crate::Failure::Stopped);
        let rights = rights.and_then(|desk| desk.rights(*machine, serial, file.clone()));
        rights.unwrap_or_else(|failure| Answer::Refused(failure.to_string()))
    }
}

#[cfg(test)]
impl Neighbours {
    /// What a machine is answered to any query at all.
    pub(crate) fn ask_raw(&self, home: lease::Client, query: &Query) -> Answer {
        let answer = self.ask_home_once(home, query, super::PATIENCE, true);
        answer.map_or_else(|failure| Answer::Refused(failure.to_string()), |(_, answer)| answer)
    }
}
