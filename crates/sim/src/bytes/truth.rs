//! What is in a file: what everybody sees, what may be lost with a session, and what is nobody's any more.

use std::collections::{BTreeMap, BTreeSet};

use crate::Node;

/// The bytes of one file.
///
/// They are what the last who wrote them has made of them. What that machine has done since the others last saw the
/// file, or since it was told that all is safe, can be lost with its session: then they may be found to be any of
/// those states, and so they may be found once more by that machine, unless somebody else has changed them.
#[derive(Debug)]
pub(crate) struct Truth {
    /// States, the oldest first. At least one; the last is what there is.
    line: Vec<Vec<u8>>,
    /// The number of the first.
    first: u64,
    /// Whose the states after the first are.
    owner: Option<Node>,
    /// The owner has lost its session since, so that it may be any of them.
    is_loose: bool,
    /// The owner was killed: what there is it may have had on its disk, or somebody else in memory.
    is_shaken: bool,
    /// What was overtaken by others, and whether it has to be kept aside: not if it may be that they had it.
    forks: Vec<(Node, Vec<u8>, bool)>,
    /// What was kept aside, though nobody may have overtaken it.
    asides: Vec<(Node, Vec<u8>)>,
    /// Which state somebody makes safe, and whether it was overtaken meanwhile.
    tickets: BTreeMap<u64, (Node, u64, bool)>,
    /// How large the file was since somebody asked.
    sizes: BTreeMap<u64, BTreeSet<u64>>,
    /// What was done to it.
    tags: BTreeSet<u64>,
}

impl Default for Truth {
    fn default() -> Truth {
        Truth {
            line: vec![Vec::new()],
            first: 0,
            owner: None,
            is_loose: false,
            is_shaken: false,
            forks: Vec::new(),
            asides: Vec::new(),
            tickets: BTreeMap::new(),
            sizes: BTreeMap::new(),
            tags: BTreeSet::new(),
        }
    }
}

impl Truth {
    fn last(&self) -> &Vec<u8> {
        self.line.last().expect("there is always a state")
    }

    fn fork_of(&mut self, node: Node, bytes: &[u8]) -> Option<&mut Vec<u8>> {
        let fork = self.forks.iter_mut().find(|(owner, fork, _)| *owner == node && fork == bytes);
        fork.map(|(_, fork, _)| fork)
    }

    /// A machine finds these bytes. `is_home` says that its kernel reads and writes them by itself.
    pub(crate) fn observe(
        &mut self,
        node: Node,
        bytes: &[u8],
        is_home: bool,
    ) -> Result<(), String> {
        if self.is_shaken || is_home && self.fork_of(node, bytes).is_some() {
            return Ok(());
        }
        if !self.is_loose {
            if self.last() != bytes {
                return Err(format!("{bytes:?} in place of {:?}", self.last()));
            }
            if self.owner != Some(node) {
                self.settle(self.line.len() - 1);
            }
            return Ok(());
        }
        let Some(at) = self.line.iter().rposition(|state| state == bytes) else {
            return Err(format!("{bytes:?}, which is none of {:?}", self.line));
        };
        match self.owner == Some(node) {
            // It need not have heard yet.
            true if is_home => {}
            true => {
                self.line.truncate(at + 1);
                self.is_loose = false;
            }
            false => self.settle(at),
        }
        self.resize();
        Ok(())
    }

    /// Others know this state, or it is safe: nothing before it comes back.
    fn settle(&mut self, at: usize) {
        self.line.drain(..at);
        self.first += at as u64;
        if self.line.len() == 1 {
            (self.owner, self.is_loose) = (None, false);
        }
    }

    /// What may be found of it, somebody may be told the size of.
    fn resize(&mut self) {
        let states = if self.is_loose { &self.line[..] } else { &self.line[self.line.len() - 1..] };
        let forks = self.forks.iter().map(|(_, fork, _)| fork);
        let sizes: BTreeSet<u64> = states.iter().chain(forks).map(|s| s.len() as u64).collect();
        for known in self.sizes.values_mut() {
            known.extend(&sizes);
        }
    }

    /// What an owner has that nobody will ever find again is nobody's.
    fn overtake(&mut self, by: Node, is_certain: bool) {
        let Some(owner) = self.owner.filter(|owner| *owner != by && self.is_loose) else { return };
        let last = self.last().clone();
        let is_kept = self.asides.iter().any(|(node, bytes)| *node == owner && *bytes == last);
        self.forks.push((owner, last, is_certain && !is_kept));
        for (node, number, is_lost) in self.tickets.values_mut() {
            *is_lost |= is_certain && *node == owner && *number > self.first;
        }
    }

    /// A machine has made something else of these bytes, by a deed that is done once.
    pub(crate) fn write(
        &mut self,
        node: Node,
        tag: u64,
        (before, after): (&[u8], &[u8]),
        is_home: bool,
    ) -> Result<(), String> {
        if !self.tags.insert(tag) {
            return Err("what was asked for once is done twice".to_owned());
        }
        if is_home && let Some(fork) = self.fork_of(node, before) {
            *fork = after.to_vec();
            self.resize();
            return Ok(());
        }
        if self.is_shaken {
            self.begin(node, vec![before.to_vec(), after.to_vec()]);
            return Ok(());
        }
        self.observe(node, before, is_home)?;
        self.overtake(node, true);
        self.push(node, after.to_vec());
        Ok(())
    }

    /// A machine has put nothing in its place.
    pub(crate) fn empty(&mut self, node: Node) {
        self.overtake(node, false);
        // Else nobody knows what was there before.
        if !self.is_shaken {
            self.push(node, Vec::new());
        }
    }

    fn push(&mut self, node: Node, after: Vec<u8>) {
        if self.owner == Some(node) {
            // At home it goes on without having heard.
            self.line.push(after);
        } else {
            let before = if self.is_loose { self.line[0].clone() } else { self.last().clone() };
            self.begin(node, vec![before, after]);
        }
        self.resize();
    }

    fn begin(&mut self, node: Node, line: Vec<Vec<u8>>) {
        self.first += self.line.len() as u64;
        self.asides.clear();
        (self.line, self.owner) = (line, Some(node));
        (self.is_loose, self.is_shaken) = (false, false);
        self.resize();
    }

    /// A machine has lost its session, or the group has ended it.
    pub(crate) fn lose(&mut self, node: Node) {
        if self.owner == Some(node) && self.line.len() > 1 {
            self.is_loose = true;
            self.resize();
        }
    }

    /// A machine was killed.
    pub(crate) fn kill(&mut self, node: Node) {
        if self.owner == Some(node) && self.line.len() > 1 {
            self.is_shaken = true;
        }
        self.forks.retain(|(owner, ..)| *owner != node);
        self.tickets.retain(|_, (owner, ..)| *owner != node);
    }

    /// These bytes were kept aside.
    pub(crate) fn keep_aside(&mut self, node: Node, bytes: &[u8]) {
        self.forks.retain(|(owner, fork, _)| *owner != node || fork != bytes);
        if self.owner == Some(node) && self.is_loose {
            self.asides.push((node, bytes.to_vec()));
        }
    }

    /// A machine makes safe what is there.
    pub(crate) fn begin_sync(&mut self, node: Node, ticket: u64) {
        if self.owner == Some(node) && !self.is_shaken {
            let number = self.first + self.line.len() as u64 - 1;
            self.tickets.insert(ticket, (node, number, false));
        }
    }

    /// And has heard that it is.
    pub(crate) fn sync(&mut self, node: Node, ticket: u64) -> Result<(), String> {
        let Some((_, number, is_lost)) = self.tickets.remove(&ticket) else { return Ok(()) };
        if is_lost {
            return Err("what others have overtaken is said to be safe".to_owned());
        }
        if self.owner == Some(node) && number > self.first && !self.is_shaken {
            let at = ((number - self.first) as usize).min(self.line.len() - 1);
            self.settle(at);
        }
        Ok(())
    }

    /// Somebody asks how large it is.
    pub(crate) fn begin_size(&mut self, ticket: u64) {
        self.sizes.insert(ticket, BTreeSet::new());
        self.resize();
    }

    /// And is told.
    pub(crate) fn size(&mut self, ticket: u64, size: u64) -> Result<(), String> {
        let sizes = self.sizes.remove(&ticket).unwrap_or_default();
        match self.is_shaken || sizes.contains(&size) {
            true => Ok(()),
            false => Err(format!("a size of {size}, and it was {sizes:?}")),
        }
    }

    /// What was overtaken and is not kept aside yet.
    pub(crate) fn owed(&self) -> impl Iterator<Item = (Node, &[u8])> {
        let owed = self.forks.iter().filter(|(.., is_owed)| *is_owed);
        owed.map(|(node, fork, _)| (*node, fork.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Node = Node(1);
    const BOB: Node = Node(2);

    fn written(states: &[&[u8]]) -> Truth {
        let mut truth = Truth::default();
        let mut before: &[u8] = &[];
        for (tag, after) in states.iter().enumerate() {
            truth.write(ANN, tag as u64, (before, after), false).unwrap();
            before = after;
        }
        truth
    }

    #[test]
    fn others_see_the_last_that_was_written() {
        let mut truth = written(&[b"a", b"b"]);
        assert!(truth.observe(BOB, b"a", false).is_err());
        assert!(truth.observe(BOB, b"b", false).is_ok());
    }

    #[test]
    fn whoever_writes_what_they_did_not_see_is_found_out() {
        let mut truth = written(&[b"a", b"b"]);
        assert!(truth.write(BOB, 9, (b"a", b"ac"), false).is_err());
    }

    #[test]
    fn what_a_lost_session_had_may_be_gone_and_come_back_until_somebody_writes() {
        let mut truth = written(&[b"a", b"b"]);
        truth.lose(ANN);
        assert!(truth.observe(BOB, b"a", false).is_ok());
        assert!(truth.observe(BOB, b"", false).is_err(), "that was before");
        assert!(truth.observe(ANN, b"b", false).is_ok(), "it is told again");
        assert!(truth.observe(BOB, b"a", false).is_err());
    }

    #[test]
    fn what_is_overtaken_has_to_be_kept_aside() {
        let mut truth = written(&[b"a", b"b"]);
        truth.lose(ANN);
        truth.write(BOB, 9, (b"a", b"c"), false).unwrap();
        assert!(truth.observe(ANN, b"b", false).is_err());
        assert_eq!(truth.owed().count(), 1);
        truth.keep_aside(ANN, b"b");
        assert_eq!(truth.owed().count(), 0);
    }

    #[test]
    fn what_is_safe_does_not_go_with_a_session() {
        let mut truth = written(&[b"a", b"b"]);
        truth.begin_sync(ANN, 1);
        truth.sync(ANN, 1).unwrap();
        truth.lose(ANN);
        assert!(truth.observe(BOB, b"a", false).is_err());
    }

    #[test]
    fn what_was_overtaken_is_not_safe() {
        let mut truth = written(&[b"a", b"b"]);
        truth.begin_sync(ANN, 1);
        truth.lose(ANN);
        truth.write(BOB, 9, (b"", b"c"), false).unwrap();
        assert!(truth.sync(ANN, 1).is_err());
    }

    #[test]
    fn nothing_is_done_twice() {
        let mut truth = written(&[b"a"]);
        assert!(truth.write(ANN, 0, (b"a", b"aa"), true).is_err());
    }

    #[test]
    fn a_size_is_one_that_the_file_had_since_somebody_asked() {
        let mut truth = written(&[b"a"]);
        truth.begin_size(1);
        truth.write(ANN, 9, (b"a", b"abc"), false).unwrap();
        truth.begin_size(2);
        assert!(truth.size(1, 1).is_ok() && truth.size(2, 1).is_err());
    }
}
