//! Lets a group go on from this machine when too many members are gone for good, with the root key's word.
//!
//! It can't be done by accident: while so many members answer that they can decide, or somebody who answers knows
//! more, it is refused. What only the lost ones had is lost, so somebody has to say that this is accepted.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use base::{Digest, PublicKey};
use group::{Rescue, Sealed, Seat, Seats};
use node::mailroom::Kind;
use serde::Serialize;
use wire::{Answer, Query, Survivor};

use crate::{
    Failure, Key,
    authority::read_digits,
    cell::{Membership, seconds_now},
    group::Post,
    key,
    mailbox::Mailbox,
    net::Lookout,
};

/// How long each machine is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// For so long nothing may have been decided before: sessions last 20 s, so whoever was promised something by
/// those who are lost has stopped to believe it.
pub(crate) const QUIET: Duration = Duration::from_secs(30);

/// Recovers a group, for a machine that runs.
pub struct Recoverer {
    pub(crate) directory: PathBuf,
    pub(crate) inbox: Arc<Mailbox<Post>>,
    pub(crate) machines: Vec<PublicKey>,
    pub(crate) lookout: Option<Lookout>,
    pub(crate) quiet: Duration,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Recovered {
    /// The group goes on.
    Done {
        /// How often it was recovered.
        number: u32,
        /// The last decision that it goes on from, counted from the recovery before.
        height: u64,
        /// Who of the old members has answered, besides this machine.
        survivors: Vec<Key>,
        /// How many machines were told.
        told: usize,
    },
    /// It has to be tried again after so many seconds: promises of those who are lost may still be believed.
    Wait(u64),
    /// This is to be said again with the root key's word for it, as [`crate::Root::rescue`] gives it.
    Sign(String),
}

/// What is known of the group now.
struct Survey {
    own: Survivor,
    others: BTreeMap<PublicKey, Survivor>,
}

impl Recoverer {
    /// Lets the group go on from this machine, if it has to and somebody has accepted what that costs.
    pub fn recover(&self, is_accepted: bool, rescue: Option<&str>) -> Result<Recovered, Failure> {
        let me = key::read(&self.directory.join("key"))?.public();
        let group = Membership::read(&self.directory)?.group();
        let survey = self.survey(group)?;
        survey.check(&me)?;
        if !is_accepted {
            return Err(Failure::Unfit(survey.warning(&me)));
        }
        if survey.own.quiet_s < self.quiet.as_secs() {
            return Ok(Recovered::Wait(self.quiet.as_secs() - survey.own.quiet_s));
        }
        let Survivor { reach, time, .. } = survey.own;
        let seat = Seat { key: me, incarnation: 0 };
        let (number, height, at) = (survey.number() + 1, reach.height, seconds_now());
        let Some(rescue) = rescue else {
            let what = Rescue { number, seat, height, time, at };
            return Ok(Recovered::Sign(key::digits(&base::encode(&what))));
        };
        let none = "that is no rescue by the root key; say the same again";
        let rescue: Sealed<Rescue> = read_digits(rescue, none)?;
        let (number, height) = (rescue.what.number, rescue.what.height);
        let decision = rescue.decision();
        match self.submit(|reply| Post::Rescue { rescue, reply })? {
            Answer::Refused(why) => return Err(Failure::Unfit(why)),
            Answer::Heard => {}
            _ => return Err(Failure::Unfit("the group answers something else; try again".into())),
        }
        let told = self.ask_all(&Query::Changes { group, changes: vec![decision] });
        let told = told.values().filter(|answer| **answer == Answer::Heard).count();
        let members = survey.members();
        let survivors = survey.others.keys().filter(|key| members.contains(key));
        let survivors = survivors.map(|key| Key(*key)).collect();
        Ok(Recovered::Done { number, height: Rescue::height_since(height), survivors, told })
    }

    /// Has this machine obey at once a recovery that it has heard of, whoever answers.
    pub fn obey(&self) -> Result<(), Failure> {
        match self.submit(Post::Obey)? {
            Answer::Refused(why) => Err(Failure::Unfit(why)),
            _ => Ok(()),
        }
    }

    fn survey(&self, group: Digest) -> Result<Survey, Failure> {
        let (reply, own) = mpsc::sync_channel(1);
        self.inbox.post(Kind::Word, Post::Survivor(reply));
        let own = own.recv_timeout(PATIENCE).map_err(|_| silent())?;
        let mut others = BTreeMap::new();
        for (key, answer) in self.ask_all(&Query::Survivor { group }) {
            if let Answer::Survivor(survivor) = answer {
                others.insert(key, *survivor);
            }
        }
        Ok(Survey { own, others })
    }

    fn submit(
        &self,
        post: impl FnOnce(mpsc::SyncSender<Answer>) -> Post,
    ) -> Result<Answer, Failure> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.inbox.post(Kind::Wish, post(reply));
        answer.recv_timeout(PATIENCE).map_err(|_| silent())
    }

    /// Asks all other machines at once.
    fn ask_all(&self, query: &Query) -> BTreeMap<PublicKey, Answer> {
        let Some(lookout) = &self.lookout else { return BTreeMap::new() };
        let bytes = wire::encode(query);
        thread::scope(|scope| {
            let asked: Vec<_> = self
                .machines
                .iter()
                .map(|key| (*key, scope.spawn(|| lookout.ask(key, bytes.clone(), PATIENCE))))
                .collect();
            let heard = asked.into_iter().filter_map(|(key, asked)| {
                let answer = asked.join().ok()??;
                Some((key, wire::decode(&answer).ok()?))
            });
            heard.collect()
        })
    }
}

impl Survey {
    /// Refuses what need not be, or should be done elsewhere.
    fn check(&self, me: &PublicKey) -> Result<(), Failure> {
        let unfit = |what: String| Err(Failure::Unfit(what));
        // Others may say what they like of who sits there, so what this machine knows counts too.
        for members in [&self.own.members, self.members()] {
            let (there, quorum) = (self.there(members, me), quorum(members));
            if there >= quorum {
                return unfit(format!(
                    "{there} of {} members of the group answer, and {quorum} decide: nothing is to be \
                     recovered. If nothing goes on all the same, `croft doctor` says why",
                    members.len()
                ));
            }
        }
        if !self.own.has_state {
            return unfit(
                "this machine has no copy of the tree, since it never had a vote; recover on one that had, \
                 or start the lost machine from a backup of its directory"
                    .into(),
            );
        }
        let best = self.others.iter().filter(|(_, other)| other.has_state);
        let best = best.max_by_key(|(_, other)| other.reach);
        if let Some((key, other)) = best.filter(|(_, other)| other.reach > self.own.reach) {
            return unfit(format!(
                "{} knows more than this machine ({} and here {}): run `croft recover` there",
                short(key),
                self::height(other),
                self::height(&self.own),
            ));
        }
        Ok(())
    }

    /// The members, as who knows the latest says.
    fn members(&self) -> &[PublicKey] {
        let all = self.others.values().chain([&self.own]);
        let latest = all.max_by_key(|survivor| survivor.epoch);
        latest.map_or(&[], |survivor| &survivor.members)
    }

    /// How many of these answer.
    fn there(&self, members: &[PublicKey], me: &PublicKey) -> usize {
        let is_there = |key: &&PublicKey| *key == me || self.others.contains_key(key);
        members.iter().filter(is_there).count()
    }

    /// The greatest number of a recovery that anybody knows of.
    fn number(&self) -> u32 {
        let all = self.others.values().chain([&self.own]);
        all.map(|survivor| survivor.number).max().unwrap_or(0)
    }

    /// What it would cost.
    fn warning(&self, me: &PublicKey) -> String {
        let members = self.members();
        let (there, count, quorum) = (self.there(members, me), members.len(), quorum(members));
        let lost: Vec<String> = members
            .iter()
            .filter(|key| *key != me && !self.others.contains_key(key))
            .map(short)
            .collect();
        let kept = match count - there < quorum {
            true => {
                "all that was decided is kept, unless a machine that answers lies or has an old disk"
            }
            false => "WHAT ONLY THEY HAVE DECIDED IS LOST, for good",
        };
        format!(
            "nothing was recovered yet. {there} of {count} members of the group answer, and {quorum} have to; \
             these do not: {}. Start them if you can: then nothing is lost. If they are gone for good, this \
             machine can go on alone from {}, which is as much as anybody has who answers; {kept}. Should they \
             come back after that, they follow and let go of what they had. All sessions end: what machines \
             have not pushed yet they keep in their recovery area. Bytes that only lost machines have are lost \
             in any case. To do it, say the same with --accept-loss",
            lost.join(", "),
            height(&self.own),
        )
    }
}

/// How many of these decide.
fn quorum(members: &[PublicKey]) -> usize {
    let seat = |key: &PublicKey| Seat { key: *key, incarnation: 0 };
    let seats = Seats::new(members.iter().map(seat).collect());
    seats.map_or(usize::MAX, |seats| seats.quorum())
}

/// How far somebody reaches, in words.
fn height(survivor: &Survivor) -> String {
    let height = survivor.reach.height;
    match (Rescue::number_at(height), Rescue::height_since(height)) {
        (0, height) => format!("decision {height}"),
        (number, height) => format!("decision {height} after recovery {number}"),
    }
}

/// Enough of a key to tell machines apart.
fn short(key: &PublicKey) -> String {
    Key(*key).to_string().chars().take(8).collect()
}

fn silent() -> Failure {
    Failure::Unfit(
        "the group's thread does not answer; look at `croft status`, and try again".into(),
    )
}

#[cfg(test)]
mod tests {
    use base::{Instant, SecretKey};
    use group::Reach;

    use super::*;

    fn key(number: u8) -> PublicKey {
        SecretKey::from_seed([number; 32]).public()
    }

    fn survivor(height: u64, bound: Option<u32>, members: std::ops::Range<u8>) -> Survivor {
        Survivor {
            reach: Reach { height, bound },
            has_state: height > 0,
            number: Rescue::number_at(height),
            epoch: 1,
            members: members.map(key).collect(),
            time: Instant::START,
            quiet_s: 0,
        }
    }

    /// What the first of four is told, if these others answer.
    fn told(own: Survivor, others: &[(u8, Survivor)]) -> String {
        let others = others.iter().map(|(number, one)| (key(*number), one.clone())).collect();
        let survey = Survey { own, others };
        survey.check(&key(0)).map_or_else(|refused| refused.to_string(), |()| String::new())
    }

    #[test]
    fn a_group_that_can_decide_is_not_recovered() {
        let one = || survivor(9, None, 0..4);
        let why = told(one(), &[(1, one()), (2, one())]);
        assert!(why.contains("3 of 4 members of the group answer"), "{why}");
        assert_eq!(told(one(), &[(1, one())]), "");
        assert_eq!(told(one(), &[(1, one()), (7, one())]), "", "a stranger has no vote");
    }

    #[test]
    fn members_are_those_whom_the_latest_knows() {
        let old = survivor(9, None, 0..4);
        let new = Survivor { epoch: 7, ..survivor(9, None, 4..8) };
        let others = [4, 5, 6].map(|number| (number, new.clone()));
        let why = told(old, &others);
        assert!(why.contains("3 of 4 members of the group answer"), "{why}");
    }

    #[test]
    fn nobody_who_answers_can_talk_the_members_away() {
        let one = || survivor(9, None, 0..4);
        let liar = Survivor { epoch: u64::MAX, ..survivor(8, None, 9..13) };
        let why = told(one(), &[(1, one()), (2, one()), (3, liar)]);
        assert!(why.contains("4 of 4 members of the group answer"), "{why}");
    }

    #[test]
    fn who_knows_less_than_another_is_sent_there() {
        let one = |height, bound| survivor(height, bound, 0..4);
        for (own, other) in [
            (one(8, Some(5)), one(9, None)),
            (one(9, None), one(9, Some(0))),
            (one(9, Some(0)), one(9, Some(3))),
            (one(900, None), one(1 << 44, None)),
        ] {
            let why = told(own.clone(), &[(1, other.clone())]);
            assert!(why.contains("run `croft recover` there"), "{why}");
            assert_eq!(told(other, &[(1, own)]), "");
        }
    }

    #[test]
    fn who_has_nothing_is_not_gone_on_from() {
        let (nothing, one) = (survivor(0, None, 1..5), survivor(9, None, 1..5));
        let why = told(nothing.clone(), &[]);
        assert!(why.contains("no copy of the tree"), "{why}");
        assert_eq!(told(one, &[(1, nothing)]), "");
    }

    #[test]
    fn a_warning_says_whether_anything_that_was_decided_is_lost() {
        let survey = |others: &[u8]| {
            let one = survivor(9, None, 0..4);
            let others = others.iter().map(|number| (key(*number), one.clone())).collect();
            Survey { own: one, others }
        };
        let two = survey(&[1]).warning(&key(0));
        assert!(
            two.contains("all that was decided is kept") && two.contains("--accept-loss"),
            "{two}"
        );
        let three = survey(&[]).warning(&key(0));
        assert!(three.contains("IS LOST"), "{three}");
    }
}
