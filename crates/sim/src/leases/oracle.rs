//! Judges the lease world: who believes what at one moment, and whether that can be.
//!
//! A belief can only begin when its holder hears something. So that is when all of its beliefs are
//! judged beside everybody else's: whatever overlaps was judged when the later one began. What is used
//! is judged by itself each time, and everything now and then.

mod beliefs;

use std::{collections::BTreeMap, rc::Rc};

use base::{Duration, Instant};
use lease::{Kind, Knowledge};

use crate::{Broken, Checker, Node, World};

use super::{
    actor::{Note, Party, SERVER, client_of, node_of},
    place::{Leaf, Place},
    server::Server,
    tamper::Tamper,
    user::{BUNDLE_MAX, NEEDS_MAX, User},
};

/// Everything that must hold.
pub(crate) struct Oracle {
    place: Rc<Place>,
    /// Since when each request of each node waits.
    needs: Vec<BTreeMap<u64, Instant>>,
    /// Booleans that a client had when it lost everything. Until it may change them again, the grantor
    /// may still count them, or no longer.
    ghosts: Vec<Vec<bool>>,
    /// From here on nothing goes wrong any more.
    healed_at: Option<Instant>,
    /// Requests are answered within this, when nothing goes wrong.
    answer_max: Duration,
    steps: u64,
}

/// Everything is judged whenever this many nodes have acted.
const SWEEP: u64 = 256;

impl Oracle {
    pub(crate) fn new(place: Rc<Place>, nodes: usize, answer_max: Duration) -> Oracle {
        let ghosts = vec![vec![false; place.leaves.len()]; nodes];
        Oracle {
            place,
            needs: vec![BTreeMap::new(); nodes],
            ghosts,
            healed_at: None,
            answer_max,
            steps: 0,
        }
    }

    /// From now on requests must be answered in time.
    pub(crate) fn heal(&mut self, now: Instant) {
        self.healed_at = Some(now);
    }

    fn hear<T: Tamper>(
        &mut self,
        world: &World<Party<T>>,
        node: Node,
        note: &Note,
    ) -> Result<(), Broken> {
        let needs = &mut self.needs[node.index()];
        match note {
            Note::Heard => self.judge_beliefs(world, node),
            Note::Read(leaf, number) => self.judge_read(world, node, *leaf, *number),
            Note::Wrote(leaf) => self.judge_promise(world, node, *leaf, Kind::Write),
            Note::Set(leaf) => self.judge_others(world, *leaf),
            Note::Looked(leaf) => self.judge_looked(world, node, *leaf, false),
            Note::Needed(request) => {
                needs.insert(*request, world.now());
                Ok(())
            }
            Note::Met(request) | Note::Refused(request) => {
                needs.remove(request);
                Ok(())
            }
            Note::Abandoned(leaf, serial) => self.judge_abandoned(world, node, *leaf, *serial),
            Note::Lost(truths) => {
                self.haunt(node, truths);
                Ok(())
            }
            Note::Restarted(truths) => {
                needs.clear();
                self.haunt(node, truths);
                Ok(())
            }
            Note::Ended(client) => self.judge_beliefs(world, node_of(*client)),
            Note::DecidedAgain(client) => {
                let what = format!("{client:?} is granted again what it gave back, unasked");
                Err(Broken::new("one answer", what))
            }
        }
    }

    fn haunt(&mut self, node: Node, truths: &[Leaf]) {
        for leaf in truths {
            self.ghosts[node.index()][*leaf] = true;
        }
    }

    /// inv-L5: every want is answered in time.
    fn judge_needs(&self, now: Instant) -> Result<(), Broken> {
        let Some(healed_at) = self.healed_at else { return Ok(()) };
        for (node, needs) in self.needs.iter().enumerate() {
            for (request, asked_at) in needs {
                let waited = now.since((*asked_at).max(healed_at));
                if waited > self.answer_max {
                    let what = format!("n{node} has waited {waited:?} for request {request}");
                    return Err(Broken::new("inv-L5", what));
                }
            }
        }
        Ok(())
    }

    /// Nothing piles up.
    fn judge_load<T: Tamper>(&self, world: &World<Party<T>>) -> Result<(), Broken> {
        let users = self.needs.len() - 1;
        let scopes = self.place.leaves.len() + self.place.wides.len() + 2;
        let (leases, waiting) = server(world).load();
        // A lost client's booleans wait too, and a client may have forgotten as much as it wants.
        let waiting_max = users * (2 * NEEDS_MAX * BUNDLE_MAX + self.place.leaves.len());
        if leases > users * scopes * 2 || waiting > waiting_max {
            let what = format!("{leases} leases are out and {waiting} requests wait");
            return Err(Broken::new("bounded queues", what));
        }
        if world.pending() > PENDING_MAX {
            return Err(Broken::new("bounded queues", format!("{} events", world.pending())));
        }
        Ok(())
    }

    fn sweep<T: Tamper>(&mut self, world: &World<Party<T>>) -> Result<(), Broken> {
        for node in world.nodes().skip(1) {
            self.judge_beliefs(world, node)?;
        }
        self.judge_needs(world.now())?;
        self.judge_load(world)
    }

    /// When nothing is left to come, nobody waits and nobody is haunted.
    pub(crate) fn judge_end<T: Tamper>(&mut self, world: &World<Party<T>>) -> Result<(), Broken> {
        self.sweep(world)?;
        for node in world.nodes().skip(1) {
            let count = user(world, node).map_or(0, User::need_count);
            if count > 0 {
                return Err(Broken::new("inv-L5", format!("{node} waits for {count} requests")));
            }
        }
        let all_known = world.nodes().skip(1).all(|node| {
            user(world, node)
                .is_some_and(|user| server(world).book.is_current(client_of(node), user.session()))
        });
        if all_known {
            for node in world.nodes().skip(1) {
                for leaf in 0..self.place.leaves.len() {
                    self.judge_looked(world, node, leaf, true)?;
                }
            }
        }
        Ok(())
    }
}

/// Far more than any world of this size has in flight.
const PENDING_MAX: usize = 20_000;

impl<T: Tamper> Checker<Party<T>> for Oracle {
    fn check(&mut self, world: &World<Party<T>>, actor: Node) -> Result<(), Broken> {
        for note in world.notes() {
            self.hear(world, actor, note)?;
        }
        self.steps += 1;
        if self.steps.is_multiple_of(SWEEP) { self.sweep(world) } else { Ok(()) }
    }
}

fn server<T: Tamper>(world: &World<Party<T>>) -> &Server<T> {
    world.actor(SERVER).server().expect("the grantor's node has the grantor")
}

fn user<T: Tamper>(world: &World<Party<T>>, node: Node) -> Option<&User<T>> {
    world.actor(node).user()
}

/// Whether two clients may believe this of one leaf at the same moment.
fn may_coexist(one: Knowledge, other: Knowledge) -> bool {
    match (one, other) {
        (Knowledge::None, _) | (_, Knowledge::None) => true,
        (Knowledge::Reads, Knowledge::Reads) => true,
        (Knowledge::Writes, _) | (_, Knowledge::Writes) => false,
    }
}

/// The least promise that allows this belief.
fn promise(knowledge: Knowledge, place: &Place, leaf: Leaf) -> Option<Kind> {
    match knowledge {
        Knowledge::None => None,
        Knowledge::Reads => Some(Kind::Read),
        Knowledge::Writes => Some(place.change(leaf)),
    }
}
