//! Nobody waits longer than one session for anybody.

use base::{Duration, Instant};
use lease::{
    Client, Kind, Terms,
    message::{Down, Downward, Up, Upward},
};

use super::scene::Scene;
use crate::leases::{
    tamper::{Honest, Tamper},
    user::Habit,
};

/// How long a writer waits while four clients read all the time; none if it is too long.
fn wait_as_writer(tamper: &impl Tamper) -> Option<Duration> {
    let reader = Habit { pace: Duration::from_millis(2), favourites: vec![0], ..Habit::idle() };
    let mut users = vec![(Habit::idle(), tamper.clone())];
    users.extend((0..4).map(|_| (reader.clone(), tamper.clone())));
    let mut scene = Scene::new(tamper.clone(), users);
    scene.pass(Duration::from_secs(5));
    scene.need(1, &[("1:content", Kind::Write)]);
    scene.wait(1, Terms::default().session)
}

/// How long one waits for what a client has that never answers recalls but goes on working.
fn wait_for_the_deaf(server: impl Tamper, deaf: impl Tamper) -> Option<Duration> {
    waits_for_the_deaf(server, deaf, 1)?.pop()
}

/// The same again and again, each time when the deaf one has had it for a while.
fn waits_for_the_deaf(
    server: impl Tamper,
    deaf: impl Tamper,
    times: usize,
) -> Option<Vec<Duration>> {
    let busy = Habit {
        pace: Duration::from_millis(50),
        favourites: vec![0],
        changing: 1.0,
        ..Habit::idle()
    };
    let server = Either { server: Some(server), deaf: None };
    let deaf = Either { server: None, deaf: Some(deaf) };
    let plain = Either { server: None, deaf: None };
    let mut scene = Scene::new(server, vec![(busy, deaf), (Habit::idle(), plain)]);
    let wait = |_| {
        scene.pass(Duration::from_secs(5));
        scene.need(2, &[("1:content", Kind::Write)]);
        scene.wait(2, Terms::default().session + Duration::from_secs(1))
    };
    (0..times).map(wait).collect()
}

#[test]
fn continuous_readers_do_not_starve_a_writer() {
    let waited = wait_as_writer(&Honest).expect("within one session");
    assert!(waited < Duration::from_millis(20), "{waited:?}: nobody is slow here");
}

#[test]
fn a_deaf_client_delays_others_by_one_session() {
    let waited = wait_for_the_deaf(Honest, Deaf).expect("within one session");
    let session = Terms::default().session;
    assert!(waited <= session + Duration::from_millis(10), "{waited:?}");
    assert!(waited > session / 2, "{waited:?}: it was not deaf");
}

/// Whether each wait was as long as the deaf one's session was then, and no longer.
fn are_as_long(waits: &[Duration], sessions: &[u64]) -> bool {
    let sessions = sessions.iter().copied().map(Duration::from_secs);
    waits.iter().zip(sessions).all(|(waited, session)| {
        *waited <= session + Duration::from_millis(10) && *waited > session / 2
    })
}

#[test]
fn a_deaf_client_delays_others_less_each_time_down_to_a_floor() {
    let waits = waits_for_the_deaf(Honest, Deaf, 5).expect("within one session");
    assert!(are_as_long(&waits, &[20, 10, 5, 5, 5]), "{waits:?}");
}

/// Takes a client for another one with each new session.
#[derive(Clone)]
struct Trusting;

impl Tamper for Trusting {
    fn heard(&mut self, _: Instant, from: Client, message: Upward) -> Vec<(Client, Upward)> {
        vec![(Client(from.0 + 1_000 * message.session as u32), message)]
    }

    fn said(&mut self, _: Instant, to: Client, message: Downward) -> Vec<(Client, Downward)> {
        vec![(Client(to.0 % 1_000), message)]
    }
}

#[test]
fn a_grantor_that_trusts_whoever_starts_anew_is_caught() {
    let waits = waits_for_the_deaf(Trusting, Deaf, 3).expect("within one session");
    assert!(are_as_long(&waits, &[20, 20, 20]), "{waits:?}: it forgot nothing");
}

/// Forgets the place of a writer in the queue when a reader comes.
#[derive(Clone, Default)]
struct Forgetful {
    read_at: Option<Instant>,
}

impl Tamper for Forgetful {
    fn heard(&mut self, now: Instant, from: Client, message: Upward) -> Vec<(Client, Upward)> {
        if let Up::Ask { wants, .. } = &message.body {
            if wants.iter().any(|want| want.kind == Kind::Read) {
                self.read_at = Some(now);
            } else if self.read_at.is_some() {
                return vec![(from, Upward { body: Up::Renew, ..message })];
            }
        }
        vec![(from, message)]
    }
}

#[test]
fn a_grantor_that_forgets_queue_positions_is_caught() {
    assert_eq!(wait_as_writer(&Forgetful::default()), None);
}

/// Never hears a recall.
#[derive(Clone)]
struct Deaf;

impl Tamper for Deaf {
    fn learnt(&mut self, _: Instant, message: Downward) -> Option<Downward> {
        (!matches!(message.body, Down::Recall(_))).then_some(message)
    }
}

/// Hears what somebody wants only when it was said ten times.
#[derive(Clone, Default)]
struct Sluggish {
    asks: u32,
}

impl Tamper for Sluggish {
    fn heard(&mut self, _: Instant, from: Client, message: Upward) -> Vec<(Client, Upward)> {
        self.asks += u32::from(from == Client(2));
        if from == Client(2) && self.asks < 10 { Vec::new() } else { vec![(from, message)] }
    }
}

#[test]
fn a_grantor_that_is_slow_to_recall_is_caught() {
    assert_eq!(wait_for_the_deaf(Sluggish::default(), Deaf), None);
}

/// One tamper for the grantor, another for a client.
#[derive(Clone)]
struct Either<S, D> {
    server: Option<S>,
    deaf: Option<D>,
}

impl<S: Tamper, D: Tamper> Tamper for Either<S, D> {
    fn heard(&mut self, now: Instant, from: Client, message: Upward) -> Vec<(Client, Upward)> {
        match &mut self.server {
            Some(server) => server.heard(now, from, message),
            None => vec![(from, message)],
        }
    }

    fn said(&mut self, now: Instant, to: Client, message: Downward) -> Vec<(Client, Downward)> {
        match &mut self.server {
            Some(server) => server.said(now, to, message),
            None => vec![(to, message)],
        }
    }

    fn learnt(&mut self, now: Instant, message: Downward) -> Option<Downward> {
        match &mut self.deaf {
            Some(deaf) => deaf.learnt(now, message),
            None => Some(message),
        }
    }
}
