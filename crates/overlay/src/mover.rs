//! The machine that decides where one computer's virtual servers stand: it asks, weighs and moves.

use std::collections::BTreeMap;

use base::{Digest, Duration, Instant, Machine, Rng};

use crate::{
    policy::{Joining, Policy, Restless, Step},
    position::{Claim, Position},
    rule::{Exchange, Gap},
    standing::{Load, Standing, Work},
};

/// The mean time between two checks of the balance (K18). Each wait is drawn between half of it and one and
/// a half, so that machines do not move in step.
const CHECK: Duration = Duration::from_secs(30);
/// How long neighbours have to answer. What has not come by then is no offer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The computer is to take part.
    Join,
    /// What lies around a position, or nothing if it is taken or nobody knows. An answer to an earlier
    /// question is not heard.
    Answer {
        /// The question.
        token: u64,
        /// Which of the own positions.
        index: u32,
        /// Its neighbours; of an own server's position, those on either side of it and beyond them.
        gap: Option<Box<Gap>>,
    },
    /// What a server has done in one more unit of time.
    Did {
        /// Which.
        index: u32,
        /// How much, and what of it went on to its successor.
        done: Load,
    },
    /// What was wanted last is done, or could not be and nothing has changed.
    Done {
        /// Whether it is done.
        is_done: bool,
    },
}

/// What it can want.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// Ask who stands on either side of a position.
    Ask {
        /// To come back with the answer.
        token: u64,
        /// The position, and which of the own ones it is.
        claim: Claim,
    },
    /// Put a server there.
    Stand(Claim),
    /// Take a server elsewhere.
    Move {
        /// Where it stands.
        from: Claim,
        /// Where it is to stand.
        to: Claim,
    },
    /// Do without this server.
    Leave(Claim),
}

/// Why neighbours are asked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Purpose {
    Join(Joining),
    Create,
    /// The server that may go.
    Move(u32),
    Destroy,
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// Not taking part.
    Out,
    Waiting {
        check_at: Instant,
    },
    Asking {
        purpose: Purpose,
        /// By index, at most κ.
        answers: BTreeMap<u32, Option<Gap>>,
        asked: usize,
        until: Instant,
    },
    /// Until the wish is fulfilled or not.
    Acting {
        purpose: Purpose,
        wish: Output,
        /// What is expected of the server once it stands.
        load: Load,
    },
}

/// One computer's servers, and where they are going.
#[derive(Clone, Debug)]
pub struct Mover {
    policy: Policy,
    number: Digest,
    capacity: f64,
    rng: Rng,
    /// By index; at most κ.
    servers: BTreeMap<u32, Work>,
    restless: Restless,
    phase: Phase,
    token: u64,
}

impl Mover {
    /// The mover of the machine with this number and capacity, which is positive.
    pub fn new(policy: Policy, number: Digest, capacity: f64, rng: Rng) -> Mover {
        Mover {
            policy,
            number,
            capacity,
            rng,
            servers: BTreeMap::new(),
            restless: Restless::default(),
            phase: Phase::Out,
            token: 0,
        }
    }

    /// Where its servers stand, and how much each does.
    pub fn servers(&self) -> impl Iterator<Item = (Claim, f64)> {
        self.servers.iter().map(|(index, work)| (self.claim(*index), work.get().work))
    }

    /// What it does, wants and can.
    pub fn standing(&self) -> Standing {
        let work = self.servers.values().map(|work| work.get().work).sum();
        self.policy.standing(work, self.capacity)
    }

    fn claim(&self, index: u32) -> Claim {
        Claim::new(&self.number, index)
    }

    fn position(&self, index: u32) -> Position {
        self.claim(index).position
    }

    fn wait(&mut self, now: Instant) {
        let wait = CHECK.mul_f64(0.5 + self.rng.unit());
        self.phase = Phase::Waiting { check_at: now + wait };
    }

    /// Asks for the positions that matter: unused ones, or those of servers, or one's and unused ones.
    fn ask(&mut self, now: Instant, purpose: Purpose, out: &mut Vec<Output>) {
        self.token += 1;
        let concerns = |index: &u32| match purpose {
            Purpose::Join(_) | Purpose::Create => !self.servers.contains_key(index),
            Purpose::Move(server) => !self.servers.contains_key(index) || *index == server,
            Purpose::Destroy => self.servers.contains_key(index),
        };
        let indices = (0..self.policy.choices).filter(concerns);
        let before = out.len();
        let token = self.token;
        out.extend(indices.map(|index| Output::Ask { token, claim: self.claim(index) }));
        let asked = out.len() - before;
        let (answers, until) = (BTreeMap::new(), now + ANSWER_MAX);
        self.phase = Phase::Asking { purpose, answers, asked, until };
        self.decide_if_told(now, out);
    }

    fn on_join(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.phase == Phase::Out {
            let joining = Joining::new(&self.policy, self.capacity);
            self.ask(now, Purpose::Join(joining), out);
        }
    }

    fn on_answer(
        &mut self,
        now: Instant,
        (token, index, gap): (u64, u32, Option<Box<Gap>>),
        out: &mut Vec<Output>,
    ) {
        if let Phase::Asking { answers, .. } = &mut self.phase
            && token == self.token
            && index < self.policy.choices
        {
            answers.insert(index, gap.map(|gap| *gap));
            self.decide_if_told(now, out);
        }
    }

    fn on_did(&mut self, index: u32, done: Load) {
        if let Some(known) = self.servers.get_mut(&index) {
            known.observe(done, self.policy.weight);
        }
    }

    fn on_done(&mut self, now: Instant, is_done: bool, out: &mut Vec<Output>) {
        let Phase::Acting { purpose, wish, load } = self.phase else { return };
        if is_done {
            self.note(wish, load);
        }
        match purpose {
            Purpose::Join(mut joining) => {
                joining.joined(if is_done { load.work } else { 0.0 });
                match joining.next() {
                    Some(_) => self.ask(now, Purpose::Join(joining), out),
                    None => self.wait(now),
                }
            }
            Purpose::Create | Purpose::Move(_) | Purpose::Destroy => self.wait(now),
        }
    }

    fn note(&mut self, wish: Output, load: Load) {
        match wish {
            Output::Stand(claim) => {
                self.servers.insert(claim.index, Work::anticipated(load));
            }
            Output::Move { from, to } => {
                self.servers.remove(&from.index);
                self.servers.insert(to.index, Work::anticipated(load));
            }
            Output::Leave(claim) => {
                self.servers.remove(&claim.index);
            }
            Output::Ask { .. } => {}
        }
    }

    fn decide_if_told(&mut self, now: Instant, out: &mut Vec<Output>) {
        if let Phase::Asking { answers, asked, .. } = &self.phase
            && answers.len() >= *asked
        {
            self.decide(now, out);
        }
    }

    fn decide(&mut self, now: Instant, out: &mut Vec<Output>) {
        let phase = std::mem::replace(&mut self.phase, Phase::Out);
        let Phase::Asking { purpose, answers, .. } = phase else { return };
        match self.choose(purpose, &answers) {
            Some((wish, load)) => {
                out.push(wish);
                self.phase = Phase::Acting { purpose, wish, load };
            }
            None => self.wait(now),
        }
    }

    fn choose(
        &self,
        purpose: Purpose,
        answers: &BTreeMap<u32, Option<Gap>>,
    ) -> Option<(Output, Load)> {
        let Mover { policy, .. } = self;
        let gaps = answers.iter().filter_map(|(index, gap)| Some((*index, (*gap)?)));
        let arrival = |(index, gap)| (index, policy.arrival(self.position(index), gap, None));
        let departure = |index: u32, gap: &Gap| {
            let load = self.servers.get(&index).map_or(Load::default(), |work| work.get());
            policy.departure(self.position(index), load, gap)
        };
        match purpose {
            Purpose::Join(joining) => {
                let choice = policy.choose_join(joining.next()?, gaps.map(arrival))?;
                Some((Output::Stand(self.claim(choice.index)), choice.load))
            }
            Purpose::Create => {
                let choice = policy.choose_join(self.standing(), gaps.map(arrival))?;
                Some((Output::Stand(self.claim(choice.index)), choice.load))
            }
            Purpose::Move(server) => {
                let hole = answers.get(&server).copied().flatten()?;
                let (from, load) = (self.position(server), self.servers.get(&server)?.get());
                let going = departure(server, &hole);
                let offers = gaps.filter(|(index, _)| *index != server).map(|(index, gap)| {
                    let going = Some((from, load, &hole));
                    (index, policy.arrival(self.position(index), gap, going))
                });
                let choice = policy.choose_move(self.standing(), &going, offers)?;
                let (from, to) = (self.claim(server), self.claim(choice.index));
                Some((Output::Move { from, to }, choice.load))
            }
            Purpose::Destroy => {
                let offers: Vec<(u32, Exchange)> =
                    gaps.map(|(index, gap)| (index, departure(index, &gap))).collect();
                let choice = policy.choose_destroy(self.standing(), offers)?;
                Some((Output::Leave(self.claim(choice.index)), Load::default()))
            }
        }
    }

    fn check(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.servers.is_empty() {
            // Nobody answered when it joined.
            let joining = Joining::new(&self.policy, self.capacity);
            return self.ask(now, Purpose::Join(joining), out);
        }
        let count = self.servers.len() as u32;
        match self.restless.check(&self.policy, &self.standing(), count) {
            Step::Rest => self.wait(now),
            Step::Create => self.ask(now, Purpose::Create, out),
            Step::Destroy => self.ask(now, Purpose::Destroy, out),
            Step::Move(pick) => {
                let works = self.servers.iter().map(|(index, work)| (*index, work.get().work));
                match pick.choose(works) {
                    Some(server) => self.ask(now, Purpose::Move(server), out),
                    None => self.wait(now),
                }
            }
        }
    }
}

impl Machine for Mover {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Join => self.on_join(now, out),
            Input::Answer { token, index, gap } => self.on_answer(now, (token, index, gap), out),
            Input::Did { index, done } => self.on_did(index, done),
            Input::Done { is_done } => self.on_done(now, is_done, out),
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Waiting { check_at } if now >= check_at => self.check(now, out),
            Phase::Asking { until, .. } if now >= until => self.decide(now, out),
            _ => {}
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Waiting { check_at } => Some(check_at),
            Phase::Asking { until, .. } => Some(until),
            Phase::Out | Phase::Acting { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
