//! Messages are a budget, and a budget can be broken.

use base::Duration;
use lease::{
    Kind,
    message::{Up, Upward},
};

use super::scene::Scene;
use crate::leases::tamper::{Honest, Tamper};

/// What happens, and how many messages it may cost.
fn measure(tamper: &impl Tamper) -> Vec<(&'static str, u64)> {
    let second = Duration::from_secs(1);
    let mut scene = Scene::idle(tamper, 3);
    let mut spent = Vec::new();

    scene.need(1, &[("1:content", Kind::Write)]);
    spent.push(("uncontended acquire", scene.pass(second)));
    scene.need(2, &[("1:content", Kind::Write)]);
    spent.push(("contended hand-over", scene.pass(second)));

    scene.need(1, &[("1:handles", Kind::SelfWrite)]);
    scene.need(2, &[("1:handles", Kind::SelfWrite)]);
    scene.pass(second);
    let steady = (0..100).map(|turn| {
        assert!(
            scene.set(1, "1:handles", turn % 2 == 0) && scene.set(2, "1:handles", turn % 3 == 0)
        );
        scene.pass(Duration::from_millis(10))
    });
    spent.push(("open and close in steady state", steady.sum()));

    let minutes = Duration::from_secs(600);
    assert!(scene.set(1, "1:handles", true) && scene.set(2, "1:handles", true));
    spent.push(("ten minutes with a file open", scene.pass(minutes) / 2));
    assert!(scene.set(1, "1:handles", false) && scene.set(2, "1:handles", false));
    spent.push(("ten idle minutes", scene.pass(minutes)));
    spent
}

#[test]
fn leases_cost_as_many_messages_as_agreed() {
    assert_eq!(
        measure(&Honest),
        [
            ("uncontended acquire", 2),
            ("contended hand-over", 4),
            ("open and close in steady state", 0),
            // What is open would be lost with the session, so that is kept up every third of its time.
            ("ten minutes with a file open", 180),
            // Booleans were changed since the last message, which is worth one renewal each.
            ("ten idle minutes", 4),
        ]
    );
}

/// Says that it goes on whenever it says anything.
#[derive(Clone)]
struct Chatty;

impl Tamper for Chatty {
    fn told(&mut self, _: base::Instant, message: Upward) -> Vec<Upward> {
        let renewal = Upward { body: Up::Renew, ..message.clone() };
        vec![renewal, message]
    }
}

#[test]
fn a_chatty_client_breaks_the_budget() {
    let spent = measure(&Chatty);
    assert_eq!(spent[0], ("uncontended acquire", 4));
    assert_eq!(spent[1], ("contended hand-over", 8));
}
