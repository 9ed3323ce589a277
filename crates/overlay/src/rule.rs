//! Whose work a virtual server takes when it comes, and who takes it when it goes.

use crate::{
    position::Position,
    standing::{Load, Standing},
};

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
    pub load: Load,
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
    /// Who stands before the predecessor. This and the next matter only where a server may go.
    pub beyond_before: Beyond,
    /// Who stands after the successor.
    pub beyond_after: Beyond,
}

/// So many servers beyond a neighbour are asked.
pub const BEYOND_MAX: usize = 4;

/// What the next servers beyond a neighbour do, and the standings of their machines, the nearest first. It ends
/// where nobody was asked, and before a server of the machine that asks.
pub type Beyond = [Option<(f64, Standing)>; BEYOND_MAX];

/// Work that changes hands when a server comes or goes, and between whom.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchange {
    /// Another machine's part in it, the successor's first.
    parts: [Option<(f64, Standing)>; 2],
    /// What the server brings to its machine or takes from it.
    load: Load,
    /// How many more servers have to go for it.
    moves: u32,
}

impl Rule {
    /// What a server that comes to a free position in the gap takes over. Work is taken to lie evenly in the
    /// part of the ring that a server is responsible for (K5), and what is passed on to the successor evenly in
    /// the successor's part.
    pub fn arrival(self, position: Position, Gap { before, after, .. }: &Gap) -> Exchange {
        let Neighbour { position: from, .. } = before;
        match self {
            Rule::Successor => {
                let share = from.way(position) / from.way(after.position);
                Exchange::of_parts(
                    (share * after.load.in_part(), after),
                    ((1.0 - share) * before.load.passed, before),
                )
            }
            // Half of the way to each side is taken, of what was half of the way between their neighbours.
            Rule::Nearest => {
                let share = from.way(position) / from.way(after.beyond);
                let share_before = position.way(after.position) / before.beyond.way(after.position);
                let (work, work_before) =
                    (share * after.load.work, share_before * before.load.work);
                Exchange::whole([(work, after), (work_before, before)])
            }
        }
    }

    /// What its neighbours take over when the server with this load goes from this position in the gap.
    pub fn departure(self, position: Position, load: Load, gap: &Gap) -> Exchange {
        let Gap { before, after, .. } = gap;
        match self {
            Rule::Successor => Exchange::of_parts((load.in_part(), after), (load.passed, before)),
            Rule::Nearest => {
                let to_before = to_before(position, load.work, gap);
                Exchange::whole([(load.work - to_before, after), (to_before, before)])
            }
        }
    }
}

/// Where the nearest is responsible: what the predecessor takes over of a server that goes.
fn to_before(position: Position, work: f64, Gap { before, after, .. }: &Gap) -> f64 {
    work * position.way(after.position) / before.position.way(after.position)
}

impl Gap {
    /// This gap on the ring as it is without the server with this load at this position, which stands in the
    /// gap `going`. Of machines with several servers, only those at `going` are known to have more to do.
    pub fn without(self, rule: Rule, position: Position, load: Load, going: &Gap) -> Gap {
        let (more_before, more_after) = match rule {
            Rule::Successor => {
                (Load { work: load.passed, passed: load.passed }, Load::of(load.in_part()))
            }
            Rule::Nearest => {
                let to_before = to_before(position, load.work, going);
                (Load::of(to_before), Load::of(load.work - to_before))
            }
        };
        let (before, after) = (going.before.with(more_before), going.after.with(more_after));
        if self.after.position == position || self.before.position == position {
            return Gap { before, after, ..self };
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
        Gap { before: adjust(self.before), after: adjust(self.after), ..self }
    }
}

impl Neighbour {
    /// The same with more work.
    fn with(self, more: Load) -> Neighbour {
        let Load { work, passed } = self.load;
        let load = Load { work: work + more.work, passed: passed + more.passed };
        let standing = self.standing.map(|standing| standing.with(more.work));
        Neighbour { load, standing, ..self }
    }
}

impl Exchange {
    /// Between a server and its successor what lies in its part of the ring, and between it and its predecessor
    /// what it passes on.
    fn of_parts(in_part: (f64, &Neighbour), passed: (f64, &Neighbour)) -> Exchange {
        let mut exchange = Exchange::whole([in_part, passed]);
        exchange.load.passed = exchange.parts[1].map_or(0.0, |(work, _)| work);
        exchange
    }

    /// So much by each neighbour. What stays on the machine that asks does not change hands.
    fn whole(parts: [(f64, &Neighbour); 2]) -> Exchange {
        let parts = parts.map(|(work, of)| Some((work, of.standing?)));
        let load = Load::of(parts.iter().flatten().map(|(work, _)| work).sum());
        Exchange { parts, load, moves: 0 }
    }

    /// How much changes hands.
    pub fn load(&self) -> Load {
        self.load
    }

    /// The same where neighbours for whom this is too much go out of the way in turn, if one of those beyond has
    /// room for it.
    ///
    /// Whoever is in the way is taken to find a place with as much to do as it has. Of those after the server,
    /// each leaves its own work to the next as well. Those before it pass on much the same messages already, so
    /// no more of them come together.
    pub fn past(mut self, gap: &Gap, is_too_much: impl Fn(&Standing) -> bool) -> Exchange {
        let mut left = gap.after.load.work;
        let after = gap.beyond_after.iter().map_while(|next| *next);
        let after = after.map(|(work, next)| (std::mem::replace(&mut left, work), next));
        let before = gap.beyond_before.iter().map_while(|next| *next);
        let before = before.map(|(_, next)| (0.0, next));
        let [to_after, to_before] = &mut self.parts;
        if let Some(part) = to_after {
            let (found, going) = first_with_room(*part, after, &is_too_much);
            (*part, self.moves) = (found, self.moves + going);
        }
        if let Some(part) = to_before {
            let (found, going) = first_with_room(*part, before, &is_too_much);
            (*part, self.moves) = (found, self.moves + going);
        }
        self
    }

    /// How many more servers have to go for it.
    pub fn moves(&self) -> u32 {
        self.moves
    }

    /// By how much the mismatch of all concerned grows if this machine takes the work (K5, K6, K11).
    pub fn cost_to_take(&self, taker: Standing) -> f64 {
        let others = self.parts.iter().flatten().map(|(work, of)| of.strain(-work));
        others.sum::<f64>() + taker.strain(self.load.work)
    }

    /// By how much the mismatch of all concerned grows if this machine gives the work away.
    pub fn cost_to_give(&self, giver: Standing) -> f64 {
        let others = self.parts.iter().flatten().map(|(work, of)| of.strain(*work));
        others.sum::<f64>() + giver.strain(-self.load.work)
    }
}

/// Who has the work in the end, and how much, each beyond with what is left to it on the way: the first that has
/// room, and without any the neighbour. Also how many have to go for that.
fn first_with_room(
    neighbour: (f64, Standing),
    beyond: impl Iterator<Item = (f64, Standing)>,
    is_too_much: impl Fn(&Standing) -> bool,
) -> ((f64, Standing), u32) {
    let (mut last, mut going) = (neighbour, 0);
    if neighbour.0 <= 0.0 {
        return (neighbour, 0);
    }
    for (left, next) in beyond {
        if !is_too_much(&last.1.with(last.0)) {
            return (last, going);
        }
        (last, going) = ((last.0 + left, next), going + 1);
    }
    if is_too_much(&last.1.with(last.0)) { (neighbour, 0) } else { (last, going) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Standing = Standing { work: 0.0, target: 50.0, capacity: 100.0 };

    fn neighbour(position: u64, beyond: u64, work: f64) -> Neighbour {
        let standing = Standing { work, target: 50.0, capacity: 100.0 };
        let standing = Some(standing);
        let (position, beyond) = (Position(position), Position(beyond));
        Neighbour { position, beyond, load: Load::of(work), standing }
    }

    fn between(before: Neighbour, after: Neighbour) -> Gap {
        let nobody = [None; BEYOND_MAX];
        Gap { before, after, beyond_before: nobody, beyond_after: nobody }
    }

    fn gap() -> Gap {
        between(neighbour(100, 0, 40.0), neighbour(200, 400, 80.0))
    }

    #[test]
    fn the_successor_gives_the_part_of_the_way_that_is_cut_off() {
        let exchange = Rule::Successor.arrival(Position(125), &gap());
        assert_eq!(exchange.load().work, 20.0);
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
        assert!((exchange.load().work - (40.0 * 37.5 / 100.0 + 80.0 * 12.5 / 150.0)).abs() < 1e-9);
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
            let departure = rule.departure(position, arrival.load(), &later);
            for (index, part) in departure.parts.into_iter().enumerate() {
                let Some((work, of)) = part else { continue };
                let before = [gap.after, gap.before][index].load.work;
                assert!((of.with(work).work - before).abs() < 1e-9, "{rule:?}");
            }
            let cost = arrival.cost_to_take(IDLE);
            let back = departure.cost_to_give(IDLE.with(arrival.load().work));
            assert!((cost + back).abs() < 1e-12, "{rule:?}");
        }
    }

    #[test]
    fn work_between_two_servers_of_one_machine_does_not_change_hands() {
        let mut gap = gap();
        gap.after.standing = None;
        let exchange = Rule::Successor.arrival(Position(125), &gap);
        assert_eq!((exchange.load().work, exchange.cost_to_take(IDLE)), (0.0, 0.0));
    }

    #[test]
    fn what_is_passed_on_to_the_successor_is_between_a_server_and_its_predecessor() {
        let mut gap = gap();
        gap.before.load = Load { work: 40.0, passed: 32.0 };
        gap.after.load = Load { work: 80.0, passed: 20.0 };
        // A quarter of what lies in the successor's part, and three quarters of what was passed on into it.
        let arrival = Rule::Successor.arrival(Position(125), &gap);
        assert_eq!(arrival.load(), Load { work: 15.0 + 24.0, passed: 24.0 });
        assert_eq!(arrival.parts.map(|part| part.unwrap().0), [15.0, 24.0]);
        let departure = Rule::Successor.departure(Position(125), arrival.load(), &gap);
        assert_eq!(departure.parts.map(|part| part.unwrap().0), [15.0, 24.0]);
        // On the ring without it, the gap behind it is all of the gap.
        let behind = between(neighbour(125, 100, 1.0), neighbour(200, 400, 1.0));
        let behind = behind.without(Rule::Successor, Position(125), arrival.load(), &gap);
        assert_eq!(behind.before.load, Load { work: 64.0, passed: 56.0 });
        assert_eq!(behind.after.load, Load { work: 95.0, passed: 20.0 });
    }

    #[test]
    fn who_has_no_room_goes_out_of_the_way_and_the_next_has_the_work_of_both() {
        let standing = |capacity: f64| Standing { work: 1.0, target: capacity / 2.0, capacity };
        let is_too_much = |standing: &Standing| standing.utilisation() > 1.0;
        let who = |capacities: [f64; 4], beyond_before: [f64; 2]| {
            let mut gap = gap();
            gap.after.load = Load::of(2.0);
            gap.after.standing = Some(standing(capacities[0]));
            gap.before.standing = Some(standing(10.0));
            for (at, capacity) in capacities[1..].iter().enumerate() {
                gap.beyond_after[at] = Some((3.0, standing(*capacity)));
            }
            for (at, capacity) in beyond_before.iter().enumerate() {
                gap.beyond_before[at] = Some((3.0, standing(*capacity)));
            }
            let going = Load { work: 150.0, passed: 50.0 };
            let exchange = Rule::Successor.departure(Position(125), going, &gap);
            let past = exchange.past(&gap, is_too_much);
            assert_eq!(past.load(), going);
            let parts = past.parts.map(|part| part.map(|(work, of)| (work, of.capacity)).unwrap());
            (parts, past.moves())
        };
        // There is room: nobody has to go, even if it were easier for another.
        assert_eq!(who([200.0, 900.0, 0.1, 0.1], [5.0, 5.0]).0[0], (100.0, 200.0));
        let found = who([30.0, 900.0, 9e3, 0.1], [100.0, 9e3]);
        assert_eq!(found, ([(102.0, 900.0), (50.0, 100.0)], 2));
        let found = who([30.0, 20.0, 900.0, 0.1], [5.0, 100.0]);
        assert_eq!(found, ([(105.0, 900.0), (50.0, 100.0)], 4));
        // Nobody has room: then nobody goes either.
        let found = who([30.0, 20.0, 40.0, 9.0], [5.0, 40.0]);
        assert_eq!(found, ([(100.0, 30.0), (50.0, 10.0)], 0));
    }

    #[test]
    fn one_alone_is_responsible_for_the_whole_ring() {
        let alone = neighbour(100, 100, 80.0);
        let gap = between(alone, alone);
        let exchange = Rule::Successor.arrival(Position(100 + (1 << 62)), &gap);
        assert_eq!(exchange.load().work, 20.0);
    }
}
