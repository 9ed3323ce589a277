//! Judges the file world: while it runs by what is refused, afterwards by what was seen.

use std::collections::BTreeMap;

use base::FileId;
use directory::Sort;
use lease::Client;

use crate::{Broken, Checker, Node, World};

use super::{
    actor::{Note, Party, SERVER, client_of},
    history::{Deed, History},
    tamper::Tamper,
    witness::Witness,
};

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    history: History,
    /// Which life a client's session belongs to.
    lives: BTreeMap<(Client, u64), u32>,
}

impl<T: Tamper> Checker<Party<T>> for Oracle {
    fn check(&mut self, world: &World<Party<T>>, node: Node) -> Result<(), Broken> {
        for note in world.notes() {
            match note.clone() {
                Note::Did { life, program, tag, actor, step, outcome } => {
                    let client = client_of(node);
                    self.history.did(Deed { client, life, program, tag, actor, step, outcome });
                }
                Note::Lives { life, session } => {
                    self.lives.insert((client_of(node), session), life);
                }
                Note::Applied { tags } => self.history.applied(&tags),
                Note::Ended { client, session } => {
                    if let Some(life) = self.lives.get(&(client, session)) {
                        self.history.ended(client, *life);
                    }
                }
                Note::Refused { client, what, why } => {
                    // Whoever saw something that was not so may well be refused later.
                    Witness::replay(&self.history)?;
                    let what = format!("{client:?} did {what:?} under leases: {why:?}");
                    return Err(Broken::new("never refused", what));
                }
                Note::Unreadable(why) => return Err(Broken::new("log", why)),
            }
        }
        Ok(())
    }
}

impl Oracle {
    /// After all is quiet: everybody has an answer, the tree is sound, and all that was seen is so.
    /// Answers how many outcomes were compared.
    pub(crate) fn judge_end<T: Tamper>(&self, world: &World<Party<T>>) -> Result<u64, Broken> {
        for node in world.nodes() {
            if let Some(step) = world.actor(node).desk().and_then(|desk| desk.is_waiting()) {
                let what = format!("{node} still waits for {step:?}");
                return Err(Broken::new("progress", what));
            }
        }
        let server = world.actor(SERVER).server().expect("the first node is the group");
        let directory = server.node().directory();
        directory.check().map_err(|what| Broken::new("inv-N", what))?;
        let witness = Witness::replay(&self.history)?;
        witness.files().check().map_err(|what| Broken::new("reference", what))?;
        compare(directory, &witness)?;
        Ok(witness.compared)
    }
}

/// The group's tree is the reference's.
fn compare(directory: &directory::Directory, witness: &Witness) -> Result<(), Broken> {
    let differs = |what: String| Err(Broken::new("inv-N1", what));
    let mut todo = vec![FileId::ROOT];
    let root = crate::reference::Actor::root();
    while let Some(at) = todo.pop() {
        let Some(ino) = witness.ino(&at) else {
            return differs(format!("the group has a directory {at} that nobody made"));
        };
        let entries = directory.names(&at).expect("every record is at hand");
        let names: Vec<(Vec<u8>, FileId)> = entries
            .iter()
            .map(|(name, entry)| (name.as_bytes().to_vec(), entry.file.clone()))
            .collect();
        let listed = witness.files().readdir(&root, ino).map_err(|errno| {
            Broken::new("inv-N1", format!("the reference has no directory {at}: {errno:?}"))
        })?;
        let mut expected: Vec<(Vec<u8>, _)> = listed
            .into_iter()
            .filter(|entry| entry.name != b"." && entry.name != b"..")
            .map(|entry| (entry.name, entry.ino))
            .collect();
        expected.sort();
        let found: Vec<(Vec<u8>, _)> = names
            .iter()
            .map(|(name, file)| {
                (name.clone(), witness.ino(file).unwrap_or(crate::reference::Ino(0)))
            })
            .collect();
        if found != expected {
            return differs(format!("in {at} the group has {names:?}, expected {expected:?}"));
        }
        todo.extend(
            entries
                .into_iter()
                .filter(|(_, entry)| entry.sort == Sort::Directory)
                .map(|(_, entry)| entry.file),
        );
    }
    Ok(())
}
