//! Brings the word of issuers, and of the root key, on machines and users to the cell, and that of users on this machine.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::Duration,
};

use directory::{Account, Holder, Quota};
use node::mailroom::Kind;
use overlay::{Consent, Decree, Enrolment, Patrons, Power, Profile, Share, Sharer, UserName};
use serde::{Deserialize, Serialize};
use wire::{Answer, Query};

use crate::{
    Failure, Key, MachineStanding, Neighbours, UserStanding,
    authority::{issuer_for, issuer_path, read_digits},
    cell::{Membership, seconds_now},
    group::{Post, ask_around},
    key,
    mailbox::Mailbox,
    net::Lookout,
};

/// How long each member is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// With fewer digits a key is not told from others for long.
const DIGITS_MIN: usize = 4;

/// Has the cell agree on something, for a machine that runs.
pub struct Registrar {
    pub(crate) directory: PathBuf,
    pub(crate) inbox: Arc<Mailbox<Post>>,
    /// The cell as this machine sees it.
    pub(crate) machines: Vec<MachineStanding>,
    pub(crate) neighbours: Arc<Neighbours>,
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

/// Whose share is to be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whose {
    /// Each user's of whom nothing else is said.
    Everybody,
    /// The user's with this name.
    Name(String),
    /// The user's with this number.
    Number(u32),
    /// The machine's whose key begins with these digits.
    Machine(String),
}

/// How somebody stands with what they may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccountStanding {
    /// Of all together, a user, or a machine.
    pub kind: &'static str,
    /// The number of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// What they are called, if the cell knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The key of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Key>,
    /// What they may have.
    pub share: Amount,
    /// What they have.
    pub used: Amount,
    /// What is set aside for them on machines.
    pub escrow: Amount,
}

/// So many files and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
}

impl From<Quota> for Amount {
    fn from(Quota { files, bytes }: Quota) -> Amount {
        Amount { files, bytes }
    }
}

impl Registrar {
    /// Sends the machine away whose key begins with these digits.
    pub fn revoke(&self, digits: &str) -> Result<Revoked, Failure> {
        let machine = self.find(digits)?;
        let Key(key) = machine.key;
        let revocation = Membership::read(&self.directory)?.revocation(&self.directory, key)?;
        self.decree(Decree::Revoke(revocation))?;
        let is_free = |other: &MachineStanding| !other.is_member && other.key != machine.key;
        Ok(Revoked {
            key: machine.key,
            was_member: machine.is_member,
            has_successor: self.machines.iter().any(is_free),
        })
    }

    /// The users of the cell, and those who were.
    pub fn users(&self) -> Result<Vec<UserStanding>, Failure> {
        let people = self.neighbours.people(!self.has_vote())?;
        Ok(people.iter().map(UserStanding::of).collect())
    }

    /// Enrols a user, or says anew which groups they are in.
    pub fn enrol(&self, user: Profile) -> Result<(), Failure> {
        let authority = Membership::read(&self.directory)?.authority;
        let issuer = issuer_for(&issuer_path(&self.directory), &authority, Power::Enrol)?;
        let enrolment = Enrolment::new(&issuer, user, seconds_now());
        let enrolment = enrolment.map_err(|refused| Failure::Unfit(refused.to_string()))?;
        self.decree(Decree::Enrol(enrolment))
    }

    /// Says how many files and bytes somebody may have; as many as anybody, if nothing is said.
    pub fn share(
        &self,
        whose: &Whose,
        files: Option<u64>,
        bytes: Option<u64>,
    ) -> Result<(), Failure> {
        let sharer = match whose {
            Whose::Everybody => Sharer::Everybody,
            Whose::Number(uid) => Sharer::User(*uid),
            Whose::Name(name) => {
                let users = self.users()?;
                let user = users
                    .iter()
                    .find(|user| user.name == *name && !user.is_removed)
                    .ok_or_else(|| {
                        let what = "name a user that `croft user list` shows, or a number";
                        Failure::Unfit(format!("the cell has no user {name}; {what}"))
                    })?;
                Sharer::User(user.uid)
            }
            Whose::Machine(digits) => Sharer::Machine(self.pick(digits)?.key.0),
        };
        let authority = Membership::read(&self.directory)?.authority;
        let issuer = issuer_for(&issuer_path(&self.directory), &authority, Power::Enrol)?;
        self.decree(Decree::Share(Share::new(&issuer, sharer, files, bytes, seconds_now())))
    }

    /// Who may have how much, and has: everybody together first, then users, then machines.
    pub fn accounts(&self) -> Result<Vec<AccountStanding>, Failure> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.inbox.post(Kind::Word, Post::Accounts(reply));
        let accounts = answer.recv_timeout(PATIENCE).map_err(|_| Failure::Stopped)?;
        if !self.has_vote() && self.lookout.is_some() {
            let what = "this machine has no vote, so it does not know who has how much; ask one that has, by                         `croft status`";
            return Err(Failure::Unfit(what.into()));
        }
        let users = self.users().unwrap_or_default();
        let standing = |(holder, key, account): (Holder, Option<Key>, Account)| {
            let (kind, uid) = match holder {
                Holder::Everybody => ("all", None),
                Holder::User(uid) => ("user", Some(uid)),
                Holder::Machine(_) => ("machine", None),
            };
            let name = users.iter().find(|user| Some(user.uid) == uid);
            AccountStanding {
                kind,
                uid,
                name: name.map(|user| user.name.clone()),
                machine: key,
                share: account.share.into(),
                used: account.used.into(),
                escrow: account.escrow.into(),
            }
        };
        Ok(accounts.into_iter().map(standing).collect())
    }

    /// Removes a user for good.
    pub fn remove(&self, name: &UserName) -> Result<(), Failure> {
        let people = self.neighbours.people(!self.has_vote())?;
        let Some(person) = people.iter().find(|person| person.user.name == *name) else {
            let what = format!("the cell has no user {name}; `croft user list` shows them");
            return Err(Failure::Unfit(what));
        };
        let membership = Membership::read(&self.directory)?;
        let revocation = membership.revocation(&self.directory, person.user.key)?;
        self.decree(Decree::Revoke(revocation))
    }

    /// Brings what [`crate::Root::revoke_issuer`] has said to the cell.
    pub fn revoke_issuer(&self, decree: &str) -> Result<(), Failure> {
        self.decree(read_digits(decree, "that is no decree; say the same again")?)
    }

    /// A user agrees that this machine acts for them, by what [`crate::Machine::consent`] has said. Says who that is.
    pub fn agree(&self, consent: &str) -> Result<UserName, Failure> {
        self.must_listen()?;
        let mut bytes = [0; Consent::BYTES_MAX];
        if !key::read_digits(consent, &mut bytes) {
            return Err(Failure::Unfit("that is no consent; agree with `croft user agree`".into()));
        }
        let consent: Consent = base::decode(&bytes, bytes.len())?;
        let membership = Membership::read(&self.directory)?;
        let (authority, certificate) = (membership.authority, membership.certificate);
        let unfit = |refused: overlay::Refused| Failure::Unfit(refused.to_string());
        let key = consent.verify(&authority, certificate.machine()).map_err(unfit)?;
        let vouched = certificate.verify(&authority, 0).map_err(unfit)?;
        let people = self.neighbours.people(!self.has_vote())?;
        let person = people.iter().find(|person| person.user.key == key && !person.is_removed);
        let Some(person) = person else {
            let what = format!(
                "no user of the cell has the key {}; have it enrolled with `croft user add`",
                Key(key)
            );
            return Err(Failure::Unfit(what));
        };
        let name = &person.user.name;
        match vouched.patrons() {
            Patrons::Any => {
                let what = "this machine acts for any user, whether they agree or not: there is nothing to \
                            agree to";
                return Err(Failure::Unfit(what.into()));
            }
            Patrons::These(names) if !names.contains(name) => {
                let what = format!(
                    "the invitation of this machine does not name {name}; it needs one that does, as by \
                     `croft invite --users {name}`"
                );
                return Err(Failure::Unfit(what));
            }
            Patrons::These(_) => {}
        }
        match self.submit(|reply| Post::Agree { consent, reply })? {
            Answer::Joined(ticket) if ticket.users.iter().flatten().any(|user| user.key == key) => {
                Ok(name.clone())
            }
            _ => Err(Failure::Unfit(format!("the group does not let this machine act for {name}"))),
        }
    }

    /// Renews the certificate of this machine: with an issuer's key in a file, or in its directory, or by asking the
    /// other machines. Until when it lasts now, in seconds since 1970.
    pub fn renew(&self, issuer: Option<&Path>) -> Result<u64, Failure> {
        self.must_listen()?;
        let mut membership = Membership::read(&self.directory)?;
        let own = issuer_path(&self.directory);
        let here = issuer.or_else(|| own.exists().then_some(own.as_path()));
        let renewal = match (here, &self.lookout) {
            (Some(file), _) => {
                let machine = *membership.certificate.machine();
                Membership::renewal(file, &membership.authority, machine)?
            }
            (None, Some(lookout)) => {
                let asked = ask_around(lookout, &self.neighbours, membership.founder.key);
                let what = "no machine that answers renews the certificate: start one that has an \
                            issuer's key, or name a file with it (--issuer). Before half of the time is over \
                            nobody does";
                asked.ok_or_else(|| Failure::Unfit(what.into()))?
            }
            (None, None) => return Err(Failure::Stopped),
        };
        membership.renew(renewal.clone())?;
        self.inbox.post(Kind::Wish, Post::Renewed(renewal));
        membership.expires()
    }

    fn has_vote(&self) -> bool {
        self.machines.iter().any(|machine| machine.is_this && machine.is_member)
    }

    fn must_listen(&self) -> Result<(), Failure> {
        if self.lookout.is_some() {
            return Ok(());
        }
        let what = "this machine does not listen, so it shares its tree with nobody; start it with `croft run \
                    --listen ADDRESS` first";
        Err(Failure::Unfit(what.into()))
    }

    /// Has the group decide on a decree.
    fn decree(&self, decree: Decree) -> Result<(), Failure> {
        self.must_listen()?;
        let decree = Box::new(decree);
        match self.has_vote() {
            true => self.submit(|reply| Post::Decree { decree, reply }).map(drop),
            false => self.pass_on(&wire::encode(&Query::Decree(decree))),
        }
    }

    /// Hands something to this machine's own part in the group, and waits for what comes of it.
    fn submit(
        &self,
        post: impl FnOnce(mpsc::SyncSender<Answer>) -> Post,
    ) -> Result<Answer, Failure> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.inbox.post(Kind::Wish, post(reply));
        match answer.recv_timeout(PATIENCE) {
            Ok(Answer::Refused(why)) => Err(Failure::Unfit(why)),
            Ok(answer) => Ok(answer),
            Err(_) => {
                let late = "the group does not answer; look at `croft status`, and try again";
                Err(Failure::Unfit(late.into()))
            }
        }
    }

    /// Has members of the group decide it: so many have to say that they have that one of them is honest.
    fn pass_on(&self, query: &[u8]) -> Result<(), Failure> {
        let members = self.machines.iter().filter(|machine| machine.is_member);
        let members: Vec<&MachineStanding> = members.collect();
        let mut why =
            "no member of the group answers; try again when `croft status` is well".into();
        let mut count = 0;
        for member in &members {
            let answer = self.lookout.as_ref();
            let answer =
                answer.and_then(|lookout| lookout.ask(&member.key.0, query.to_vec(), PATIENCE));
            match answer.map(|bytes| wire::decode(&bytes)) {
                Some(Ok(Answer::Decreed)) => count += 1,
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
        let machine = self.pick(digits)?;
        match machine.is_this {
            false => Ok(machine),
            true => {
                let what = "this machine can't send itself away; stop it, and remove its directory";
                Err(Failure::Unfit(what.into()))
            }
        }
    }

    fn pick(&self, digits: &str) -> Result<&MachineStanding, Failure> {
        let unfit = |what: String| Err(Failure::Unfit(what));
        let is_meant = |machine: &&MachineStanding| {
            let key = machine.key.to_string();
            digits.len() >= DIGITS_MIN && key.starts_with(&digits.to_lowercase())
        };
        let found: Vec<&MachineStanding> = self.machines.iter().filter(is_meant).collect();
        match found[..] {
            [machine] => Ok(machine),
            [] => unfit(format!(
                "no machine of the cell has a key that begins with {digits:?}; name at least \
                 {DIGITS_MIN} digits of a key that `croft status` shows"
            )),
            _ => unfit(format!("several keys begin with {digits:?}; name more digits of it")),
        }
    }
}
