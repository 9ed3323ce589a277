//! A specimen of everything that travels, and the hash of its bytes.

use base::{Digest, Domain, Duration, FileId, Instant, PublicKey, SecretKey};
use directory::{
    Account, Act, Actor, Birth, Entry, File, Key, Operation, Quota, Refusal, Sort, Special,
    message::{Answer, Ask, Needs, Provision, Request, Response, Value},
    operation::{Changes, Moment, Over, When},
    record::{Access, Content, Lock, Numbering, Rare, Times},
};
use lease::{
    Client, Field, Kind, Mode, Name, Scope,
    message::{self, Down, Downward, Grant, Recall, Return, Up, Upward, Want},
};
use overlay::{
    Consent, Decree, Enrolment, Invitation, Issuer, IssuerRevocation, Patrons, Profile, Renewal,
    Revocation, Secret, Terms, Tidings, UserName, Users, decrees::Range,
};

use crate::{
    About, Envelope, Frame, Io, IoReply, Join, Lead, Message, Neighbour, Person, Pin, Query,
    Rights, Slot, Survivor, Ticket, Whereabouts, Whom, Word, encode,
};

fn id(text: &str) -> FileId {
    text.parse().unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

fn scope(field: Field) -> Scope {
    field.of(&id("1.2"))
}

fn up(body: Up) -> Upward {
    Upward { session: 3, stamp: Instant::from_secs(4), body }
}

fn down(body: Down) -> Downward {
    let (stamp, span) = (Instant::from_secs(4), Duration::from_secs(20));
    Downward { session: 3, stamp, span, body }
}

fn act(act: Act) -> Operation {
    let actor = Actor { uid: 1_000, gid: 100, groups: vec![4, 27] };
    Operation { actor, time: -5, act }
}

fn acts() -> Vec<Act> {
    let birth = || Birth { file: id("1.2.7"), serial: 99, is_leased: true };
    let (directory, file) = (|| id("1.2"), || id("1.2.7"));
    let changes = Changes {
        mode: Some(0o755),
        uid: Some(1),
        gid: None,
        accessed: Some(Moment::Now),
        modified: Some(Moment::At(7)),
    };
    vec![
        Act::Create { directory: directory(), name: name("a"), mode: 0o644, birth: birth() },
        Act::Mkdir { directory: directory(), name: name("d"), mode: 0o755, birth: birth() },
        Act::Mknod {
            directory: directory(),
            name: name("n"),
            mode: 0o600,
            special: Special::Block(0x801),
            birth: birth(),
        },
        Act::Symlink {
            directory: directory(),
            name: name("l"),
            target: b"../a".to_vec(),
            birth: birth(),
        },
        Act::Link { file: file(), directory: directory(), name: name("b") },
        Act::Unlink { directory: directory(), name: name("b"), is_open: true },
        Act::Rmdir { directory: directory(), name: name("d") },
        Act::Rename {
            from: directory(),
            from_name: name("a"),
            to: id("5"),
            to_name: name("c"),
            over: Over::Exchange,
            is_open: false,
        },
        Act::SetAttr { file: file(), changes },
        Act::SetXattr {
            file: file(),
            name: b"user.a".to_vec(),
            value: Some(b"v".to_vec()),
            when: When::Absent,
        },
        Act::SetContent {
            file: file(),
            content: Content {
                size: 5,
                allocated: 4_096,
                home: None,
                version: 9,
                digest: Some(Digest::from_bytes([7; 32])),
                is_live: true,
            },
        },
        Act::Keep { file: file(), version: 9, is_live: true, digest: None },
        Act::Lock { file: file(), owner: 8, start: 0, end: u64::MAX, hold: Some(true) },
        Act::Reap { file: file() },
    ]
}

fn record() -> File {
    let lock = Lock { client: Client(2), owner: 8, start: 1, end: 2, is_exclusive: true };
    File {
        serial: 99,
        sort: Sort::Regular,
        access: Access { mode: 0o644, uid: 1, gid: 2 },
        times: Times { accessed: 1, modified: -2, changed: 3 },
        content: Content { size: 5, ..Content::default() },
        links: 2,
        parent: id("1.2"),
        numbering: Numbering::default(),
        rare: Some(Box::new(Rare {
            target: Vec::new(),
            attributes: vec![(b"user.a".to_vec(), b"v".to_vec())],
            locks: vec![lock],
        })),
    }
}

fn values() -> Vec<Value> {
    let entry = Entry { file: id("1.2.7"), sort: Sort::Symlink };
    vec![
        Value::File { file: id("1.2.7"), record: Some(record()) },
        Value::Entry { directory: id("1.2"), name: name("a"), entry: None },
        Value::Names {
            directory: id("1.2"),
            after: Some(name("a")),
            entries: vec![(name("b"), entry)],
            is_all: true,
        },
    ]
}

fn requests() -> Vec<(&'static str, Request)> {
    let want = |field, kind| Want { scope: scope(field), kind };
    let wants = vec![
        want(Field::Child(name("a")), Kind::Write),
        want(Field::Handles, Kind::SelfWrite),
        want(Field::Mode(Mode::DenyWrite), Kind::OtherRead),
        want(Field::Tree, Kind::Read),
    ];
    let returned = Return {
        lease: scope(Field::Whole),
        kind: Kind::Write,
        serial: 9,
        part: scope(Field::Locks),
        kept: false,
        truths: vec![scope(Field::Handles)],
    };
    let renew = |ask| Request { lease: up(Up::Renew), ask: Some(ask) };
    let operations = acts().into_iter().map(act).collect();
    vec![
        ("ask", Request { lease: up(Up::Ask { request: 6, wants, together: true }), ask: None }),
        (
            "return",
            Request { lease: up(Up::Return { number: 2, returns: vec![returned] }), ask: None },
        ),
        ("renew", Request { lease: up(Up::Renew), ask: None }),
        ("batch", renew(Ask::Batch { number: 1, operations })),
        (
            "fetch",
            renew(Ask::Fetch {
                request: 7,
                keys: vec![Key::file(&id("1")), Key::entry(&id("1"), &name("a"))],
            }),
        ),
        ("list", renew(Ask::List { request: 8, directory: id("1.2"), after: Some(name("z")) })),
        (
            "provide",
            renew(Ask::Provide {
                request: 9,
                needs: Needs {
                    directory: Some(id("1.2")),
                    number: 4_100,
                    serial: 99,
                    release: vec![id("root")],
                    owner: Some(1_000),
                    bytes: 1 << 33,
                    give_back: vec![(0, None), (1_001, Some(Quota { files: 3, bytes: 4 }))],
                    free: Some(1 << 40),
                },
            }),
        ),
    ]
}

fn responses() -> Vec<(&'static str, Response)> {
    let grant = Grant {
        scope: scope(Field::Children),
        except: vec![scope(Field::Child(name("x")))],
        kind: Kind::Write,
        serial: 12,
        span: Duration::from_secs(7_200),
        truths: vec![],
    };
    let recall = Recall {
        lease: scope(Field::Whole),
        kind: Kind::Write,
        serial: 12,
        part: scope(Field::Content),
        keep: true,
    };
    let plain = |body| Response { lease: down(body), values: vec![], applied: 3, answer: None };
    let also = |answer| Response { answer: Some(answer), ..plain(Down::Renewed) };
    let granted = Response {
        values: vec![values()],
        ..plain(Down::Granted { request: 6, grants: vec![grant] })
    };
    let provision = Provision {
        numbers: Some((id("1.2"), 4_096, 5_120)),
        serials: Some((1 << 40, 2 << 40)),
        stock: Some((1_000, Quota { files: 10, bytes: 1 << 30 })),
        is_over: (false, true),
        account: Account {
            share: Quota { files: 1 << 20, bytes: 1 << 40 },
            used: Quota { files: 5, bytes: 6 },
            escrow: Quota { files: 7, bytes: 8 },
        },
    };
    let refused = message::Refusal::OverBudget;
    vec![
        ("granted", granted),
        ("refused", plain(Down::Refused { request: 6, why: refused })),
        ("recall", plain(Down::Recall(vec![recall]))),
        ("renewed", plain(Down::Renewed)),
        ("lost", plain(Down::Lost)),
        ("applied", also(Answer::Applied { number: 4, refused: None })),
        ("denied", also(Answer::Applied { number: 4, refused: Some((2, Refusal::Unknown)) })),
        ("fetched", also(Answer::Fetched { request: 7, values: values() })),
        ("listed", also(Answer::Listed { request: 8, value: values().pop() })),
        ("provided", also(Answer::Provided { request: 9, provision })),
    ]
}

/// What is said and needs no answer.
pub(crate) fn frames() -> Vec<(&'static str, Frame)> {
    let about = About { group: digest(3), epoch: 2 };
    let requests = requests().into_iter().map(|(name, said)| (name, Message::Request(said)));
    let members = members().into_iter().map(|(name, said)| (name, Message::Member(Box::new(said))));
    let all = requests.chain(members).chain(between_clients_and_members());
    let groups = all.map(|(name, message)| (name, Frame::Group(about, message)));
    let tidings = tidings().into_iter().map(|(name, said)| (name, Frame::Tidings(said)));
    groups.chain(tidings).collect()
}

fn between_clients_and_members() -> Vec<(&'static str, Message)> {
    let (renew, seal) = (Request { lease: up(Up::Renew), ask: None }, group::Seal([9; 64]));
    let leader = group::Seat { key: PublicKey::from_bytes([1; 32]), incarnation: 2 };
    let slot = Slot { height: 5, index: 1 };
    vec![
        ("sealed", Message::Sealed(renew, seal)),
        ("word", Message::Word(Word { slot, leader, bytes: vec![1, 2] })),
        ("whose", Message::Whose),
        ("changes", Message::Changes(changes())),
    ]
}

fn changes() -> Vec<group::Decision> {
    let changes = members().into_iter().find_map(|(_, message)| match message {
        group::Message::Decisions(decisions) => Some(decisions),
        _ => None,
    });
    changes.expect("members show decisions")
}

fn tidings() -> Vec<(&'static str, Tidings)> {
    vec![
        ("compare", Tidings::Compare(Range::default(), digest(7))),
        ("known", Tidings::Known(Range::default(), decrees())),
        ("lacking", Tidings::Lacking(decrees())),
        ("news", Tidings::News(decrees())),
    ]
}

/// What is asked out of turn.
pub(crate) fn queries() -> Vec<(&'static str, Query)> {
    let (group, key, serial, file) = (digest(3), machine().public(), 7, id("1.2.7"));
    let io = |io| Query::Io { serial, file: file.clone(), who: (5, 6), io };
    let decree = |decree| Query::Decree(Box::new(decree));
    let [revoke, revoke_issuer] = <[Decree; 2]>::try_from(decrees()).expect("there are two");
    let enrol = Enrolment::new(&issuer(), profile(), 5).expect("there are few groups");
    vec![
        ("join", Query::Join(Box::new(join()))),
        ("invited", Query::Invited(pin().digest())),
        ("read", Query::Read { serial, file: file.clone(), offset: 2, length: 3 }),
        ("find", Query::Find { group, serial }),
        ("look", Query::Look(file.clone())),
        ("who, by client", Query::Who(Whom::Client(Client(3)))),
        ("who, by key", Query::Who(Whom::Key(key))),
        ("decree of a machine", decree(revoke)),
        ("decree of an issuer", decree(revoke_issuer)),
        ("decree of a user", decree(Decree::Enrol(enrol))),
        ("survivor", Query::Survivor { group }),
        ("changes", Query::Changes { group, changes: changes() }),
        ("people", Query::People),
        ("renew", Query::Renew),
        ("io read", io(Io::Read { offset: 2, length: 3 })),
        ("io write", io(Io::Write { offset: Some(3), bytes: vec![1, 2] })),
        ("io resize", io(Io::Resize(3))),
        ("io sync", io(Io::Sync)),
        ("io tell", io(Io::Tell)),
        ("rights", Query::Rights { group, machine: key, serial, file: file.clone() }),
    ]
}

/// What is answered.
pub(crate) fn answers() -> Vec<(&'static str, crate::Answer)> {
    use crate::Answer;
    let users = Some(vec![profile()]);
    let ticket = Ticket { client: Client(3), machines: vec![neighbour()], users };
    let members = neighbour().addresses;
    let lead = Lead { pin: pin(), changes: changes(), members };
    let survivor = Survivor {
        reach: group::Reach { height: 4, bound: Some(1) },
        has_state: true,
        number: 1,
        epoch: 2,
        members: vec![machine().public()],
        time: Instant::from_secs(3),
        quiet_s: 6,
    };
    let renewal = Renewal::new(&issuer(), machine().public(), 9_999);
    vec![
        ("joined", Answer::Joined(Box::new(ticket))),
        ("refused", Answer::Refused("no".into())),
        ("invited", Answer::Invited(Box::new(lead))),
        ("bytes", Answer::Bytes(vec![1, 2, 3])),
        ("file", Answer::File(Some(id("1.2.7")))),
        ("looking", Answer::Looking),
        ("machine", Answer::Machine(neighbour())),
        ("decreed", Answer::Decreed),
        ("survivor", Answer::Survivor(Box::new(survivor))),
        ("heard", Answer::Heard),
        ("people", Answer::People(vec![Person { user: profile(), is_removed: true }])),
        ("renewed", Answer::Renewed(Box::new(renewal))),
        ("io bytes", Answer::Io(IoReply::Bytes(vec![1, 2]))),
        ("io done", Answer::Io(IoReply::Done)),
        ("io refused", Answer::Io(IoReply::Refused(28))),
        ("io away", Answer::Io(IoReply::Away)),
        ("io busy", Answer::Io(IoReply::Busy)),
        ("rights", Answer::Rights(Box::new(Rights { users: Users::Any, file: Some((1, 2, 3)) }))),
        ("denied", Answer::Denied),
    ]
}

fn machine() -> SecretKey {
    SecretKey::from_seed([2; 32])
}

fn issuer() -> Issuer {
    Issuer::by(&SecretKey::from_seed([1; 32]), machine(), 2_000)
}

fn profile() -> Profile {
    let name = UserName::new("alice").expect("it is a name");
    Profile { name, key: machine().public(), uid: 7, gid: 7, groups: [20].into() }
}

fn neighbour() -> Neighbour {
    let (client, key) = (Client(3), machine().public());
    let addresses = vec!["127.0.0.1:7".parse().expect("it is an address")];
    Neighbour { client, key, addresses, expires: 9, users: Users::Any }
}

fn invitation() -> Invitation {
    let (expires, patrons) = (1_000, Patrons::Any);
    let terms = Terms { count: 2, expires, certificate_expires_max: 9_000, patrons };
    Invitation::new(&issuer(), &Secret::new([3; 16]), terms).expect("the terms are in order")
}

fn pin() -> Pin {
    let founder = group::Seat { key: machine().public(), incarnation: 0 };
    let roll = group::Roll { epoch: 1, seats: vec![founder], leader: founder };
    Pin { offer: invitation().offer(), inviter: machine().public(), founder, roll }
}

fn join() -> Join {
    let (machine, authority) = (machine(), SecretKey::from_seed([1; 32]).public());
    let certificate = invitation().certify(&machine, 9_000).expect("it is as long as it may be");
    let certificate = certificate.renewed(Renewal::new(&issuer(), machine.public(), 9_999));
    let whereabouts = Whereabouts { addresses: neighbour().addresses, number: 4 };
    let consent = Consent::new(&SecretKey::from_seed([4; 32]), authority, machine.public());
    Join::new(certificate, whereabouts, &machine, 5).with(vec![consent])
}

fn digest(seed: u8) -> Digest {
    Digest::from_bytes([seed; 32])
}

/// One of each kind that is handed on.
fn decrees() -> Vec<Decree> {
    let [root, issuer] = [8, 9].map(|seed| SecretKey::from_seed([seed; 32]));
    let key = issuer.public();
    let issuer = Issuer::by(&root, issuer, 70);
    vec![
        Decree::Revoke(Revocation::new(&issuer, key, 5)),
        Decree::RevokeIssuer(IssuerRevocation::new(&root, key, 6)),
    ]
}

/// What members of a group say to one another, each kind once.
fn members() -> Vec<(&'static str, group::Message)> {
    use group::{
        Batch, Certificate, Change, Decision, Message, Passage, Point, Proposal, Rescue, Seal,
        Sealed, Seat, Step, Summary, Term, Tip, Unproven, Vote, Vouch, Wisher, Word,
    };
    let seat = |n: u8| Seat { key: PublicKey::from_bytes([n; 32]), incarnation: u32::from(n) };
    let (digest, seal) = (Digest::from_bytes([7; 32]), Seal([9; 64]));
    let (height, round, time) = (5, 1, Instant::from_secs(4));
    let vote = Sealed {
        what: Vote { height, round, step: Step::Precommit, value: Some(digest), seat: seat(1) },
        seal,
    };
    let proposal = Sealed {
        what: Proposal { height, round, value: digest, valid_round: Some(0), seat: seat(1) },
        seal,
    };
    let seals = vec![(seat(1), seal), (seat(2), seal)];
    let certificate =
        Certificate { height, round, step: Step::Prevote, value: digest, seals: seals.clone() };
    let votes = vec![(Step::Prevote, None, seat(2), seal)];
    let passage = Passage { height, round, is_precommit: false, votes };
    let batch = |change| {
        let (before, leader, commands) = (Digest::from_bytes([6; 32]), seat(1), vec![vec![1, 2]]);
        Batch { before, epoch: 2, leader, time, commands, change }
    };
    let wishes = vec![Wisher { seat: seat(1), until: time, seal }];
    let plan = Change::Plan { seats: vec![seat(1), seat(3)], wishes };
    let point = Point { height, digest };
    let enact = Change::Enact { seats: vec![seat(1), seat(3)], point: Some(point), ready: seals };
    let decision = |change| {
        let certificate = certificate.clone();
        Decision { height, batch: batch(Some(change)), certificate }
    };
    let decisions = vec![decision(enact.clone()), decision(Change::Prove(certificate.clone()))];
    let rescue = Rescue { number: 2, seat: seat(1), height, time, at: 8 };
    let rescue = Sealed { what: rescue, seal }.decision();
    let unproven = Unproven { height, batch: batch(Some(enact)), seats: vec![seat(1)] };
    let lineage = base::decode(&base::encode(&decisions), 1 << 20).expect("it is a lineage");
    let tip = Tip {
        height,
        last: digest,
        time,
        leader: seat(1),
        term: Term { height, time },
        epoch: 2,
        seats: vec![seat(1)],
        plan: Some(vec![seat(1), seat(3)]),
        unproven: Some(Box::new(unproven)),
        lineage,
    };
    let (epoch, seats) = (2, vec![seat(1), seat(3)]);
    let vouch = Vouch { height, state: digest, seat: seat(1) };
    vec![
        ("vote", Message::Word(Word::Vote(vote.clone(), true), None)),
        ("proposal", Message::Word(Word::Proposal(proposal), Some(batch(Some(plan))))),
        ("polka", Message::Word(Word::Polka(certificate.clone()), None)),
        ("passage", Message::Word(Word::Passage(passage), None)),
        ("commands", Message::Commands(vec![vec![1], vec![]])),
        ("hello", Message::Hello { nonce: 3 }),
        ("welcome", Message::Welcome { nonce: 3, time, height, seen: Some(vote) }),
        ("behind", Message::Behind { height, epoch }),
        ("decisions", Message::Decisions(decisions)),
        ("rescue", Message::Decisions(vec![rescue])),
        ("offer", Message::Offer(Summary { tip, state: digest, bytes: 3 }, Some(certificate))),
        ("fetch piece", Message::Fetch { height, from: 1 }),
        ("piece", Message::Piece { height, from: 1, bytes: vec![1, 2] }),
        ("wish", Message::Wish { epoch, seats: seats.clone(), until: time, seal }),
        ("ready", Message::Ready { epoch, seats, point, seal }),
        ("overdue", Message::Overdue(vec![1, 2])),
        ("vouch", Message::Vouch(Sealed { what: vouch, seal })),
    ]
}

/// If this fails, a node of today does not understand one of yesterday: raise `VERSION`.
#[test]
fn the_bytes_of_everything_that_travels_are_what_they_always_were() {
    fn lines<E: Envelope>(kind: &str, all: Vec<(&'static str, E)>) -> String {
        let digest = |one: &E| Digest::of(Domain::new("wire specimen"), &encode(one));
        all.iter().map(|(name, one)| format!("{kind} {name} {}\n", digest(one))).collect()
    }
    let pinned = include_str!("specimens.txt");
    let responses = lines("response", responses());
    let [frames, queries] = [lines("frame", frames()), lines("query", queries())];
    let now = [frames, responses, queries, lines("answer", answers())].concat();
    assert_eq!(now, pinned, "\n--- now:\n{now}");
}
