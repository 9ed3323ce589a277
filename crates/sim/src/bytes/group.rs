//! The group's node: a directory that does all that it is told, at once and for ever.

use std::collections::BTreeMap;

use base::Instant;
use directory::{Command, Directory, Settings, directory::Standing};
use lease::Client;

use crate::Node;

use super::{
    actor::{Letter, Note, Out, client_of, decode, node_of},
    tamper::Tamper,
};

pub(crate) struct Group {
    directory: Directory,
    /// The session of each client, while it goes on.
    sessions: BTreeMap<Client, u64>,
}

impl Group {
    pub(crate) fn new(settings: Settings) -> Group {
        Group { directory: Directory::new(settings, Instant::START), sessions: BTreeMap::new() }
    }

    pub(crate) fn deliver<T: Tamper>(
        &mut self,
        now: Instant,
        from: Node,
        letter: Letter,
        out: &mut Out<T>,
    ) {
        if let Letter::Upward(bytes) = letter
            && let Some(request) = decode(&bytes)
        {
            let client = client_of(from);
            self.apply(now, &Command::Heard { client, request }, out);
        }
    }

    pub(crate) fn wake<T: Tamper>(&mut self, now: Instant, out: &mut Out<T>) {
        self.apply(now, &Command::Tick, out);
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.directory.wake_at()
    }

    fn apply<T: Tamper>(&mut self, now: Instant, command: &Command, out: &mut Out<T>) {
        let mut said = Vec::new();
        self.directory.apply(now, command, &mut said).expect("every record is at hand");
        for (client, Standing { session, is_live, .. }) in self.directory.clients() {
            let before = self.sessions.get(&client).copied();
            match is_live {
                true => self.sessions.insert(client, session),
                false => self.sessions.remove(&client),
            };
            if before.is_some_and(|before| before != session || !is_live) {
                out.note(Note::Ended(client));
            }
        }
        for (client, response) in said {
            let bytes = base::encode(&response);
            out.send(node_of(client), Letter::Downward(bytes));
        }
    }
}
