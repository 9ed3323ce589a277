//! Scripted worlds: idle clients that do what they are told, and nothing goes wrong.

use std::rc::Rc;

use base::{Duration, Instant, Rng};
use lease::{Kind, Policy, Scope, Terms, message::Want};

use crate::{
    Clock, Faults, Kind as Event, Marks, Node, World,
    leases::{
        actor::Party,
        place::Place,
        server::Server,
        tamper::Tamper,
        user::{Habit, User},
    },
};

/// A world to be played with. Messages take 1 ms.
pub(super) struct Scene<T: Tamper> {
    pub(super) place: Rc<Place>,
    pub(super) world: World<Party<T>>,
}

impl<T: Tamper> Scene<T> {
    /// The grantor is node 0; these clients follow. Each is as its tamper makes it.
    pub(super) fn new(server: T, users: Vec<(Habit, T)>) -> Scene<T> {
        let place = Rc::new(Place::new());
        let terms = Terms::default();
        let policy = Policy::of_the_paper();
        let server = Server::new(Rc::clone(&place), terms, policy, server);
        let mut nodes = vec![(Party::Server(Box::new(server)), Clock::default())];
        for (index, (habit, tamper)) in users.into_iter().enumerate() {
            let rng = Rng::new(index as u64);
            let user = User::new(Rc::clone(&place), terms, habit, rng, tamper);
            nodes.push((Party::User(Box::new(user)), Clock::default()));
        }
        let world = World::new(Faults::none(), nodes, Marks::default(), &mut Rng::new(1));
        Scene { place, world }
    }

    /// This many clients that do what they are told.
    pub(super) fn idle(tamper: &T, users: usize) -> Scene<T> {
        let users = (0..users).map(|_| (Habit::idle(), tamper.clone())).collect();
        Scene::new(tamper.clone(), users)
    }

    pub(super) fn leaf(&self, scope: &str) -> usize {
        let found = self.place.leaves.iter().position(|leaf| leaf.to_string() == scope);
        found.expect("there is such a leaf")
    }

    pub(super) fn need(&mut self, node: u16, wants: &[(&str, Kind)]) -> u64 {
        let all = self.place.leaves.iter().chain(&self.place.wides);
        let all: Vec<Scope> = all.cloned().collect();
        let wants = wants.iter().map(|(text, kind)| Want {
            scope: all.iter().find(|scope| scope.to_string() == *text).expect("known").clone(),
            kind: *kind,
        });
        let wants = wants.collect();
        self.tell(node, |user, now, out| user.need(now, wants, true, out))
    }

    pub(super) fn set(&mut self, node: u16, scope: &str, value: bool) -> bool {
        let leaf = self.leaf(scope);
        self.tell(node, |user, now, out| user.set(now, leaf, value, out))
    }

    pub(super) fn user(&self, node: u16) -> &User<T> {
        self.world.actor(Node(node)).user().expect("a client")
    }

    /// Lets this long pass; answers how many messages arrived.
    pub(super) fn pass(&mut self, span: Duration) -> u64 {
        let before = self.world.counts()[Event::Deliver];
        let until = self.world.now() + span;
        assert_eq!(self.world.run_until(until, &mut ()), Ok(()));
        self.world.counts()[Event::Deliver] - before
    }

    /// Lets time pass until this client waits for nothing; answers how long that took, if it was not
    /// too long.
    pub(super) fn wait(&mut self, node: u16, longest: Duration) -> Option<Duration> {
        let start = self.world.now();
        while self.user(node).need_count() > 0 {
            if self.world.now().since(start) > longest {
                return None;
            }
            self.pass(Duration::from_millis(1));
        }
        Some(self.world.now().since(start))
    }

    fn tell<R>(
        &mut self,
        node: u16,
        what: impl FnOnce(&mut User<T>, Instant, &mut crate::Outbox<Party<T>>) -> R,
    ) -> R {
        self.world.tell(Node(node), |party, now, out| match party {
            Party::User(user) => what(user, now, out),
            Party::Server(_) => unreachable!("the grantor is not told anything"),
        })
    }
}
