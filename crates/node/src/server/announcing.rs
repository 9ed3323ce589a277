//! Says where this machine is and for whom it acts: the group has to know, and whoever else may look for it. Whoever has
//! no vote learns so for whom the group lets it act.

use std::collections::{BTreeMap, VecDeque};

use base::{Duration, Instant, PublicKey};
use group::Notary;
use overlay::Profile;
use wire::{Answer, Join, Query};

use crate::member;

use super::{Output, Server, Token, asking::Purpose, joining::refuse};

/// Before those are asked again who have not answered.
const PAUSE: Duration = Duration::from_secs(5);
/// The most machines that are told besides the members.
const OTHERS_MAX: usize = 64;
/// So many are told at a time.
pub(super) const CALLS_MAX: usize = 4;

const ANEW: &str = "this machine has something newer to say of itself; try again in a moment";

/// What this machine has to say of itself, until enough members have heard it that one of them is honest.
#[derive(Debug)]
pub(super) struct Announcing {
    join: Box<Join>,
    /// Whoever waits to hear for whom this machine acts.
    token: Option<Token>,
    /// Who is to be told in this round. No more than members, and [`OTHERS_MAX`] in the first.
    next: VecDeque<PublicKey>,
    /// How many members have noted it in this round, and how many of them say which users.
    count: usize,
    said: BTreeMap<Option<Vec<Profile>>, usize>,
    /// What was refused last, so that it is said once.
    why: String,
    /// When the next round begins, if this one is over.
    again_at: Option<Instant>,
}

impl Announcing {
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.again_at
    }
}

impl<N: Notary + Clone> Server<N> {
    /// This machine has something to say of itself.
    pub(super) fn on_own(
        &mut self,
        now: Instant,
        join: Box<Join>,
        token: Option<Token>,
        out: &mut Vec<Output>,
    ) {
        let is_member = self.member.replica().is_member();
        let Some(cell) = &mut self.cell else {
            return self.step_member(now, member::Input::Join(join), out);
        };
        if let Ok(vouched) = join.certificate.verify(&cell.authority, 0) {
            cell.expires = vouched.expires;
        }
        match token {
            Some(token) if is_member => return self.on_join(now, join, token, out),
            _ if self.member.replica().is_alone() => {
                self.step_member(now, member::Input::Join(join.clone()), out);
            }
            // The other members are told, and one of them brings it to the group.
            _ => {}
        }
        self.announce(now, join, token, out);
    }

    fn announce(
        &mut self,
        now: Instant,
        join: Box<Join>,
        token: Option<Token>,
        out: &mut Vec<Output>,
    ) {
        let Some(cell) = &mut self.cell else { return };
        cell.asking.drop_all(Purpose::Announce);
        let before = cell.announcing.take().and_then(|one| one.token);
        before.into_iter().for_each(|token| refuse(token, ANEW, out));
        let is_member = |key: &&PublicKey| cell.roll.seats.iter().any(|seat| seat.key == **key);
        let others = cell.machines.iter().filter(|key| !is_member(key)).take(OTHERS_MAX);
        let mut announcing = Announcing {
            join,
            token,
            next: others.copied().collect(),
            count: 0,
            said: BTreeMap::new(),
            why: String::new(),
            again_at: None,
        };
        announcing.begin_round(&cell.roll.seats, &self.me.0);
        cell.announcing = Some(announcing);
        self.call_next(now, out);
    }

    /// Begins another round, if it is time.
    pub(super) fn announce_again(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some(cell) = &mut self.cell else { return };
        let Some(announcing) = &mut cell.announcing else { return };
        if announcing.again_at.is_some_and(|at| at <= now) {
            // They may be others by now.
            announcing.begin_round(&cell.roll.seats, &self.me.0);
            self.call_next(now, out);
        }
    }

    /// Tells those who are next, and ends the round when all have answered.
    fn call_next(&mut self, now: Instant, out: &mut Vec<Output>) {
        let me = self.me.0;
        let Some(cell) = &mut self.cell else { return };
        let Some(announcing) = &mut cell.announcing else { return };
        while cell.asking.count(Purpose::Announce) < CALLS_MAX
            && let Some(to) = announcing.next.pop_front()
        {
            let token = cell.asking.begin(now, Purpose::Announce, to);
            let query = Query::Join(announcing.join.clone());
            out.push(Output::Ask { token, to, query });
        }
        if cell.asking.count(Purpose::Announce) > 0 {
            return;
        }
        let seats = &cell.roll.seats;
        let is_only_one = seats.len() == 1 && seats[0].key == me;
        if is_only_one || announcing.count >= enough(seats.len()) {
            cell.announcing = None;
        } else {
            announcing.again_at = Some(now + PAUSE);
        }
    }

    /// A machine was told, and has answered or not.
    pub(super) fn on_told(
        &mut self,
        now: Instant,
        from: PublicKey,
        answer: Option<Answer>,
        out: &mut Vec<Output>,
    ) {
        let is_voteless = !self.member.replica().is_member();
        if let Some(cell) = &mut self.cell
            && let Some(announcing) = &mut cell.announcing
            && cell.roll.seats.iter().any(|seat| seat.key == from)
        {
            match answer {
                Some(Answer::Joined(ticket)) => {
                    announcing.count += 1;
                    let same = announcing.said.entry(ticket.users.clone()).or_default();
                    *same += 1;
                    if *same == enough(cell.roll.seats.len()) {
                        // Whoever has a vote has it from the book.
                        if is_voteless {
                            out.push(Output::Serve(ticket.users.clone()));
                        }
                        let answer = Answer::Joined(ticket);
                        let waiting = announcing.token.take();
                        out.extend(waiting.map(|token| Output::Reply { token, answer }));
                    }
                }
                Some(Answer::Refused(why)) if why != announcing.why => {
                    announcing.why.clone_from(&why);
                    out.push(Output::Unnoted { by: from, why });
                }
                _ => {}
            }
        }
        self.call_next(now, out);
    }
}

impl Announcing {
    fn begin_round(&mut self, seats: &[group::Seat], me: &PublicKey) {
        (self.count, self.again_at) = (0, None);
        self.said.clear();
        for seat in seats.iter().rev().filter(|seat| seat.key != *me) {
            self.next.push_front(seat.key);
        }
    }
}

/// So many of these say the same that one of them is honest.
fn enough(members: usize) -> usize {
    members.saturating_sub(1) / 3 + 1
}
