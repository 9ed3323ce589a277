//! Sends a machine of the cell away, with the authority's key.

use std::{
    path::PathBuf,
    sync::{Arc, mpsc},
    time::Duration,
};

use serde::Serialize;

use crate::{
    Failure, Key, MachineStanding,
    cell::{ANSWER_BYTES_MAX, Answer, Errand, Membership},
    group::Post,
    mailbox::Mailbox,
    net::Lookout,
};

/// How long each member is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// With fewer digits a key is not told from others for long.
const DIGITS_MIN: usize = 4;

/// Sends machines away, for a machine that runs.
pub struct Revoker {
    pub(crate) directory: PathBuf,
    pub(crate) inbox: Arc<Mailbox<Post>>,
    /// The cell as this machine sees it.
    pub(crate) machines: Vec<MachineStanding>,
    pub(crate) lookout: Option<Lookout>,
}

/// A machine that was sent away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Revoked {
    /// What it was known by.
    pub key: Key,
    /// Whether it had a vote.
    pub was_member: bool,
    /// Whether there is a machine that could take its seat.
    pub has_successor: bool,
}

impl Revoker {
    /// Sends the machine away whose key begins with these digits.
    pub fn revoke(&self, digits: &str) -> Result<Revoked, Failure> {
        let machine = self.find(digits)?;
        let Key(key) = machine.key;
        let revocation = Membership::revocation(&self.directory, key)?;
        let has_vote = |machine: &&MachineStanding| machine.is_this && machine.is_member;
        if self.machines.iter().any(|machine| has_vote(&machine)) {
            let (reply, answer) = mpsc::sync_channel(1);
            self.inbox.post(Post::Revoke { revocation, reply });
            let late = "the group does not answer; look at `croft status`, and try again";
            let answer = answer.recv_timeout(PATIENCE);
            let answer = answer.unwrap_or_else(|_| Answer::Refused(late.into()));
            if let Answer::Refused(why) = answer {
                return Err(Failure::Unfit(why));
            }
        } else {
            self.pass_on(&base::encode(&Errand::Revoke(revocation)))?;
        }
        let is_free = |other: &MachineStanding| !other.is_member && other.key != machine.key;
        Ok(Revoked {
            key: machine.key,
            was_member: machine.is_member,
            has_successor: self.machines.iter().any(is_free),
        })
    }

    /// Has members of the group decide it: so many have to say that they have that one of them is honest.
    fn pass_on(&self, errand: &[u8]) -> Result<(), Failure> {
        let members = self.machines.iter().filter(|machine| machine.is_member);
        let members: Vec<&MachineStanding> = members.collect();
        let mut why =
            "no member of the group answers; try again when `croft status` is well".into();
        let mut count = 0;
        for member in &members {
            let answer = self.lookout.as_ref();
            let answer =
                answer.and_then(|lookout| lookout.ask(&member.key.0, errand.to_vec(), PATIENCE));
            match answer.map(|bytes| base::decode(&bytes, ANSWER_BYTES_MAX)) {
                Some(Ok(Answer::Revoked)) => count += 1,
                Some(Ok(Answer::Refused(what))) => why = what,
                _ => {}
            }
            if count > members.len().saturating_sub(1) / 3 {
                return Ok(());
            }
        }
        Err(Failure::Unfit(why))
    }

    fn find(&self, digits: &str) -> Result<&MachineStanding, Failure> {
        let unfit = |what: String| Err(Failure::Unfit(what));
        let is_meant = |machine: &&MachineStanding| {
            let key = machine.key.to_string();
            digits.len() >= DIGITS_MIN && key.starts_with(&digits.to_lowercase())
        };
        let found: Vec<&MachineStanding> = self.machines.iter().filter(is_meant).collect();
        match found[..] {
            [machine] if machine.is_this => unfit(
                "this machine can't send itself away; stop it, and remove its directory".into(),
            ),
            [machine] => Ok(machine),
            [] => unfit(format!(
                "no machine of the cell has a key that begins with {digits:?}; name at least \
                 {DIGITS_MIN} digits of a key that `croft status` shows"
            )),
            _ => unfit(format!("several keys begin with {digits:?}; name more digits of it")),
        }
    }
}
