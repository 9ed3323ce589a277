//! A member that is alone: nothing is said before it is safe, and a restart goes on where the log ends.

use base::{Digest, Domain, Duration, FileId, Instant, Machine, SecretKey};
use directory::{
    Users,
    message::{Answer, Ask, Needs, Request, Response},
};
use lease::{
    Client, Field, Kind,
    message::{Down, Up, Upward, Want},
};
use wire::{About, Message};

use group::{Ed25519, Seat, Tip};

use crate::{Base, Identity, Input, Loaded, Member, Output, Recovery, Settings};

mod eager;
mod misled;
mod rescued;

const ME: Client = Client(7);

fn identity() -> Identity<Ed25519> {
    let key = SecretKey::from_seed([1; 32]);
    Identity {
        group: Digest::of(Domain::new("test v1"), b""),
        seat: Seat { key: key.public(), incarnation: 0 },
        authority: None,
        notary: Ed25519::new(key),
    }
}

fn about() -> About {
    About { group: identity().group, epoch: 1 }
}

fn first() -> Tip {
    Tip::first(vec![identity().seat]).unwrap()
}

fn recover(log: &[Vec<u8>], now: Instant) -> Result<Member<Ed25519>, base::Malformed> {
    let (settings, group) = (Settings::default(), group::Settings::default());
    let mut recovery = Recovery::new(settings, group, identity(), Base::First(&first()), 0, now)?;
    for record in log {
        assert_eq!(recovery.replay(record)?, None, "everything is at hand");
    }
    let mut out = Vec::new();
    let member = recovery.finish(&mut out);
    assert_eq!(out, [], "nobody is told again");
    Ok(member)
}

/// A node and a log that keeps what it is given.
struct Scene {
    node: Member<Ed25519>,
    log: Vec<Vec<u8>>,
    now: Instant,
}

impl Scene {
    fn new() -> Scene {
        let now = Instant::from_secs(50);
        let (settings, group) = (Settings::default(), group::Settings::default());
        let node = Member::new(settings, group, identity(), first(), now);
        let mut scene = Scene { node, log: Vec::new(), now };
        scene.step(Input::Admit { client: ME, users: Users::Any });
        scene.persist();
        scene
    }

    fn step(&mut self, input: Input) -> Vec<Response> {
        let mut out = Vec::new();
        self.node.step(self.now, input, &mut out);
        self.follow(out)
    }

    fn follow(&mut self, out: Vec<Output>) -> Vec<Response> {
        let mut said = Vec::new();
        for output in out {
            match output {
                Output::Persist { mark, record } => {
                    assert_eq!(mark, self.log.len() as u64 + 1);
                    self.log.push(record);
                }
                Output::Sync { mark } => assert_eq!(mark, self.log.len() as u64),
                Output::Send { to, bytes, .. } => {
                    assert_eq!(to, ME);
                    said.push(wire::decode(&bytes).expect("a node answers with responses"));
                }
                other => panic!("every record is at hand, and nobody else there: {other:?}"),
            }
        }
        said
    }

    fn hear(&mut self, body: Up, ask: Option<Ask>) -> Vec<Response> {
        let lease = Upward { session: 1, stamp: self.now, body };
        let bytes = about().encode(Message::Request(Request { lease, ask }));
        self.step(Input::Heard { from: ME, bytes, key: None })
    }

    fn persist(&mut self) -> Vec<Response> {
        self.step(Input::Persisted { mark: self.log.len() as u64 })
    }

    fn recovered(&self, now: Instant) -> Member<Ed25519> {
        recover(&self.log, now).unwrap()
    }
}

fn wants_root() -> Up {
    let wants = vec![Want { scope: Field::Access.of(&FileId::ROOT), kind: Kind::Read }];
    Up::Ask { request: 1, wants, together: true }
}

#[test]
fn nothing_is_said_before_its_cause_is_safe_on_disk() {
    let mut scene = Scene::new();
    assert_eq!(scene.hear(wants_root(), None), []);
    let said = scene.persist();
    assert!(matches!(said[0].lease.body, Down::Granted { request: 1, .. }), "{said:?}");
}

#[test]
fn a_node_that_starts_again_is_where_its_log_ends() {
    let mut scene = Scene::new();
    scene.hear(wants_root(), None);
    scene.persist();
    let needs = Needs { directory: Some(FileId::ROOT), ..Needs::default() };
    let provide = Ask::Provide { request: 1, needs };
    scene.hear(Up::Renew, Some(provide.clone()));
    let first = scene.persist();
    let again = scene.recovered(Instant::from_secs(2));
    assert_eq!(again.directory().digest(), scene.node.directory().digest());
    // What was asked before the restart and is asked again is answered as before.
    (scene.node, scene.now) = (again, Instant::from_secs(3));
    scene.hear(Up::Renew, Some(provide));
    let second = scene.persist();
    assert!(matches!(first[0].answer, Some(Answer::Provided { .. })), "{first:?}");
    assert_eq!(first[0].answer, second[0].answer);
}

#[test]
fn a_log_with_a_gap_or_a_damaged_record_is_not_taken_for_whole() {
    let mut scene = Scene::new();
    scene.hear(wants_root(), None);
    scene.hear(Up::Renew, None);
    scene.persist();
    let recover = |log: &[Vec<u8>]| recover(log, Instant::START).err().map(|why| why.to_string());
    assert_eq!(recover(&scene.log), None);
    let mut gap = scene.log.clone();
    gap.remove(1);
    assert!(recover(&gap).unwrap().contains("do not follow one another"));
    let mut damaged = scene.log.clone();
    damaged[1].truncate(9);
    assert!(recover(&damaged).is_some());
}

#[test]
fn bytes_that_make_no_sense_are_counted_and_change_nothing() {
    let mut scene = Scene::new();
    let before = scene.node.directory().digest();
    for bytes in [vec![], vec![wire::VERSION as u8, 0, 9], vec![0xff; 40]] {
        assert_eq!(scene.step(Input::Heard { from: ME, bytes, key: None }), []);
    }
    assert_eq!((scene.node.malformed(), scene.log.len()), (3, 1));
    assert_eq!(scene.node.directory().digest(), before);
}

#[test]
fn what_is_for_another_group_is_passed_over() {
    let mut scene = Scene::new();
    let request = |scene: &Scene| {
        let lease = Upward { session: 1, stamp: scene.now, body: wants_root() };
        Message::Request(Request { lease, ask: None })
    };
    let member = Message::Member(Box::new(group::Message::Hello { nonce: 3 }));
    let from = Seat { key: SecretKey::from_seed([2; 32]).public(), incarnation: 0 };
    let elsewhere = About { group: Digest::of(Domain::new("test v1"), b"other"), ..about() };
    for about in [elsewhere, about()] {
        let is_mine = about.group == identity().group;
        let mut out = Vec::new();
        let bytes = about.encode(member.clone());
        scene.node.step(scene.now, Input::Told { from, bytes }, &mut out);
        assert_eq!(out.iter().any(|one| matches!(one, Output::Tell { .. })), is_mine, "{out:?}");
        let bytes = about.encode(request(&scene));
        scene.step(Input::Heard { from: ME, bytes, key: None });
        assert_eq!(scene.log.len(), 1 + usize::from(is_mine));
    }
    assert_eq!((scene.node.strange(), scene.node.malformed()), (2, 0));
}

#[test]
fn a_machine_that_nobody_has_admitted_leaves_nothing_in_the_log() {
    let mut scene = Scene::new();
    let other = Client(8);
    let lease = Upward { session: 1, stamp: scene.now, body: Up::Renew };
    let bytes = about().encode(Message::Request(Request { lease, ask: None }));
    for from in [other, Client::GROUP] {
        scene.step(Input::Heard { from, bytes: bytes.clone(), key: None });
    }
    assert_eq!((scene.node.strange(), scene.log.len()), (2, 1));
    // It counts as admitted as soon as that has its place, and what it says comes after.
    scene.step(Input::Admit { client: other, users: Users::Any });
    scene.step(Input::Heard { from: other, bytes: bytes.clone(), key: None });
    assert_eq!((scene.node.strange(), scene.log.len()), (2, 3));
    let mark = scene.log.len() as u64;
    scene.node.step(scene.now, Input::Persisted { mark }, &mut Vec::new());
    scene.step(Input::Heard { from: other, bytes, key: None });
    assert_eq!((scene.node.strange(), scene.log.len()), (2, 4));
}

#[test]
fn a_machine_with_more_users_than_can_be_written_down_is_not_admitted() {
    let mut scene = Scene::new();
    let users = (0..=Users::COUNT_MAX as u32).map(|uid| (uid, [uid].into()));
    let users = Users::These(users.collect());
    scene.step(Input::Admit { client: Client(8), users });
    assert_eq!(scene.log.len(), 1);
}

#[test]
fn a_deadline_that_falls_due_is_decided_like_anything_else() {
    let mut scene = Scene::new();
    scene.hear(wants_root(), None);
    scene.persist();
    assert_eq!(scene.node.wake_at(), None, "nobody waits for anything");
    // Another client wants to change what we know: we are recalled, again and again.
    let other = Client(8);
    scene.step(Input::Admit { client: other, users: Users::Any });
    let wants = vec![Want { scope: Field::Access.of(&FileId::ROOT), kind: Kind::Write }];
    let body = Up::Ask { request: 1, wants, together: true };
    let lease = Upward { session: 1, stamp: scene.now, body };
    let bytes = about().encode(Message::Request(Request { lease, ask: None }));
    scene.step(Input::Heard { from: other, bytes, key: None });
    let recalled = scene.persist();
    assert!(matches!(recalled[0].lease.body, Down::Recall(_)), "{recalled:?}");
    let due = scene.node.wake_at().unwrap();
    assert!(due > scene.now && due <= scene.now + Duration::from_secs(20));
    scene.now = due;
    let mut out = Vec::new();
    scene.node.tick(scene.now, &mut out);
    let decided = scene.log.len() + 1;
    assert_eq!(scene.follow(out), []);
    assert_eq!(scene.log.len(), decided);
    assert_eq!(scene.node.wake_at(), None, "it is not decided again while it waits to be safe");
    assert!(matches!(scene.persist()[0].lease.body, Down::Recall(_)));
}

#[test]
fn a_member_whose_records_are_in_a_store_gives_its_whole_state_when_they_are_loaded() {
    let now = Instant::from_secs(50);
    let (settings, group) =
        (Settings { is_stored: true, ..Settings::default() }, group::Settings::default());
    let mut member = Member::new(settings, group, identity(), first(), now);
    let whole = member.whole_state().unwrap();
    let records = member.directory().records().unwrap();
    member.checkpoint().unwrap();
    member.release_all();
    assert_eq!(member.whole_state(), None);
    let loaded = Loaded { everything: Some(records), ..Loaded::default() };
    loaded.hand_to(&mut member.directory);
    assert_eq!(member.whole_state(), Some(whole));
}

mod joining {
    //! Machines that come later.

    use std::net::SocketAddr;

    use group::{Notary as _, Sealable as _};
    use overlay::{
        Invitation, Issuer, IssuerRevocation, Patrons, Refused, Revocation, Secret, Terms,
    };
    use wire::{Join, Said, Whereabouts};

    use super::*;

    const NOW: u64 = 1_000_000;

    fn authority() -> SecretKey {
        SecretKey::from_seed([50; 32])
    }

    fn issuer(root: &SecretKey) -> Issuer {
        Issuer::by(root, SecretKey::from_seed([52; 32]), NOW + 500)
    }

    fn invitation(seed: u8) -> Invitation {
        let terms = Terms {
            count: 1,
            expires: NOW + 60,
            certificate_expires_max: NOW + 1_000,
            patrons: Patrons::Any,
        };
        Invitation::new(&issuer(&authority()), &Secret::new([seed; 16]), terms).unwrap()
    }

    fn join(invitation: &Invitation, machine: u8, heard: u64) -> Input {
        let machine = SecretKey::from_seed([machine; 32]);
        let certificate = invitation.certify(&machine, NOW + 1_000).unwrap();
        let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 7_001))];
        let whereabouts = Whereabouts { addresses, number: 1 };
        Input::Join(Box::new(Join::new(certificate, whereabouts, &machine, heard)))
    }

    fn scene() -> Scene {
        let mut scene = Scene::new();
        let identity = Identity { authority: Some(authority().public()), ..identity() };
        let (settings, group) = (Settings::default(), group::Settings::default());
        scene.node = Member::new(settings, group, identity, first(), scene.now);
        scene.log.clear();
        scene
    }

    impl Scene {
        /// Says so, and what comes of it when it is safe.
        fn join(&mut self, input: Input) -> Vec<Result<Client, Refused>> {
            let mut out = Vec::new();
            self.node.step(self.now, input, &mut out);
            let records = out.iter().filter(|output| matches!(output, Output::Persist { .. }));
            self.log.extend(records.map(|_| Vec::new()));
            let mark = self.log.len() as u64;
            self.node.step(self.now, Input::Persisted { mark }, &mut out);
            let outcomes = out.into_iter().filter_map(|output| match output {
                Output::Joined { outcome, .. } => Some(outcome),
                _ => None,
            });
            outcomes.collect()
        }
    }

    #[test]
    fn who_shows_a_certificate_is_a_client_and_the_same_one_when_it_comes_again() {
        let mut scene = scene();
        let (one, two) = (invitation(1), invitation(2));
        assert_eq!(scene.join(join(&one, 11, NOW)), [Ok(Client(1))]);
        assert_eq!(scene.join(join(&two, 12, NOW)), [Ok(Client(2))]);
        let decided = scene.log.len();
        assert_eq!(
            scene.join(join(&one, 11, NOW + 900)),
            [Ok(Client(1))],
            "the invitation is over"
        );
        assert_eq!(scene.log.len(), decided, "nothing is new, so nothing is decided");
        let key = SecretKey::from_seed([12; 32]).public();
        assert_eq!(scene.node.book().client(&key), Some(Client(2)));
        assert!(scene.node.directory().hears(Client(2)));
    }

    #[test]
    fn an_invitation_is_for_one_machine_and_for_a_while() {
        let mut scene = scene();
        let (used, late) = (invitation(1), invitation(2));
        scene.join(join(&used, 11, NOW));
        assert_eq!(scene.join(join(&used, 12, NOW)), [Err(Refused::InvitationUsed)]);
        let seconds = 5;
        let expired = Err(Refused::InvitationExpired { seconds });
        assert_eq!(scene.join(join(&late, 12, NOW + 60 + seconds)), [expired]);
        assert_eq!(scene.node.book().machines().count(), 1);
    }

    #[test]
    fn what_a_member_knows_to_be_refused_is_refused_at_once_and_never_decided() {
        let mut scene = scene();
        let (used, gone, late) = (invitation(1), invitation(2), invitation(3));
        scene.join(join(&used, 11, NOW));
        scene.join(join(&gone, 12, NOW));
        let machine = SecretKey::from_seed([12; 32]).public();
        let revocation = Revocation::new(&issuer(&authority()), machine, NOW);
        let decree = Box::new(overlay::Decree::Revoke(revocation));
        scene.join(Input::Decree { decree, heard: NOW });
        let decided = scene.log.len();
        for _ in 0..100 {
            let seconds = 5;
            for (invitation, machine, heard, refused) in [
                (&used, 13, NOW, Refused::InvitationUsed),
                (&gone, 12, NOW, Refused::MachineRevoked { at: NOW }),
                (&gone, 13, NOW, Refused::InvitationEnded),
                (&used, 12, NOW, Refused::MachineRevoked { at: NOW }),
                (&gone, 11, NOW, Refused::InvitationOther),
                (&late, 14, NOW + 60 + seconds, Refused::InvitationExpired { seconds }),
            ] {
                assert_eq!(scene.join(join(invitation, machine, heard)), [Err(refused)]);
            }
        }
        assert_eq!(scene.log.len(), decided, "nothing was decided");
    }

    #[test]
    fn only_a_machine_itself_says_where_it_is_and_what_it_said_last_counts() {
        let mut scene = scene();
        let one = invitation(1);
        scene.join(join(&one, 11, NOW));
        let machine = SecretKey::from_seed([11; 32]);
        let at = |port: u16, number, key: &SecretKey| {
            let certificate = one.certify(&machine, NOW + 1_000).unwrap();
            let addresses = vec![SocketAddr::from(([127, 0, 0, 1], port))];
            let whereabouts = Whereabouts { addresses, number };
            Input::Join(Box::new(Join::new(certificate, whereabouts, key, NOW)))
        };
        let liar = SecretKey::from_seed([13; 32]);
        assert_eq!(scene.join(at(9, 5, &liar)), [Err(Refused::KeyNotShown)]);
        scene.join(at(7_002, 3, &machine));
        scene.join(at(7_001, 2, &machine));
        let known = scene.node.book().machine(Client(1)).unwrap();
        assert_eq!(known.whereabouts.addresses[0].port(), 7_002);
    }

    #[test]
    fn the_invitation_of_an_issuer_that_was_revoked_or_has_expired_lets_nobody_in() {
        let mut scene = scene();
        assert_eq!(scene.join(join(&invitation(1), 11, NOW)), [Ok(Client(1))]);
        let seconds = 5;
        let until = NOW - seconds;
        let late = Issuer::by(&authority(), SecretKey::from_seed([53; 32]), until);
        let terms = invitation(2).permit().clone();
        let terms = Terms {
            count: 1,
            expires: terms.expires,
            certificate_expires_max: terms.certificate_expires_max,
            patrons: Patrons::Any,
        };
        let expired = Invitation::new(&late, &Secret::new([2; 16]), terms).unwrap();
        let refused = Err(Refused::IssuerExpired { seconds });
        assert_eq!(scene.join(join(&expired, 12, NOW)), [refused]);
        let stolen = issuer(&authority()).tenure().issuer;
        let revocation = IssuerRevocation::new(&authority(), stolen, NOW);
        let decree = Box::new(overlay::Decree::RevokeIssuer(revocation));
        scene.join(Input::Decree { decree, heard: NOW });
        let refused = Err(Refused::IssuerRevoked { at: NOW });
        assert_eq!(scene.join(join(&invitation(3), 12, NOW)), [refused]);
        assert_eq!(scene.node.book().machines().count(), 1);
        assert!(scene.node.directory().hears(Client(1)), "who was let in before stays");
    }

    #[test]
    fn nobody_is_in_the_book_who_has_only_spoken() {
        let mut scene = scene();
        scene.join(join(&invitation(1), 11, NOW));
        let stranger = SecretKey::from_seed([12; 32]);
        let request =
            Request { lease: Upward { session: 1, stamp: scene.now, body: Up::Renew }, ask: None };
        for client in [Client(1), Client(u32::MAX)] {
            let said = Said { client, request: &request };
            let seal = Ed25519::new(stranger.clone()).seal(&said.sealed_bytes(&identity().group));
            let bytes = about().encode(Message::Sealed(request.clone(), seal));
            scene.join(Input::Heard { from: client, bytes, key: Some(stranger.public()) });
        }
        let keys: Vec<_> = scene.node.book().machines().map(|(_, machine)| machine.key).collect();
        assert_eq!(keys, [SecretKey::from_seed([11; 32]).public()]);
        assert_eq!(scene.join(join(&invitation(2), 14, NOW)), [Ok(Client(2))]);
    }

    #[test]
    fn a_certificate_of_another_cell_does_not_even_reach_the_log() {
        let mut scene = scene();
        let terms = Terms {
            count: 1,
            expires: NOW + 60,
            certificate_expires_max: NOW + 1_000,
            patrons: Patrons::Any,
        };
        let other =
            Invitation::new(&issuer(&SecretKey::from_seed([51; 32])), &Secret::new([1; 16]), terms)
                .unwrap();
        let outcomes = scene.join(join(&other, 11, NOW));
        assert!(matches!(outcomes[..], [Err(Refused::CellOther { .. })]), "{outcomes:?}");
        assert_eq!(scene.log.len(), 0);
    }
}
