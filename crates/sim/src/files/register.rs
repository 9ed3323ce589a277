//! What the group was asked to do, for the checkers.

use std::collections::{BTreeMap, BTreeSet};

use directory::{
    Operation,
    directory::Standing,
    message::{Answer, Response},
};
use lease::Client;

use crate::Outbox;

use super::{
    actor::{Note, Party},
    tamper::Tamper,
};

/// What the checkers want to know of what a group applies.
#[derive(Debug, Default)]
pub(crate) struct Register {
    /// The batches that were given a place, by client, session and number.
    batches: BTreeMap<(Client, u64, u64), Vec<Operation>>,
    /// The session of each client, and how many of its batches were applied.
    sessions: BTreeMap<Client, (u64, u64)>,
    /// The sessions that have ended.
    ended: BTreeSet<(Client, u64)>,
}

impl Register {
    /// Remembers a batch that may be applied.
    pub(crate) fn file(
        &mut self,
        client: Client,
        session: u64,
        number: u64,
        operations: Vec<Operation>,
    ) {
        self.batches.insert((client, session, number), operations);
    }

    /// Tells the checkers of refusals, and of what was applied, also if its session has ended since.
    pub(crate) fn heed<T: Tamper>(&self, client: Client, bytes: &[u8], out: &mut Outbox<Party<T>>) {
        if let Ok(response) = wire::decode::<Response>(bytes)
            && let Some(Answer::Applied { number, refused }) = response.answer
        {
            let batch = self.batches.get(&(client, response.lease.session, number));
            match refused {
                Some((index, why)) => {
                    let what = batch.and_then(|batch| batch.get(index as usize)).cloned();
                    out.note(Note::Refused { client, what, why });
                }
                None => {
                    let tags = batch.into_iter().flatten().map(|operation| operation.time);
                    out.note(Note::Applied { tags: tags.collect() });
                }
            }
        }
    }

    /// Tells the checkers which batches have been applied and which sessions have ended.
    pub(crate) fn notice<T: Tamper>(
        &mut self,
        clients: impl Iterator<Item = (Client, Standing)>,
        out: &mut Outbox<Party<T>>,
    ) {
        for (client, standing) in clients {
            let Standing { session, batch, is_live } = standing;
            let known = self.sessions.insert(client, (session, batch));
            if let Some((before, _)) = known.filter(|(before, _)| *before != session)
                && self.ended.insert((client, before))
            {
                out.note(Note::Ended { client, session: before });
            }
            let first = known.filter(|(before, _)| *before == session).map_or(0, |(_, n)| n) + 1;
            for number in first..=batch {
                let batch = self.batches.get(&(client, session, number));
                let tags = batch.into_iter().flatten().map(|operation| operation.time).collect();
                out.note(Note::Applied { tags });
            }
            if !is_live && self.ended.insert((client, session)) {
                out.note(Note::Ended { client, session });
            }
        }
    }
}
