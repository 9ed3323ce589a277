//! Says where this machine is, when it has started: the group has to know, and whoever else may look for it.

use std::{sync::Arc, thread, time::Duration};

use base::PublicKey;
use node::Join;

use crate::{
    Neighbours,
    cell::{ANSWER_BYTES_MAX, Answer, Errand},
    net::Lookout,
};

/// How long one machine is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Before those are asked again who have not answered.
const PAUSE: Duration = Duration::from_secs(5);
/// The most machines that are told besides the members.
const OTHERS_MAX: usize = 64;

/// Tells the members until enough of them have heard it that one of them is honest, and others once. It ends with
/// the network.
pub(super) fn announce(lookout: Lookout, neighbours: Arc<Neighbours>, join: Join) {
    let me = *join.certificate.machine();
    let errand = base::encode(&Errand::Join(Box::new(join)));
    thread::spawn(move || {
        let mut said = String::new();
        let mut others = neighbours.keys();
        others.truncate(OTHERS_MAX);
        loop {
            // They may be others by now.
            let members = neighbours.members();
            let tell = |key: &PublicKey| lookout.ask(key, errand.clone(), PATIENCE);
            let mut count = 0;
            for member in members.iter().filter(|member| **member != me) {
                match tell(member).map(|bytes| base::decode(&bytes, ANSWER_BYTES_MAX)) {
                    Some(Ok(Answer::Joined(_))) => count += 1,
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
            if members == [me] || count > members.len().saturating_sub(1) / 3 {
                return;
            }
            thread::sleep(PAUSE);
            if !lookout.is_there() {
                return;
            }
        }
    });
}
