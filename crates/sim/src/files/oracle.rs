//! Judges the file world: while it runs by what is refused, afterwards by what was seen.

use std::collections::BTreeMap;

use lease::Client;

use crate::{Broken, Checker, Node, World};

use super::{
    actor::{Note, Party, client_of},
    ending,
    history::{Deed, History},
    member::Member,
    tamper::Tamper,
    witness::{Space, Witness},
};

#[derive(Debug)]
pub(crate) struct Oracle {
    history: History,
    /// Which life a client's session belongs to.
    lives: BTreeMap<(Client, u64), u32>,
    space: Space,
    /// Whether nothing goes wrong, or has for long enough: then no session may be lost.
    is_calm: bool,
}

impl<T: Tamper> Checker<Party<T>> for Oracle {
    fn check(&mut self, world: &World<Party<T>>, node: Node) -> Result<(), Broken> {
        for note in world.notes() {
            match note.clone() {
                Note::Did { life, program, tag, actor, step, outcome } => {
                    let client = client_of(node);
                    self.history.did(Deed { client, life, program, tag, actor, step, outcome });
                }
                Note::Needless { step, outcome } => {
                    let what = format!("{node} was told {outcome:?} of {step:?} for no reason");
                    return Err(Broken::new("needless failure", what));
                }
                Note::Closing { life, handle } => {
                    self.history.closing(client_of(node), life, handle);
                }
                Note::Bereft if self.is_calm => {
                    let what = format!("{node} has lost its session for no reason");
                    return Err(Broken::new("needless loss", what));
                }
                Note::Bereft => {}
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
                    self.replay()?;
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
    pub(crate) fn new(space: Space, is_calm: bool) -> Oracle {
        Oracle { history: History::default(), lives: BTreeMap::new(), space, is_calm }
    }

    /// From now on nothing goes wrong.
    pub(crate) fn calm(&mut self) {
        self.is_calm = true;
    }

    /// After all is quiet: everybody has an answer, a quorum has come to the same sound tree, their logs say
    /// the same, and all that was seen is so.
    /// Answers how many outcomes were compared.
    pub(crate) fn judge_end<T: Tamper>(&mut self, world: &World<Party<T>>) -> Result<u64, Broken> {
        self.leave_lives();
        for node in world.nodes() {
            if let Some(step) = world.actor(node).desk().and_then(|desk| desk.is_waiting()) {
                let what = format!("{node} still waits for {step:?}");
                return Err(Broken::new("progress", what));
            }
        }
        let members = world.nodes().filter_map(|node| world.actor(node).member());
        let (members, liars): (Vec<_>, Vec<_>) = members.partition(|member| member.is_honest());
        let height = |member: &&Member<T>| member.product().height();
        let last = members.iter().max_by_key(|member| height(member)).expect("there are members");
        let (digest, records) = last.state();
        let mut equal = 0;
        for member in members.iter().filter(|member| height(member) == height(last)) {
            let directory = member.product().directory();
            directory.check().map_err(|what| Broken::new("inv-N", what))?;
            if directory.digest() != digest {
                let what = format!("members differ after {} decisions", height(last));
                return Err(Broken::new("inv-B3", what));
            }
            equal += 1;
        }
        let quorum = last.product().replica().members().quorum();
        if equal + liars.len() < quorum {
            let what = format!("only {equal} members know all decisions");
            return Err(Broken::new("inv-B5", what));
        }
        let witness = self.replay()?;
        witness.files().check().map_err(|what| Broken::new("reference", what))?;
        for member in members.iter().filter(|member| height(member) == height(last)) {
            let Some(read) = member.reread() else { continue };
            let (reached, read) = read.map_err(|what| Broken::new("log", what))?;
            // Of several members a quorum has a decision safe; whoever is alone has it itself.
            let is_due = reached == height(last) || members.len() == 1;
            if is_due && read != digest {
                return Err(Broken::new("log", "it does not say what the group has become"));
            }
        }
        ending::compare(&records, &witness)?;
        Ok(witness.compared)
    }

    /// The group may not have heard of a client's last life, if there was nothing to say in it.
    fn leave_lives(&mut self) {
        let mut last: BTreeMap<Client, u32> = BTreeMap::new();
        for ((client, _), life) in &self.lives {
            let last = last.entry(*client).or_default();
            *last = (*life).max(*last);
        }
        for ((client, _), life) in &self.lives {
            if *life < last[client] {
                self.history.left(*client, *life);
            }
        }
    }

    fn replay(&self) -> Result<Witness, Broken> {
        Witness::replay(&self.history, self.space)
    }
}
