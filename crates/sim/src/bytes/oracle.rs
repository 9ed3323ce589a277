//! Judges the world of bytes.

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;

use crate::{Broken, Checker, Node, World};

use super::{
    actor::{Note, Party, node_of},
    tamper::Tamper,
    truth::Truth,
};

/// Everything that must hold.
#[derive(Default)]
pub(crate) struct Oracle {
    truths: BTreeMap<FileId, Truth>,
    /// Who is home of which file, and whether it has lost its session since.
    homes: BTreeMap<FileId, BTreeMap<Node, bool>>,
    /// How much was judged.
    pub(crate) judged: u64,
}

impl Oracle {
    fn hear(&mut self, node: Node, note: &Note) -> Result<(), Broken> {
        let broken = |invariant, file: &FileId| {
            let file = file.clone();
            move |what: String| Broken::new(invariant, format!("{node} finds in {file}: {what}"))
        };
        match note {
            Note::Read { file, is_home, bytes } => {
                self.judged += 1;
                let truth = self.truths.entry(file.clone()).or_default();
                truth.observe(node, bytes, *is_home).map_err(broken("inv-B1", file))
            }
            Note::Wrote { file, is_home, tag, before, after } => {
                self.judged += 1;
                let truth = self.truths.entry(file.clone()).or_default();
                let change = (before.as_slice(), after.as_slice());
                truth.write(node, *tag, change, *is_home).map_err(broken("inv-B2", file))
            }
            Note::Emptied { file } => {
                self.truths.entry(file.clone()).or_default().empty(node);
                Ok(())
            }
            Note::Sizing { file, ticket } => {
                self.truths.entry(file.clone()).or_default().begin_size(*ticket);
                Ok(())
            }
            Note::Sized { file, ticket, size } => {
                self.judged += 1;
                let truth = self.truths.entry(file.clone()).or_default();
                truth.size(*ticket, *size).map_err(broken("inv-B3", file))
            }
            Note::Syncing { file, ticket } => {
                self.truths.entry(file.clone()).or_default().begin_sync(node, *ticket);
                Ok(())
            }
            Note::Synced { file, ticket } => {
                let truth = self.truths.entry(file.clone()).or_default();
                truth.sync(node, *ticket).map_err(broken("inv-B4", file))
            }
            Note::Aside { file, bytes } => {
                self.truths.entry(file.clone()).or_default().keep_aside(node, bytes);
                Ok(())
            }
            Note::Home { file, is_home: true } => {
                let homes = self.homes.entry(file.clone()).or_default();
                homes.insert(node, false);
                let sound: Vec<_> = homes.iter().filter(|(_, is_bereft)| !**is_bereft).collect();
                match sound.len() {
                    0 | 1 => Ok(()),
                    _ => Err(Broken::new("inv-B5", format!("{file} has homes {sound:?}"))),
                }
            }
            Note::Home { file, is_home: false } => {
                self.homes.entry(file.clone()).or_default().remove(&node);
                Ok(())
            }
            Note::Bereft => {
                self.lose(node);
                Ok(())
            }
            Note::Ended(client) => {
                self.lose(node_of(*client));
                Ok(())
            }
            Note::Restarted => {
                self.truths.values_mut().for_each(|truth| truth.kill(node));
                self.homes.values_mut().for_each(|homes| _ = homes.remove(&node));
                Ok(())
            }
        }
    }

    fn lose(&mut self, node: Node) {
        self.truths.values_mut().for_each(|truth| truth.lose(node));
        for homes in self.homes.values_mut() {
            if let Some(is_bereft) = homes.get_mut(&node) {
                *is_bereft = true;
            }
        }
    }

    /// When nothing is left to come, nothing is open and nothing is lost silently.
    pub(crate) fn judge_end<T: Tamper>(&self, world: &World<Party<T>>) -> Result<(), Broken> {
        for node in world.nodes() {
            let Some(machine) = world.actor(node).machine() else { continue };
            let open: BTreeSet<_> = machine.house().state().opens.keys().cloned().collect();
            if !open.is_empty() {
                return Err(Broken::new("inv-B6", format!("{node} has {open:?} open")));
            }
        }
        for (file, truth) in &self.truths {
            if let Some((node, bytes)) = truth.owed().next() {
                let what = format!("{bytes:?} of {file} on {node} is nowhere");
                return Err(Broken::new("inv-B7", what));
            }
        }
        Ok(())
    }
}

impl<T: Tamper> Checker<Party<T>> for Oracle {
    fn check(&mut self, world: &World<Party<T>>, actor: Node) -> Result<(), Broken> {
        world.notes().iter().try_for_each(|note| self.hear(actor, note))
    }
}
