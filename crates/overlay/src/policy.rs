//! k-Choices: at which of its positions a machine stands, and when it goes elsewhere (K5 to K8).
//!
//! Everything here is a pure function of what a machine knows of itself and was told by neighbours. A
//! [`Mover`](crate::Mover) asks them; a simulator that sees the whole ring calls these functions directly.

use crate::{
    position::Position,
    rule::{Exchange, Gap, Rule},
    standing::{Load, Standing},
};

/// The settings. Every machine of a cell has the same κ; the rest is each machine's own business.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Who is responsible for a point.
    pub rule: Rule,
    /// κ: how many positions a machine may choose among, and how many virtual servers it may have.
    pub choices: u32,
    /// Whether a machine still moves after it has joined.
    pub is_active: bool,
    /// ε: a move has to gain more than this, in parts of a capacity.
    pub gain_min: f64,
    /// Above this part of its capacity a machine has too much to do.
    pub upper: f64,
    /// Below this part of its capacity a machine has too little to do.
    pub lower: f64,
    /// A machine with less capacity than this moves only if it can't cope (K8).
    pub small: f64,
    /// λ: what the last unit of time weighs in smoothed work (K10).
    pub weight: f64,
    /// Whether a machine sees further than the paper's: which work it only passes on, and who stands beyond a
    /// neighbour that would have too much to do.
    pub is_farsighted: bool,
}

impl Default for Policy {
    /// The paper's values, for machines that see further.
    fn default() -> Policy {
        Policy { is_farsighted: true, ..Policy::paper() }
    }
}

/// How a machine's work compares with what it can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// More than it should.
    Over,
    /// Within its bounds.
    Even,
    /// Less than it could.
    Under,
}

impl Policy {
    /// The paper's values and the paper's cost of a move.
    pub const fn paper() -> Policy {
        Policy {
            rule: Rule::Successor,
            choices: 8,
            is_active: true,
            gain_min: 0.25,
            upper: 0.95,
            lower: 0.05,
            small: 10.0,
            weight: 0.1,
            is_farsighted: false,
        }
    }

    /// What a machine with this capacity would like to do (K7).
    pub fn target(&self, capacity: f64) -> f64 {
        (self.upper + self.lower) / 2.0 * capacity
    }

    /// A machine with this work and capacity.
    pub fn standing(&self, work: f64, capacity: f64) -> Standing {
        Standing { work, target: self.target(capacity), capacity }
    }

    /// Whether it should do less or could do more.
    pub fn balance(&self, standing: &Standing) -> Balance {
        let utilisation = standing.utilisation();
        // K8, section VI-I: one message more or less takes a small machine from one bound to the other, so
        // it would never rest.
        let is_small = standing.capacity < self.small;
        let upper = if is_small { 1.0 } else { self.upper };
        if utilisation > upper {
            Balance::Over
        } else if utilisation < self.lower && !is_small {
            Balance::Under
        } else {
            Balance::Even
        }
    }

    /// The index with the least cost at which to put one more server (K5). `offers` are the indices whose
    /// positions are free, each with what would change hands; of equals the first is taken.
    pub fn choose_join(
        &self,
        joiner: Standing,
        offers: impl IntoIterator<Item = (u32, Exchange)>,
    ) -> Option<Choice> {
        let choice = |(index, exchange): (u32, Exchange)| Choice {
            index,
            cost: exchange.cost_to_take(joiner),
            load: exchange.load(),
        };
        least(offers.into_iter().map(choice))
    }

    /// A server's load as this policy sees it: the paper's takes all of it to lie in the server's part of the
    /// ring.
    pub fn seen(&self, load: Load) -> Load {
        if self.is_farsighted { load } else { Load::of(load.work) }
    }

    /// What a server that comes to a free position in the gap takes over; if one with this load goes from a
    /// position in another gap for that, on the ring as it is without it.
    pub fn arrival(
        &self,
        position: Position,
        mut gap: Gap,
        going: Option<(Position, Load, &Gap)>,
    ) -> Exchange {
        if let Some((from, load, hole)) = going {
            gap = gap.without(self.rule, from, self.seen(load), hole);
        }
        gap.before.load = self.seen(gap.before.load);
        gap.after.load = self.seen(gap.after.load);
        self.rule.arrival(position, &gap)
    }

    /// What others take over when the server with this load goes from this position in the gap.
    ///
    /// K8 weighs only what the neighbour would have to do. Then a small machine with little to do holds
    /// whoever stands before it, however much that one has to do: it does not go itself, as it has no reason.
    pub fn departure(&self, position: Position, load: Load, gap: &Gap) -> Exchange {
        let exchange = self.rule.departure(position, self.seen(load), gap);
        let is_over = |standing: &Standing| self.balance(standing) == Balance::Over;
        if self.is_farsighted { exchange.past(gap, is_over) } else { exchange }
    }

    /// The index to which to take a server, if that gains enough (K8). `going` is what changes hands when it
    /// leaves; `offers` are as for a join, on the ring as it is without that server.
    pub fn choose_move(
        &self,
        mover: Standing,
        going: &Exchange,
        offers: impl IntoIterator<Item = (u32, Exchange)>,
    ) -> Option<Choice> {
        let cost_to_go = going.cost_to_give(mover);
        let choice = self.choose_join(mover.with(-going.load().work), offers)?;
        let cost = cost_to_go + choice.cost;
        // Every move has to gain, also of those who have to go out of the way.
        let gain_min = self.gain_min * f64::from(1 + going.moves());
        (-cost > gain_min).then_some(Choice { cost, ..choice })
    }

    /// The server to do without: that whose work does the least harm elsewhere.
    pub fn choose_destroy(
        &self,
        owner: Standing,
        servers: impl IntoIterator<Item = (u32, Exchange)>,
    ) -> Option<Choice> {
        let choice = |(index, exchange): (u32, Exchange)| Choice {
            index,
            cost: exchange.cost_to_give(owner),
            load: exchange.load(),
        };
        least(servers.into_iter().map(choice))
    }
}

fn least(choices: impl Iterator<Item = Choice>) -> Option<Choice> {
    choices.min_by(|one, other| one.cost.total_cmp(&other.cost))
}

/// A decision for one of a machine's positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Which.
    pub index: u32,
    /// By how much the mismatch of all concerned is expected to grow.
    pub cost: f64,
    /// What is expected to change hands.
    pub load: Load,
}

/// A machine that joins: one virtual server after the other, until it expects enough work (K7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joining {
    standing: Standing,
    left: u32,
}

impl Joining {
    /// A machine with this capacity begins. It makes up to κ/2 servers, and one in any case.
    pub fn new(policy: &Policy, capacity: f64) -> Joining {
        Joining { standing: policy.standing(0.0, capacity), left: (policy.choices / 2).max(1) }
    }

    /// As whom to look for the next server; nothing if there are enough.
    pub fn next(&self) -> Option<Standing> {
        (self.left > 0 && self.standing.work < self.standing.target).then_some(self.standing)
    }

    /// Notes that a server has come to stand, with so much work to expect.
    pub fn joined(&mut self, work: f64) {
        self.standing = self.standing.with(work);
        self.left = self.left.saturating_sub(1);
    }
}

/// What a machine in active mode does at one of its checks (K8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Try to take a server elsewhere.
    Move(Pick),
    /// Make one more server.
    Create,
    /// Do without a server.
    Destroy,
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// That with the most work.
    Heaviest,
    /// That with the least.
    Lightest,
}

impl Pick {
    /// The one among these, of equals the first.
    pub fn choose(self, servers: impl IntoIterator<Item = (u32, f64)>) -> Option<u32> {
        let key = |work: f64| match self {
            Pick::Heaviest => -work,
            Pick::Lightest => work,
        };
        let servers = servers.into_iter();
        let found = servers.min_by(|(_, one), (_, other)| key(*one).total_cmp(&key(*other)));
        found.map(|(index, _)| index)
    }
}

/// The memory of a machine in active mode: for how many checks it has been out of balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restless {
    checks: u32,
}

impl Restless {
    /// Looks at the balance, and says what to try.
    ///
    /// K8 takes the server with the largest |t - w|. As targets are those of the machine, that is the
    /// heaviest where there is too much to do and the lightest where there is too little. Checks count, not
    /// moves: else a machine to which no move brings enough would never try anything else.
    pub fn check(&mut self, policy: &Policy, standing: &Standing, servers: u32) -> Step {
        let balance = policy.balance(standing);
        if !policy.is_active || balance == Balance::Even || policy.choices < 2 {
            self.checks = 0;
            return Step::Rest;
        }
        self.checks += 1;
        let is_tired = self.checks > servers;
        if is_tired {
            self.checks = 0;
        }
        match balance {
            Balance::Over if is_tired && servers > 1 => Step::Destroy,
            Balance::Under if is_tired && servers < policy.choices => Step::Create,
            Balance::Over => Step::Move(Pick::Heaviest),
            Balance::Under | Balance::Even => Step::Move(Pick::Lightest),
        }
    }
}

#[cfg(test)]
mod tests;
