//! Says where this machine is and for whom it acts, when it has started: the group has to know, and whoever else may
//! look for it. Whoever has no vote learns so for whom the group lets it act.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc::SyncSender},
    thread,
    time::Duration,
};

use base::PublicKey;
use node::mailroom::Kind;
use wire::{Answer, Join, Query};

use crate::{Neighbours, mailbox::Mailbox, net::Lookout};

use super::Post;

/// How long one machine is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Before those are asked again who have not answered.
const PAUSE: Duration = Duration::from_secs(5);
/// The most machines that are told besides the members.
const OTHERS_MAX: usize = 64;

/// Tells the members until enough of them have heard it that one of them is honest, and others once. It ends with
/// the network.
pub(super) fn announce(
    lookout: Lookout,
    neighbours: Arc<Neighbours>,
    inbox: Arc<Mailbox<Post>>,
    join: Join,
    reply: Option<SyncSender<Answer>>,
) {
    let me = *join.certificate.machine();
    let query = wire::encode(&Query::Join(Box::new(join)));
    thread::spawn(move || {
        let mut said = String::new();
        let mut others = neighbours.keys();
        others.truncate(OTHERS_MAX);
        loop {
            // They may be others by now.
            let members = neighbours.members();
            let tell = |key: &PublicKey| lookout.ask(key, query.clone(), PATIENCE);
            let mut count = 0;
            let mut said_users = BTreeMap::<_, usize>::new();
            let enough = members.len().saturating_sub(1) / 3 + 1;
            for member in members.iter().filter(|member| **member != me) {
                match tell(member).map(|bytes| wire::decode(&bytes)) {
                    Some(Ok(Answer::Joined(ticket))) => {
                        count += 1;
                        let same = said_users.entry(ticket.users.clone()).or_default();
                        *same += 1;
                        if *same == enough {
                            inbox.post(Kind::Word, Post::Served { ticket, reply: reply.clone() });
                        }
                    }
                    Some(Ok(Answer::Refused(why))) if why != said => {
                        eprintln!("croft: {member:?} does not note where this machine is: {why}");
                        said = why;
                    }
                    _ => {}
                }
            }
            for other in others.drain(..).filter(|key| !members.contains(key)) {
                // Who does not hear it asks the members when it wants to know.
                _ = tell(&other);
            }
            if members == [me] || count >= enough {
                return;
            }
            thread::sleep(PAUSE);
            if !lookout.is_there() {
                return;
            }
        }
    });
}
