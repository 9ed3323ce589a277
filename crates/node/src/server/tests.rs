//! What a machine does with what it hears, asks and is asked.

use base::{Digest, Domain, Duration, FileId, SecretKey};
use directory::Users;
use group::{Ed25519, Seat, Tip};
use lease::{
    Field, Kind,
    message::{Up, Upward, Want},
};
use overlay::{Invitation, Issuer, Patrons, Renewal, Revocation, Secret, Terms};
use wire::{About, Frame, Message, Neighbour, Slot, Ticket, Whereabouts, Word};

use super::*;
use crate::{Identity, Settings};

const NOW: u64 = 1_000_000;
/// The one whose machine is looked at.
const ME: u8 = 1;

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn public(seed: u8) -> PublicKey {
    key(seed).public()
}

fn authority() -> SecretKey {
    key(50)
}

fn issuer() -> Issuer {
    Issuer::by(&authority(), key(52), NOW + 500_000)
}

fn group() -> Digest {
    Digest::of(Domain::new("test v1"), b"")
}

fn about() -> About {
    About { group: group(), epoch: 1 }
}

fn join(machine: u8) -> Box<Join> {
    let (expires, patrons) = (NOW + 60, Patrons::Any);
    let terms = Terms { count: 1, expires, certificate_expires_max: NOW + 1_000, patrons };
    let invitation = Invitation::new(&issuer(), &Secret::new([machine; 16]), terms).unwrap();
    let certificate = invitation.certify(&key(machine), NOW + 1_000).unwrap();
    let addresses = vec![([127, 0, 0, machine], 7_001).into()];
    let whereabouts = Whereabouts { addresses, number: 1 };
    Box::new(Join::new(certificate, whereabouts, &key(machine), NOW))
}

/// A machine whose disk is as quick as can be.
struct Scene {
    server: Server<Ed25519>,
    now: Instant,
}

impl Scene {
    /// In a group of these, with these others beside them.
    fn new(members: &[u8], others: &[u8]) -> Scene {
        let now = Instant::from_secs(1_000);
        let seat = |seed: &u8| Seat { key: public(*seed), incarnation: 0 };
        let tip = Tip::first(members.iter().map(seat).collect()).unwrap();
        let notary = Ed25519::new(key(ME));
        let identity = Identity {
            group: group(),
            seat: seat(&ME),
            authority: Some(authority().public()),
            notary: notary.clone(),
        };
        let roll = Roll::from(&tip);
        let (settings, of_group) = (Settings::default(), group::Settings::default());
        let member = Member::new(settings, of_group, identity, tip, now);
        let charter = group::Charter { group: group(), authority: Some(authority().public()) };
        let repeat = Duration::from_millis(500);
        let machines = members.iter().chain(others).filter(|seed| **seed != ME);
        let others = Others {
            ear: Ear::new(Client(1), charter, roll, notary, repeat).unwrap(),
            authority: authority().public(),
            founder: public(members[0]),
            decrees: Decrees::new(authority().public(), public(ME), Vec::new()),
            machines: machines.map(|seed| public(*seed)).collect(),
            expires: u64::MAX,
        };
        let server = Server::new((public(ME), Client(1)), member, Some(others));
        let mut scene = Scene { server, now };
        scene.step(Input::Seconds(NOW));
        scene
    }

    fn step(&mut self, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        self.server.step(self.now, input, &mut out);
        self.settle(out)
    }

    fn pass(&mut self, span: Duration) -> Vec<Output> {
        self.now = self.now + span;
        let mut out = Vec::new();
        self.server.tick(self.now, &mut out);
        self.settle(out)
    }

    /// What was to be made safe is.
    fn settle(&mut self, mut out: Vec<Output>) -> Vec<Output> {
        let mut all = Vec::new();
        while !out.is_empty() {
            let sync = out.iter().rev().find_map(|one| match one {
                Output::Sync { mark } => Some(*mark),
                _ => None,
            });
            all.append(&mut out);
            if let Some(mark) = sync {
                let input = Input::Member(member::Input::Persisted { mark });
                self.server.step(self.now, input, &mut out);
            }
        }
        all.retain(|one| !matches!(one, Output::Persist { .. } | Output::Sync { .. }));
        all
    }

    /// Who is told where this machine is.
    fn asked(out: &[Output]) -> Vec<(Token, PublicKey)> {
        asked_for(out, |query| matches!(query, Query::Join(_)))
    }

    /// Who is asked for a renewal.
    fn asked_to_renew(out: &[Output]) -> Vec<(Token, PublicKey)> {
        asked_for(out, |query| *query == Query::Renew)
    }
}

fn asked_for(out: &[Output], is_meant: impl Fn(&Query) -> bool) -> Vec<(Token, PublicKey)> {
    let asked = out.iter().filter_map(|one| match one {
        Output::Ask { token, to, query } if is_meant(query) => Some((*token, *to)),
        _ => None,
    });
    asked.collect()
}

fn replies(out: &[Output]) -> Vec<(Token, &Answer)> {
    let replies = out.iter().filter_map(|one| match one {
        Output::Reply { token, answer } => Some((*token, answer)),
        _ => None,
    });
    replies.collect()
}

fn is_refused(out: &[Output], token: Token, part: &str) -> bool {
    match replies(out)[..] {
        [(said, Answer::Refused(why))] => said == token && why.contains(part),
        _ => false,
    }
}

fn request() -> Request {
    let wants = vec![Want { scope: Field::Access.of(&FileId::ROOT), kind: Kind::Read }];
    let body = Up::Ask { request: 1, wants, together: true };
    Request { lease: Upward { session: 1, stamp: Instant::START, body }, ask: None }
}

#[test]
fn whoever_joins_is_told_who_else_there_is_when_the_book_has_it() {
    let mut scene = Scene::new(&[ME], &[]);
    scene.step(Input::Own { join: join(ME), token: None });
    let out = scene.step(Input::Join { join: join(2), token: 7 });
    let [(7, Answer::Joined(ticket))] = replies(&out)[..] else { panic!("{out:?}") };
    assert_eq!((ticket.client, ticket.machines.len()), (Client(2), 1));
    assert_eq!(ticket.machines[0].key, public(ME));
    let place = |one: &Output| out.iter().position(|other| other == one).unwrap();
    let reply = Output::Reply { token: 7, answer: Answer::Joined(ticket.clone()) };
    assert!(place(&Output::Book) < place(&reply), "it is let in before it hears of it");
    let again = scene.step(Input::Join { join: join(2), token: 8 });
    assert_eq!(replies(&again).len(), 1);
    assert!(again.contains(&Output::Moved(join(2))), "it is known, and says where it is");
}

#[test]
fn whoever_waits_for_a_group_that_does_not_answer_is_told_so_in_time_and_once() {
    let mut scene = Scene::new(&[ME, 2, 3, 4], &[]);
    assert_eq!(replies(&scene.step(Input::Join { join: join(5), token: 7 })), []);
    let out = scene.step(Input::Join { join: join(5), token: 8 });
    assert!(is_refused(&out, 7, "asked again"), "{out:?}");
    assert_eq!(replies(&scene.pass(Duration::from_secs(6))), []);
    assert!(scene.server.wake_at().is_some_and(|at| at <= scene.now + Duration::from_secs(1)));
    let out = scene.pass(Duration::from_secs(1));
    assert!(is_refused(&out, 8, "does not answer"), "{out:?}");
    assert_eq!(replies(&scene.pass(Duration::from_secs(60))), []);
}

#[test]
fn no_more_wait_than_there_is_room_for() {
    let mut scene = Scene::new(&[ME, 2, 3, 4], &[]);
    let count_max = scene.server.member().limits().joining_max as u8;
    for machine in 0..count_max {
        let out = scene.step(Input::Join { join: join(100 + machine), token: 1 });
        assert_eq!(replies(&out), []);
    }
    let out = scene.step(Input::Join { join: join(5), token: 2 });
    assert!(is_refused(&out, 2, "too many"), "{out:?}");
}

#[test]
fn a_machine_without_a_vote_sends_whoever_joins_elsewhere() {
    let mut scene = Scene::new(&[2, 3, 4, 5], &[ME]);
    let out = scene.step(Input::Join { join: join(6), token: 7 });
    assert!(is_refused(&out, 7, "no vote"), "{out:?}");
    let revocation = Revocation::new(&issuer(), public(6), NOW);
    let decree = Box::new(Decree::Revoke(revocation));
    let out = scene.step(Input::Decree { decree, token: 8 });
    assert!(is_refused(&out, 8, "no vote"), "{out:?}");
}

#[test]
fn whoever_was_sent_away_is_kept_and_gone_before_anybody_hears_that_it_is_so() {
    let mut scene = Scene::new(&[ME], &[]);
    scene.step(Input::Own { join: join(ME), token: None });
    scene.step(Input::Join { join: join(2), token: 1 });
    let decree = || Box::new(Decree::Revoke(Revocation::new(&issuer(), public(2), NOW)));
    let out = scene.step(Input::Decree { decree: decree(), token: 7 });
    let place = |one: &Output| out.iter().position(|other| other == one).unwrap();
    let reply = place(&Output::Reply { token: 7, answer: Answer::Decreed });
    assert!(place(&Output::Keep) < reply && place(&Output::Gone(public(2))) < reply);
    assert_eq!(scene.server.decrees().count(), 1);
    let stranger = Box::new(Decree::Revoke(Revocation::new(
        &Issuer::by(&key(77), key(52), NOW + 9),
        public(3),
        NOW,
    )));
    let out = scene.step(Input::Decree { decree: stranger, token: 8 });
    assert!(matches!(replies(&out)[..], [(8, Answer::Refused(_))]), "{out:?}");
}

#[test]
fn a_machine_that_was_sent_away_itself_ends() {
    let mut scene = Scene::new(&[ME], &[]);
    scene.step(Input::Own { join: join(ME), token: None });
    let decree = Box::new(Decree::Revoke(Revocation::new(&issuer(), public(ME), NOW)));
    let out = scene.step(Input::Decree { decree, token: 7 });
    assert_eq!(out.last(), Some(&Output::SentAway));
}

#[test]
fn all_machines_are_asked_who_the_members_are_when_none_was_heard_for_long() {
    let mut scene = Scene::new(&[2, 3, 4, 5], &[ME, 6, 7]);
    let sent_to = |out: &[Output], seed: u8| {
        let sends =
            out.iter().filter(|one| matches!(one, Output::Send { to, .. } if *to == public(seed)));
        sends.count()
    };
    let first = scene.step(Input::Wanted(request()));
    assert_eq!((sent_to(&first, 6), sent_to(&first, 7)), (0, 0), "{first:?}");
    scene.pass(Duration::from_secs(4));
    let soon = scene.step(Input::Wanted(request()));
    assert_eq!((sent_to(&soon, 3) > 0, sent_to(&soon, 6)), (true, 0), "all members first");
    scene.pass(Duration::from_secs(1));
    let later = scene.step(Input::Wanted(request()));
    assert_eq!((sent_to(&later, 6), sent_to(&later, 7)), (1, 1));
    let again = scene.step(Input::Wanted(request()));
    assert_eq!(sent_to(&again, 6), 0, "not each time");
}

#[test]
fn a_client_hears_what_two_of_four_say_for_its_group_and_nothing_for_another() {
    let mut scene = Scene::new(&[2, 3, 4, 5], &[ME]);
    let elsewhere = About { group: Digest::of(Domain::new("test v1"), b"other"), ..about() };
    let leader = Seat { key: public(2), incarnation: 0 };
    let word = |bytes: &[u8]| {
        let slot = Slot { height: 4, index: 0 };
        Message::Word(Word { slot, leader, bytes: bytes.to_vec() })
    };
    let mut hear = |about: About, from: u8, bytes: &[u8]| {
        let bytes = about.encode(word(bytes));
        let out = scene.step(Input::Frame { from: public(from), bytes });
        out.iter().any(|one| matches!(one, Output::Hear(_)))
    };
    assert!(!hear(elsewhere, 2, b"yes") && !hear(elsewhere, 3, b"yes"));
    assert!(!hear(about(), 2, b"yes") && !hear(about(), 9, b"yes") && hear(about(), 3, b"yes"));
}

/// What a member answers that has noted where a machine is.
fn noted(users: Option<Vec<Profile>>) -> Option<Answer> {
    let machines: Vec<Neighbour> = Vec::new();
    Some(Answer::Joined(Box::new(Ticket { client: Client(9), machines, users })))
}

#[test]
fn a_machine_says_where_it_is_until_enough_members_have_noted_it() {
    let mut scene = Scene::new(&[2, 3, 4, 5], &[ME, 6]);
    let out = scene.step(Input::Own { join: join(ME), token: Some(7) });
    let first = Scene::asked(&out);
    assert_eq!(first.len(), announcing::CALLS_MAX, "some at a time, the members before all others");
    assert!(first.iter().all(|(_, to)| *to != public(6)));
    let mut asked = first;
    let mut rounds = 0;
    while rounds < 2 {
        let Some((token, _)) = asked.pop() else {
            rounds += 1;
            assert_eq!(Scene::asked(&scene.pass(Duration::from_secs(4))), []);
            asked = Scene::asked(&scene.pass(Duration::from_secs(1)));
            assert_eq!(asked.len(), 4, "nobody has noted it, and others are told once");
            continue;
        };
        asked.extend(Scene::asked(&scene.step(Input::Answered { token, answer: None })));
    }
    let answers = [Some(vec![]), None, None, None];
    let mut said = Vec::new();
    for (users, (token, _)) in answers.into_iter().zip(asked) {
        let answer = noted(users);
        said.push(scene.step(Input::Answered { token, answer }));
    }
    assert!(said[0].is_empty() && said[1].is_empty(), "one may lie: {said:?}");
    assert_eq!(said[2][0], Output::Serve(None));
    assert!(matches!(replies(&said[2])[..], [(7, Answer::Joined(_))]));
    assert_eq!(Scene::asked(&scene.pass(Duration::from_secs(60))), [], "it is noted");
}

#[test]
fn what_is_said_anew_takes_the_place_of_what_was_said_before() {
    let mut scene = Scene::new(&[2, 3, 4, 5], &[ME]);
    let before = Scene::asked(&scene.step(Input::Own { join: join(ME), token: Some(7) }));
    let out = scene.step(Input::Own { join: join(ME), token: Some(8) });
    assert!(is_refused(&out, 7, "newer"), "{out:?}");
    for (token, _) in before {
        let late = scene.step(Input::Answered { token, answer: noted(None) });
        assert_eq!(replies(&late), [], "an answer to what was said before counts for nothing");
    }
}

#[test]
fn a_certificate_is_renewed_in_time_by_whoever_can_here_and_the_founder_first() {
    let mut scene = Scene::new(&[2, 3, 4, 5], &[ME, 6]);
    scene.server.cell.as_mut().unwrap().expires = NOW + Renewer::LEAD + 10;
    assert_eq!(scene.step(Input::Seconds(NOW)), []);
    let mut asked = Scene::asked_to_renew(&scene.step(Input::Seconds(NOW + 11)));
    let mut order = Vec::new();
    while let Some((token, to)) = asked.pop() {
        order.push(to);
        let answer = (order.len() == 3)
            .then(|| Answer::Renewed(Box::new(Renewal::new(&issuer(), public(ME), NOW + 9_999))));
        let out = scene.step(Input::Answered { token, answer });
        let is_renewed = out.iter().any(|one| matches!(one, Output::Renewed(_)));
        assert_eq!(is_renewed, order.len() == 3);
        asked = Scene::asked_to_renew(&out);
    }
    assert_eq!((order.len(), order[0], order[1]), (3, public(ME), public(2)));
    assert_eq!(Scene::asked_to_renew(&scene.step(Input::Seconds(NOW + 99))), [], "once in a day");
}

#[test]
fn a_machine_that_is_alone_answers_its_own_client() {
    let mut scene = Scene::new(&[ME], &[]);
    scene.step(Input::Own { join: join(ME), token: None });
    assert!(matches!(scene.server.member().directory().users(Client(1)), Some(Users::Any)));
    let out = scene.step(Input::Wanted(request()));
    assert!(out.iter().any(|one| matches!(one, Output::Hear(_))), "{out:?}");
    let frame = wire::decode::<Frame>(&about().encode(Message::Request(request())));
    assert!(frame.is_ok());
}
