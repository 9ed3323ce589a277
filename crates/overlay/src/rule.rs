//! Whose work a virtual server takes when it comes, and who takes it when it goes.

use crate::{position::Position, standing::Standing};

/// Who is responsible for a point of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The next server at or after it, as in Chord (K2).
    Successor,
    /// The server nearest to it, as in Pastry (K11).
    Nearest,
}

/// A virtual server next to a position, as its machine tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Where it stands.
    pub position: Position,
    /// Who stands on its other side.
    pub beyond: Position,
    /// What this server does.
    pub work: f64,
    /// What its machine does, wants and can; nothing if that machine is the one that asks.
    pub standing: Option<Standing>,
}

/// The two servers between which a position lies. They are one where there is only one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// The predecessor.
    pub before: Neighbour,
    /// The successor.
    pub after: Neighbour,
}

/// Work that changes hands, by another machine each: one where the successor is responsible, two where the
/// nearest is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchange {
    parts: [Option<(f64, Standing)>; 2],
}

impl Rule {
    /// What a server that comes to a free position in the gap takes over. Work is taken to lie evenly in the
    /// part of the ring that a server is responsible for (K5).
    pub fn arrival(self, position: Position, Gap { before, after }: &Gap) -> Exchange {
        let Neighbour { position: from, .. } = before;
        match self {
            Rule::Successor => {
                let share = from.way(position) / from.way(after.position);
                Exchange::new([Some((share, after)), None])
            }
            // Half of the way to each side is taken, of what was half of the way between their neighbours.
            Rule::Nearest => {
                let share = from.way(position) / from.way(after.beyond);
                let share_before = position.way(after.position) / before.beyond.way(after.position);
                Exchange::new([Some((share, after)), Some((share_before, before))])
            }
        }
    }

    /// What others take over when the server with this work goes from this position in the gap.
    pub fn departure(self, position: Position, work: f64, Gap { before, after }: &Gap) -> Exchange {
        let whole = before.position.way(after.position);
        match self {
            Rule::Successor => Exchange::whole([Some((work, after)), None]),
            Rule::Nearest => {
                let to_before = work * position.way(after.position) / whole;
                Exchange::whole([Some((work - to_before, after)), Some((to_before, before))])
            }
        }
    }
}

impl Gap {
    /// This gap on the ring as it is without the server with this work at this position, which stands in the
    /// gap `going`. Of machines with several servers, only those at `going` are known to have more to do.
    pub fn without(self, rule: Rule, position: Position, work: f64, going: &Gap) -> Gap {
        let to_before = match rule {
            Rule::Successor => 0.0,
            Rule::Nearest => {
                let whole = going.before.position.way(going.after.position);
                work * position.way(going.after.position) / whole
            }
        };
        let before = going.before.with(to_before);
        let after = going.after.with(work - to_before);
        if self.after.position == position || self.before.position == position {
            return Gap { before, after };
        }
        // Next to the gap that is left: the neighbour there has another neighbour now.
        let adjust = |neighbour: Neighbour| {
            if neighbour.position == after.position {
                Neighbour { beyond: before.position, ..after }
            } else if neighbour.position == before.position {
                Neighbour { beyond: after.position, ..before }
            } else {
                neighbour
            }
        };
        Gap {
            before: adjust(self.before),
            after: if rule == Rule::Nearest { adjust(self.after) } else { self.after },
        }
    }
}

impl Neighbour {
    /// The same with more work.
    fn with(self, more: f64) -> Neighbour {
        let standing = self.standing.map(|standing| standing.with(more));
        Neighbour { work: self.work + more, standing, ..self }
    }
}

impl Exchange {
    /// A share of each neighbour's work.
    fn new(parts: [Option<(f64, &Neighbour)>; 2]) -> Exchange {
        Exchange::whole(parts.map(|part| part.map(|(share, of)| (share * of.work, of))))
    }

    /// So much of each neighbour's work. What stays on the machine that asks does not change hands.
    fn whole(parts: [Option<(f64, &Neighbour)>; 2]) -> Exchange {
        Exchange { parts: parts.map(|part| part.and_then(|(w, of)| Some((w, of.standing?)))) }
    }

    /// How much work changes hands.
    pub fn work(&self) -> f64 {
        self.parts.iter().flatten().map(|(work, _)| work).sum()
    }

    /// By how much the mismatch of all concerned grows if this machine takes the work (K5, K6, K11).
    pub fn cost_to_take(&self, taker: Standing) -> f64 {
        let others = self.parts.iter().flatten().map(|(work, of)| of.strain(-work));
        others.sum::<f64>() + taker.strain(self.work())
    }

    /// By how much the mismatch of all concerned grows if this machine gives the work away.
    pub fn cost_to_give(&self, giver: Standing) -> f64 {
        let others = self.parts.iter().flatten().map(|(work, of)| of.strain(*work));
        others.sum::<f64>() + giver.strain(-self.work())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Standing = Standing { work: 0.0, target: 50.0, capacity: 100.0 };

    fn neighbour(position: u64, beyond: u64, work: f64) -> Neighbour {
        let standing = Standing { work, target: 50.0, capacity: 100.0 };
        let standing = Some(standing);
        Neighbour { position: Position(position), beyond: Position(beyond), work, standing }
    }

    fn gap() -> Gap {
        Gap { before: neighbour(100, 0, 40.0), after: neighbour(200, 400, 80.0) }
    }

    #[test]
    fn the_successor_gives_the_part_of_the_way_that_is_cut_off() {
        let exchange = Rule::Successor.arrival(Position(125), &gap());
        assert_eq!(exchange.work(), 20.0);
        // K5: |50 - 60| + |50 - 20| - |50 - 80|, less |50 - 0| of the joiner before, by 100.
        assert!((exchange.cost_to_take(IDLE) - (10.0 + 30.0 - 30.0 - 50.0) / 100.0).abs() < 1e-12);
    }

    #[test]
    fn each_term_is_normalised_by_the_capacity_of_its_own_machine() {
        let exchange = Rule::Successor.arrival(Position(125), &gap());
        let large = Standing { work: 0.0, target: 500.0, capacity: 1_000.0 };
        let cost = exchange.cost_to_take(large);
        assert!((cost - (-20.0 / 100.0 - 20.0 / 1_000.0)).abs() < 1e-12, "{cost}");
    }

    #[test]
    fn the_nearest_rule_takes_from_both_sides() {
        // Before: 100 has [50, 150), 200 has [150, 300). A server at 125 has [112.5, 162.5).
        let exchange = Rule::Nearest.arrival(Position(125), &gap());
        assert!((exchange.work() - (40.0 * 37.5 / 100.0 + 80.0 * 12.5 / 150.0)).abs() < 1e-9);
    }

    #[test]
    fn who_comes_and_goes_leaves_everything_as_it_was() {
        for rule in [Rule::Successor, Rule::Nearest] {
            // Work lies equally dense on both sides, so that where it lies does not matter.
            let gap = Gap { after: neighbour(200, 400, 60.0), ..gap() };
            let position = Position(160);
            let arrival = rule.arrival(position, &gap);
            let after_it = |(work, of): (f64, Standing)| of.with(-work);
            let left = arrival.parts.map(|part| part.map(after_it));
            let mut later = gap;
            later.after.standing = left[0];
            later.before.standing = left[1].or(gap.before.standing);
            let departure = rule.departure(position, arrival.work(), &later);
            for (index, part) in departure.parts.into_iter().enumerate() {
                let Some((work, of)) = part else { continue };
                let before = [gap.after, gap.before][index].work;
                assert!((of.with(work).work - before).abs() < 1e-9, "{rule:?}");
            }
            let cost = arrival.cost_to_take(IDLE);
            let back = departure.cost_to_give(IDLE.with(arrival.work()));
            assert!((cost + back).abs() < 1e-12, "{rule:?}");
        }
    }

    #[test]
    fn work_between_two_servers_of_one_machine_does_not_change_hands() {
        let mut gap = gap();
        gap.after.standing = None;
        let exchange = Rule::Successor.arrival(Position(125), &gap);
        assert_eq!((exchange.work(), exchange.cost_to_take(IDLE)), (0.0, 0.0));
    }

    #[test]
    fn one_alone_is_responsible_for_the_whole_ring() {
        let alone = neighbour(100, 100, 80.0);
        let gap = Gap { before: alone, after: alone };
        let exchange = Rule::Successor.arrival(Position(100 + (1 << 62)), &gap);
        assert_eq!(exchange.work(), 20.0);
    }
}
