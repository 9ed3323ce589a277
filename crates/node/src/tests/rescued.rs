//! A member that goes on alone when too many others are lost, and one that was given up.

use base::{Digest, Domain, FileId, Instant, Machine as _, SecretKey};
use directory::{
    Users,
    message::{Request, Response},
};
use group::{Ed25519, Notary as _, Rescue, Sealable as _, Sealed, Seat, Tip};
use lease::{
    Client, Field, Kind,
    message::{Down, Up, Upward, Want},
};
use wire::Message;

use crate::{Base, Identity, Input, Member, Output, Recovery, Settings};

const ME: Client = Client(7);

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

fn seat(number: u8) -> Seat {
    Seat { key: key(number).public(), incarnation: 0 }
}

fn identity(number: u8) -> Identity<Ed25519> {
    Identity {
        group: Digest::of(Domain::new("test v1"), b""),
        seat: seat(number),
        authority: Some(key(9).public()),
        notary: Ed25519::new(key(number)),
    }
}

fn rescue(number: u32, survivor: u8, height: u64, time: Instant) -> Sealed<Rescue> {
    let what = Rescue { number, seat: seat(survivor), height, time, at: 5 };
    let seal = Ed25519::new(key(9)).seal(&what.sealed_bytes(&identity(1).group));
    Sealed { what, seal }
}

/// A member whose log is safe at once.
struct Scene {
    member: Member<Ed25519>,
    log: Vec<Vec<u8>>,
    now: Instant,
}

impl Scene {
    fn new() -> Scene {
        let now = Instant::from_secs(50);
        let (settings, group) = (Settings::default(), group::Settings::default());
        let first = Tip::first(vec![seat(1)]).unwrap();
        let member = Member::new(settings, group, identity(1), first, now);
        Scene { member, log: Vec::new(), now }
    }

    fn step(&mut self, input: Input) -> Vec<Output> {
        let (mut todo, mut all) = (Vec::new(), Vec::new());
        self.member.step(self.now, input, &mut todo);
        while !todo.is_empty() {
            let mut mark_safe = None;
            for output in todo.drain(..) {
                match output {
                    Output::Persist { record, .. } => self.log.push(record),
                    Output::Sync { mark } => mark_safe = Some(mark),
                    other => all.push(other),
                }
            }
            if let Some(mark) = mark_safe {
                self.member.step(self.now, Input::Persisted { mark }, &mut todo);
            }
        }
        all
    }

    fn hear(&mut self, session: u64) -> Vec<Output> {
        let wants = vec![Want { scope: Field::Access.of(&FileId::ROOT), kind: Kind::Read }];
        let body = Up::Ask { request: 1, wants, together: true };
        let lease = Upward { session, stamp: self.now, body };
        let request = Message::Request(Request { lease, ask: None });
        let bytes = self.member.about().encode(request);
        self.step(Input::Heard { from: ME, bytes, key: None })
    }

    fn is_in_session(&self) -> bool {
        self.member.directory().clients().any(|(client, one)| client == ME && one.is_live)
    }
}

fn says(outputs: &[Output], is_meant: impl Fn(&Down) -> bool) -> bool {
    outputs.iter().any(|output| {
        let Output::Send { to: ME, bytes, .. } = output else { return false };
        let Ok(response) = wire::decode::<Response>(bytes) else { return false };
        is_meant(&response.lease.body)
    })
}

#[test]
fn no_session_outlives_a_rescue_and_it_is_remembered() {
    let mut scene = Scene::new();
    scene.step(Input::Admit { client: ME, users: Users::Any });
    let granted = scene.hear(1);
    assert!(says(&granted, |down| matches!(down, Down::Granted { .. })) && scene.is_in_session());
    let height = scene.member.height();
    let rescue = rescue(1, 1, height, scene.member.replica().time(scene.now));
    let said = scene.step(Input::Rescue(rescue.clone()));
    assert!(says(&said, |down| *down == Down::Lost), "{said:?}");
    assert!(said.contains(&Output::Rescued(rescue.what.clone())));
    assert!(!scene.is_in_session());
    let again = scene.hear(2);
    assert!(says(&again, |down| matches!(down, Down::Granted { .. })), "{again:?}");
    // The log leads to the same.
    let (settings, group) = (Settings::default(), group::Settings::default());
    let first = Tip::first(vec![seat(1)]).unwrap();
    let base = Base::First(&first);
    let mut recovery =
        Recovery::new(settings, group, identity(1), base, 0, Instant::from_secs(9)).unwrap();
    for record in &scene.log {
        assert_eq!(recovery.replay(record).unwrap(), None);
    }
    let mut out = Vec::new();
    let found = recovery.finish(&mut out);
    assert!(!out.iter().any(|output| matches!(output, Output::Rescued(_))), "that was said");
    assert_eq!(found.book().rescues(), [rescue.what]);
    assert_eq!(found.book(), scene.member.book());
    assert_eq!(found.directory().digest(), scene.member.directory().digest());
    assert_eq!(found.height(), scene.member.height());
}

#[test]
fn a_member_that_is_alone_and_obeys_that_it_was_given_up_decides_nothing_more() {
    let mut scene = Scene::new();
    scene.step(Input::Admit { client: ME, users: Users::Any });
    let height = scene.member.height();
    let time = scene.member.replica().time(scene.now);
    scene.step(Input::Changes(vec![rescue(1, 2, height, time).decision()]));
    assert!(!scene.member.replica().is_passed_over(), "it decides, so it goes on");
    scene.step(Input::Obey);
    assert!(scene.member.replica().is_passed_over());
    assert_eq!(scene.hear(1), []);
    assert_eq!(scene.member.height(), height);
}
