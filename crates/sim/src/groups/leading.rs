//! How long one member leads while somebody waits, and how long anybody waits.

use std::collections::BTreeMap;

use base::{Duration, Instant};
use group::Seat;

use crate::{Broken, Longest, Node};

/// A leader that is as slow as it may be costs the group at most this before another leads.
pub(crate) const LED_MAX: Duration = Duration::from_secs(10);
/// A customer whom the leader ignores is served within this.
pub(crate) const SERVED_MAX: Duration = Duration::from_secs(5);

const LED: &str = "one member leads while somebody waits";
const SERVED: &str = "somebody waits";

/// Who leads, and who waits.
#[derive(Debug, Default)]
pub(crate) struct Leading {
    /// Whether it is a fault if one of both takes too long. Where messages are lost it is none.
    is_judged: bool,
    leader: Option<Seat>,
    /// For how long somebody has waited since this one leads.
    led: Duration,
    /// When something was last decided.
    last_at: Instant,
    /// Orders that are not answered, and since when.
    open: BTreeMap<(Node, u64), Instant>,
    longest: Longest,
}

impl Leading {
    pub(crate) fn judged(is_judged: bool) -> Leading {
        Leading { is_judged, ..Leading::default() }
    }

    /// How long both took at the most.
    pub(crate) fn longest(&self) -> &Longest {
        &self.longest
    }

    pub(crate) fn on_asked(&mut self, now: Instant, node: Node, number: u64) {
        self.open.insert((node, number), now);
    }

    /// Something was decided, and this member leads now.
    pub(crate) fn on_decided(&mut self, now: Instant, leader: Seat) -> Result<(), Broken> {
        if let Some(first) = self.open.values().min() {
            self.led += now.since(self.last_at.max(*first));
        }
        self.last_at = now;
        self.longest.note(LED, self.led);
        self.judge(self.led, LED_MAX, "slow leader", "the same member leads")?;
        if self.leader.replace(leader) != Some(leader) {
            self.led = Duration::ZERO;
        }
        Ok(())
    }

    pub(crate) fn on_believed(
        &mut self,
        now: Instant,
        node: Node,
        number: u64,
    ) -> Result<(), Broken> {
        let Some(asked_at) = self.open.remove(&(node, number)) else { return Ok(()) };
        let waited = now.since(asked_at);
        self.longest.note(SERVED, waited);
        self.judge(waited, SERVED_MAX, "ignored customer", "somebody waits")
    }

    fn judge(
        &self,
        took: Duration,
        most: Duration,
        invariant: &'static str,
        what: &str,
    ) -> Result<(), Broken> {
        match took > most && self.is_judged {
            true => Err(Broken::new(invariant, format!("{what} for {took:?}"))),
            false => Ok(()),
        }
    }
}
