//! One machine's server roles as one machine: its member of the group, what its own client believes of the group, who
//! was sent away, who waits to hear what, and what it asks others.
//!
//! Whoever runs it polls, writes, syncs, loads and sends; everything that is to be decided is decided here. What it
//! asks another machine is an output with a token, and the answer an input with that token; whoever asks it for
//! something brings a token too, and is answered once.

mod announcing;
mod asking;
mod decreeing;
mod hearing;
mod joining;
mod renewing;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::BTreeSet;

use base::{Instant, Machine, PublicKey};
use directory::{Absent, message::Request};
use group::{Astray, Decision, Notary, Rescue, Roll};
use lease::Client;
use overlay::{Decree, Decrees, Profile, Refused, Renewal, Renewer};
use wire::{Answer, Ear, Join, Query};

use crate::{
    attendance::Seating,
    member::{self, Checkpoint, Member},
};

use announcing::Announcing;
use asking::Asking;
use waiting::Waiting;

/// Whoever waits to hear something gives this, and is answered with it.
pub type Token = u64;

/// What happens to a machine.
#[derive(Clone, Debug)]
pub enum Input {
    /// The wall clock shows this, in seconds since 1970.
    Seconds(u64),
    /// This machine's own client wants something.
    Wanted(Request),
    /// Another machine says something.
    Frame {
        /// Which: whoever carries the bytes has proved it.
        from: PublicKey,
        /// What, as it came.
        bytes: Vec<u8>,
    },
    /// There is a connection with another machine.
    Met(PublicKey),
    /// A machine wants to be one of the cell, or says where it is now.
    Join {
        /// What it says.
        join: Box<Join>,
        /// Whoever waits to hear what comes of it.
        token: Token,
    },
    /// Somebody hands on what an issuer or the root key says.
    Decree {
        /// What.
        decree: Box<Decree>,
        /// Whoever waits to hear what comes of it.
        token: Token,
    },
    /// This machine has something new to say of itself: it has started, moved, been renewed, or acts for others.
    Own {
        /// What.
        join: Box<Join>,
        /// Whoever waits to hear for whom it acts, if anybody does.
        token: Option<Token>,
    },
    /// Somebody, be it who it may, shows how the members of the group have changed.
    Changes(Vec<Decision>),
    /// What came of an [`Output::Ask`]. Nothing, if nobody has answered in time.
    Answered {
        /// Of which.
        token: Token,
        /// What was answered.
        answer: Option<Answer>,
    },
    /// For the member alone.
    Member(member::Input),
}

/// What a machine wants done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Tell another machine.
    Send {
        /// Which.
        to: PublicKey,
        /// What.
        bytes: Vec<u8>,
    },
    /// Tell all with whom there is a connection.
    SendAll(Vec<u8>),
    /// This machine's own client hears these bytes of a response, which it can believe.
    Hear(Vec<u8>),
    /// Ask another machine, or this one, out of turn.
    Ask {
        /// To be said with the answer.
        token: Token,
        /// Which.
        to: PublicKey,
        /// What.
        query: Query,
    },
    /// Whoever gave this token hears what came of it, now and not again.
    Reply {
        /// The token.
        token: Token,
        /// What came of it.
        answer: Answer,
    },
    /// The book of machines may say something else now. What follows relies on it.
    Book,
    /// These are the members now, as far as this machine knows.
    Roll(Roll),
    /// A machine, or a user, is of the cell no more.
    Gone(PublicKey),
    /// Keep what [`Server::decrees`] has before anything that follows is done: else it would be forgotten.
    Keep,
    /// A machine says that it is here now; nobody else could have asked to join with its key.
    Moved(Box<Join>),
    /// So many members that one of them is honest say for whom this machine acts; for any, if none are named.
    Serve(Option<Vec<Profile>>),
    /// The certificate of this machine was renewed, as somebody says.
    Renewed(Box<Renewal>),
    /// A member refuses to note what this machine says of itself, and says why.
    Unnoted {
        /// Which.
        by: PublicKey,
        /// Why.
        why: String,
    },
    /// This machine was sent away: it ends when its log is safe.
    SentAway,
    /// This machine can't be of its cell.
    Unfit(Refused),
    /// Append a record to the log.
    Persist {
        /// Its number: one more than that of the record before.
        mark: u64,
        /// The record.
        record: Vec<u8>,
    },
    /// Something waits until the log is safe up to this mark.
    Sync {
        /// The mark.
        mark: u64,
    },
    /// Look these up in the store; nothing is applied until they are there.
    Load(Absent),
    /// Everything that the store has is void. The state comes from other members now. It comes before the records that
    /// go on from it.
    Replaced,
    /// Everything that the store has is void, and so is the log up to here.
    Misled,
    /// The authority has let the group go on from this member, which is safe now.
    Rescued(Rescue),
    /// The disk is not the newest that this member has had.
    Stale,
    /// What this member has is not what enough others have sealed. It votes no more.
    Astray(Astray),
}

/// What a machine that listens to others is begun with.
#[derive(Debug)]
pub struct Others<N> {
    /// What its client believes of the group.
    pub ear: Ear<N>,
    /// The root key of the cell.
    pub authority: PublicKey,
    /// Who has founded it, and is asked first for a renewal.
    pub founder: PublicKey,
    /// The decrees that it has kept.
    pub decrees: Decrees,
    /// The other machines of the cell, as last known.
    pub machines: BTreeSet<PublicKey>,
    /// When its certificate expires, in seconds since 1970.
    pub expires: u64,
}

/// One machine's server roles.
pub struct Server<N> {
    /// This machine's key, and which client it is.
    me: (PublicKey, Client),
    member: Member<N>,
    /// What it is to the other machines, if it listens to any.
    cell: Option<Cell<N>>,
    /// What the wall clock last showed, in seconds since 1970.
    seconds: u64,
}

/// What a machine knows of the others and owes them.
struct Cell<N> {
    ear: Ear<N>,
    authority: PublicKey,
    founder: PublicKey,
    decrees: Decrees,
    /// As many as the cell has.
    machines: BTreeSet<PublicKey>,
    /// The roll that was last told, and the machines and the epoch that decrees were last told of.
    roll: Roll,
    told: Option<(BTreeSet<PublicKey>, u64)>,
    /// When all machines were last asked who the members are.
    asked_at: Option<Instant>,
    /// Who waits to hear whether a machine has joined.
    joining: Waiting,
    /// Who waits to hear what came of the word on somebody.
    decreeing: Waiting,
    asking: Asking,
    announcing: Option<Announcing>,
    renewer: Renewer,
    /// Whom to ask for a renewal next. At most [`renewing::ASKED_MAX`].
    renewing: Vec<PublicKey>,
    expires: u64,
}

impl<N: Notary + Clone> Server<N> {
    /// With its member, and the others if it listens to any.
    pub fn new(me: (PublicKey, Client), member: Member<N>, others: Option<Others<N>>) -> Server<N> {
        let cell = others.map(|others| {
            let Others { ear, authority, founder, decrees, machines, expires } = others;
            let (count_max, roll) = (member.limits().joining_max, ear.roll());
            Cell {
                ear,
                authority,
                founder,
                decrees,
                machines,
                roll,
                told: None,
                asked_at: None,
                joining: Waiting::new(count_max),
                decreeing: Waiting::new(count_max),
                asking: Asking::default(),
                announcing: None,
                renewer: Renewer::default(),
                renewing: Vec::new(),
                expires,
            }
        });
        Server { me, member, cell, seconds: 0 }
    }

    /// Does what its member wanted done when it had gone through its log.
    pub fn begin(&mut self, now: Instant, wanted: Vec<member::Output>, out: &mut Vec<Output>) {
        self.follow(now, wanted, out);
        self.settle(now, out);
    }

    /// Has a say in who sits in the group, if it listens to others.
    pub fn attend(&mut self, seating: Seating, now: Instant) {
        if self.cell.is_some() {
            self.member.attend(seating, now);
        }
    }

    /// Its member of the group.
    pub fn member(&self) -> &Member<N> {
        &self.member
    }

    /// What to store so that the log up to here is not needed any more. None while a decision waits to be applied.
    pub fn checkpoint(&mut self) -> Option<Checkpoint> {
        self.member.checkpoint()
    }

    /// Everything, records and all, as other members may take it. None if some of it is in a store only.
    pub fn whole_state(&mut self) -> Option<Vec<u8>> {
        self.member.whole_state()
    }

    /// Lets go of every record that is stored.
    pub fn release_all(&mut self) {
        self.member.release_all();
    }

    /// The decrees that it knows of, to be kept for its next start.
    pub fn decrees(&self) -> impl Iterator<Item = &Decree> {
        self.cell.iter().flat_map(|cell| cell.decrees.known())
    }

    /// The members of the group, as far as this machine's client knows.
    pub fn roll(&self) -> Option<&Roll> {
        self.cell.as_ref().map(|cell| &cell.roll)
    }

    /// Those who sit in the group or are to, as far as this machine knows: they are read first.
    pub fn seated(&self) -> BTreeSet<PublicKey> {
        let tip = self.member.replica().tip();
        let roll = self.cell.iter().flat_map(|cell| &cell.roll.seats);
        tip.seats.iter().chain(tip.learners()).chain(roll).map(|seat| seat.key).collect()
    }

    /// What follows from what has happened, whatever it was.
    fn settle(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.read_roll(out);
        self.tell_cell(now, out);
        self.renew_in_time(now, out);
    }

    fn step_member(&mut self, now: Instant, input: member::Input, out: &mut Vec<Output>) {
        let mut wanted = Vec::new();
        self.member.step(now, input, &mut wanted);
        self.follow(now, wanted, out);
    }

    /// Does what the member wants done.
    fn follow(&mut self, now: Instant, wanted: Vec<member::Output>, out: &mut Vec<Output>) {
        let (mut joined, mut decreed, mut is_book_read) = (Vec::new(), Vec::new(), true);
        if wanted.contains(&member::Output::Replaced) {
            // Before the log says so: a log that goes on from a state that is not there is of no use.
            out.push(Output::Replaced);
            is_book_read = false;
        }
        for output in wanted {
            match output {
                member::Output::Persist { mark, record } => {
                    out.push(Output::Persist { mark, record });
                }
                member::Output::Sync { mark } => out.push(Output::Sync { mark }),
                member::Output::Send { to, slot, bytes } => self.say(to, slot, bytes, out),
                member::Output::Show { to, bytes } => self.show(to, bytes, out),
                member::Output::Tell { to, bytes } if self.cell.is_some() => {
                    out.push(Output::Send { to: to.key, bytes });
                }
                member::Output::Tell { .. } | member::Output::Replaced => {}
                member::Output::Joined { machine, outcome } => {
                    joined.push((machine, outcome));
                    is_book_read = false;
                }
                member::Output::Decreed { subject, decree, outcome } => {
                    decreed.push((subject, decree, outcome));
                    is_book_read = false;
                }
                member::Output::Rescued(rescue) => out.push(Output::Rescued(rescue)),
                member::Output::Load(absent) => out.push(Output::Load(absent)),
                member::Output::Misled => {
                    out.push(Output::Misled);
                    is_book_read = false;
                }
                member::Output::Stale => out.push(Output::Stale),
                member::Output::Astray(astray) => out.push(Output::Astray(astray)),
            }
        }
        if self.member.book().is_revoked(&self.me.0) && !decreed.is_empty() {
            return out.push(Output::SentAway);
        }
        if !is_book_read {
            self.read_book();
            out.push(Output::Book);
        }
        for (machine, outcome) in joined {
            self.on_joined(&machine, outcome, out);
        }
        // Whoever waits for the answer may rely on it that nobody is let in here any more.
        for (subject, decree, outcome) in decreed {
            self.on_decreed(now, &subject, *decree, outcome, out);
        }
    }
}

impl<N: Notary + Clone> Machine for Server<N> {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Seconds(seconds) => self.seconds = seconds,
            Input::Wanted(request) => self.on_wanted(now, request, out),
            Input::Frame { from, bytes } => self.on_frame(now, from, bytes, out),
            Input::Met(other) => self.step_decrees(now, overlay::decrees::Input::Met(other), out),
            Input::Join { join, token } => self.on_join(now, join, token, out),
            Input::Decree { decree, token } => self.on_decree(now, decree, token, out),
            Input::Own { join, token } => self.on_own(now, join, token, out),
            Input::Changes(changes) => self.on_changes(now, changes, out),
            Input::Answered { token, answer } => self.on_answered(now, token, answer, out),
            Input::Member(input) => self.step_member(now, input, out),
        }
        self.settle(now, out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        let mut wanted = Vec::new();
        self.member.tick(now, &mut wanted);
        self.follow(now, wanted, out);
        self.tick_decrees(now, out);
        self.expire(now, out);
        self.give_up(now, out);
        self.announce_again(now, out);
        self.settle(now, out);
    }

    fn wake_at(&self) -> Option<Instant> {
        let cell = self.cell.iter().flat_map(|cell| {
            let waiting = [cell.joining.wake_at(), cell.decreeing.wake_at()];
            let announcing = cell.announcing.as_ref().and_then(Announcing::wake_at);
            let others = [cell.decrees.wake_at(), announcing, cell.asking.wake_at()];
            others.into_iter().chain(waiting).flatten()
        });
        self.member.wake_at().into_iter().chain(cell).min()
    }
}
