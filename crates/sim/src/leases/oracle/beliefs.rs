//! What clients believe at one moment of the world, each by its own clock.

use lease::{Kind, Knowledge};

use crate::{Broken, Node, World};

use super::{Oracle, may_coexist, promise, server, user};
use crate::leases::{
    actor::{Party, SERVER, client_of},
    place::Leaf,
    tamper::Tamper,
};

impl Oracle {
    /// Judges all that a client believes now.
    pub(super) fn judge_beliefs<T: Tamper>(
        &mut self,
        world: &World<Party<T>>,
        node: Node,
    ) -> Result<(), Broken> {
        for leaf in 0..self.place.leaves.len() {
            self.judge_belief(world, node, leaf)?;
        }
        Ok(())
    }

    /// inv-L1: no two clients believe what can't both be; inv-L4: nobody believes what the grantor no
    /// longer promises.
    pub(super) fn judge_belief<T: Tamper>(
        &mut self,
        world: &World<Party<T>>,
        node: Node,
        leaf: Leaf,
    ) -> Result<(), Broken> {
        let Some(user) = user(world, node) else { return Ok(()) };
        let knowledge = user.knows(world.local(node), leaf);
        let is_disjunctive = self.place.is_disjunctive(leaf);
        if let Some(kind) = promise(knowledge, &self.place, leaf) {
            if is_disjunctive {
                self.ghosts[node.index()][leaf] = false;
            } else {
                self.judge_pair(world, node, leaf, knowledge)?;
            }
            self.judge_promise(world, node, leaf, kind)?;
        }
        if is_disjunctive { self.judge_looked(world, node, leaf, false) } else { Ok(()) }
    }

    /// inv-L4, for one belief.
    pub(super) fn judge_promise<T: Tamper>(
        &self,
        world: &World<Party<T>>,
        node: Node,
        leaf: Leaf,
        kind: Kind,
    ) -> Result<(), Broken> {
        let scope = &self.place.leaves[leaf];
        let now = world.local(SERVER);
        match server(world).book.promises(now, client_of(node), scope, kind, None) {
            true => Ok(()),
            false => {
                let what = format!("{node} believes {kind:?} of {scope}, which is not promised");
                Err(Broken::new("inv-L4", what))
            }
        }
    }

    fn judge_pair<T: Tamper>(
        &self,
        world: &World<Party<T>>,
        node: Node,
        leaf: Leaf,
        knowledge: Knowledge,
    ) -> Result<(), Broken> {
        for other in world.nodes().filter(|other| *other != node) {
            let Some(theirs) = user(world, other) else { continue };
            let theirs = theirs.knows(world.local(other), leaf);
            if !may_coexist(knowledge, theirs) {
                let scope = &self.place.leaves[leaf];
                let what = format!("{node} {knowledge:?} {scope}, {other} {theirs:?} it");
                return Err(Broken::new("inv-L1", what));
            }
        }
        Ok(())
    }

    /// inv-L1 by value: what is read is what was last written.
    pub(super) fn judge_read<T: Tamper>(
        &mut self,
        world: &World<Party<T>>,
        node: Node,
        leaf: Leaf,
        number: u64,
    ) -> Result<(), Broken> {
        self.judge_promise(world, node, leaf, Kind::Read)?;
        let written = server(world).registers[leaf].number;
        match written == number {
            true => Ok(()),
            false => {
                let scope = &self.place.leaves[leaf];
                let what = format!("{node} reads {number:x} in {scope}, which is {written:x}");
                Err(Broken::new("inv-L1", what))
            }
        }
    }

    /// Judges everybody who looks at this leaf, because somebody's boolean has changed.
    pub(super) fn judge_others<T: Tamper>(
        &mut self,
        world: &World<Party<T>>,
        leaf: Leaf,
    ) -> Result<(), Broken> {
        for node in world.nodes() {
            self.judge_looked(world, node, leaf, false)?;
        }
        Ok(())
    }

    /// inv-L3: what a client believes of the others' booleans is the OR of what they are. One who has
    /// lost everything may count or not, unless that is settled by now.
    pub(super) fn judge_looked<T: Tamper>(
        &mut self,
        world: &World<Party<T>>,
        node: Node,
        leaf: Leaf,
        is_settled: bool,
    ) -> Result<(), Broken> {
        if !self.place.is_disjunctive(leaf) {
            return Ok(());
        }
        let Some(user) = user(world, node) else { return Ok(()) };
        let Some(believed) = user.knows_others(world.local(node), leaf) else { return Ok(()) };
        self.judge_promise(world, node, leaf, Kind::OtherRead)?;
        let (mut may_be_true, mut must_be_true) = (false, false);
        for other in world.nodes().filter(|other| *other != node) {
            let Some(theirs) = super::user(world, other) else { continue };
            let is_alive = server(world).book.is_alive(client_of(other));
            let is_true = theirs.own(leaf);
            must_be_true |= is_true && is_alive;
            may_be_true |= is_true || (self.ghosts[other.index()][leaf] && !is_settled);
        }
        let is_right = if believed { may_be_true } else { !must_be_true };
        match is_right {
            true => Ok(()),
            false => {
                let scope = &self.place.leaves[leaf];
                let what = format!("{node} believes the others' {scope} to be {believed}");
                Err(Broken::new("inv-L3", what))
            }
        }
    }

    /// inv-L6: no change is lost by giving back its lease.
    pub(super) fn judge_abandoned<T: Tamper>(
        &self,
        world: &World<Party<T>>,
        node: Node,
        leaf: Leaf,
        serial: u64,
    ) -> Result<(), Broken> {
        let book = &server(world).book;
        let (client, scope) = (client_of(node), &self.place.leaves[leaf]);
        // Another lease may stand for the change.
        let now = world.local(SERVER);
        let is_covered = book.promises(now, client, scope, Kind::Write, Some(serial));
        if is_covered || !book.is_alive(client) {
            return Ok(());
        }
        let what = format!("{node} gives back lease {serial} with {scope} changed and not pushed");
        Err(Broken::new("inv-L6", what))
    }
}
