//! A group in which nothing goes wrong says no more than it has to.

use std::collections::BTreeMap;

use base::{Duration, Instant, Rng};
use group::Settings;

use crate::{
    Faults, Kind,
    groups::{
        customer::Habit,
        member::Hardware,
        run::{Plan, nodes},
        tamper::Honest,
    },
};

fn plan(count: usize) -> Plan {
    let habit = Habit { pace: Duration::from_millis(200), patience: Duration::from_secs(5) };
    let sync_max = Duration::from_millis(1);
    let hardware = Hardware { sync_max, loss: 0.0, rollback: 0.0, backups: 0.0 };
    Plan {
        faults: Faults::none(),
        settings: Settings::default(),
        count,
        circles: vec![nodes(0..count as u16)],
        liars: BTreeMap::new(),
        drifter: None,
        habits: vec![habit],
        hardware,
        is_real: false,
        is_timed: true,
        leaks: false,
        span: Duration::from_secs(10),
    }
}

/// How many messages a decision takes, with an order to the leader and an answer from each member.
fn messages_per_decision(count: usize) -> (u64, u64) {
    let (mut world, mut oracle) = plan(count).build(&mut Rng::new(1), &Honest);
    world.run_until(Instant::from_secs(20), &mut oracle).unwrap();
    (world.counts()[Kind::Deliver], oracle.height())
}

#[test]
fn a_decision_of_four_takes_27_messages_and_one_of_seven_takes_90() {
    for (count, expected) in [(4, 27), (7, 90)] {
        let (messages, decisions) = messages_per_decision(count);
        assert!(decisions > 50, "{decisions}");
        let expected = (expected + 1 + count as u64) * decisions;
        // The last one may be on its way.
        assert!(messages.abs_diff(expected) < 100, "{messages} of {expected}");
    }
}
