//! A group that says anything: the client must neither panic nor grow.

use base::{Duration, FileId, Instant, Machine};
use directory::{
    Account, Act, Actor, Birth, Entry, File, Quota, Refusal, Sort,
    message::{Answer, Provision, Response, Value},
    record::{Access, Content, Lock, Numbering, Rare, Times},
};
use lease::{
    Field, Kind, Mode, Name, Scope,
    message::{Down, Downward, Grant, Recall, Refusal as LeaseRefusal},
};
use proptest::{collection::vec, prelude::*, sample::select};

use crate::{Call, Client, Input, Modes, Output, Settings};

fn file() -> impl Strategy<Value = FileId> {
    select(vec!["root", "1", "1.1", "1.2", "1.1.1", "4096", "4097"])
        .prop_map(|text| text.parse().unwrap())
}

fn name() -> impl Strategy<Value = Name> {
    select(vec!["a", "b", "c"]).prop_map(|text| Name::new(text.as_bytes()).unwrap())
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..20u64, Just(4_096), Just(u64::MAX - 1), Just(u64::MAX)]
}

fn scope() -> impl Strategy<Value = Scope> {
    let field = prop_oneof![
        select(vec![
            Field::Access,
            Field::Times,
            Field::Content,
            Field::Parent,
            Field::Locks,
            Field::Handles,
            Field::Mode(Mode::Read),
            Field::Children,
            Field::Whole,
            Field::Tree,
        ]),
        name().prop_map(Field::Child),
    ];
    (file(), field).prop_map(|(file, field)| field.of(&file))
}

fn kind() -> impl Strategy<Value = Kind> {
    select(Kind::ALL.to_vec())
}

fn sort() -> impl Strategy<Value = Sort> {
    select(vec![Sort::Regular, Sort::Directory, Sort::Symlink])
}

fn entry() -> impl Strategy<Value = Entry> {
    (file(), sort()).prop_map(|(file, sort)| Entry { file, sort })
}

fn record() -> impl Strategy<Value = File> {
    let numbers = (number(), number(), 0..4u32, file());
    (numbers, sort(), any::<u16>(), any::<bool>()).prop_map(
        |((serial, size, links, parent), sort, mode, is_rare)| {
            let lock = Lock {
                client: lease::Client(9),
                owner: serial,
                start: size,
                end: serial,
                is_exclusive: true,
            };
            let rare = Rare { locks: vec![lock], ..Rare::default() };
            File {
                serial,
                sort,
                access: Access { mode, uid: links, gid: links },
                times: Times { changed: i64::MAX, ..Times::default() },
                content: Content { size, allocated: size, ..Content::default() },
                links: if links == 3 { u32::MAX } else { links },
                parent,
                numbering: Numbering { names: size, next: size, creator: 1, creator_next: serial },
                rare: is_rare.then(|| Box::new(rare)),
            }
        },
    )
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        (file(), proptest::option::of(record()))
            .prop_map(|(file, record)| Value::File { file, record }),
        (file(), name(), proptest::option::of(entry()))
            .prop_map(|(directory, name, entry)| Value::Entry { directory, name, entry }),
        (file(), proptest::option::of(name()), vec((name(), entry()), 0..3), any::<bool>())
            .prop_map(|(directory, after, entries, is_all)| Value::Names {
                directory,
                after,
                entries,
                is_all
            }),
    ]
}

fn span() -> impl Strategy<Value = Duration> {
    select(vec![0, 20_000_000_000, 7_200_000_000_000, u64::MAX]).prop_map(Duration::from_nanos)
}

fn down() -> impl Strategy<Value = Down> {
    let grant = (scope(), vec(scope(), 0..2), kind(), number(), span(), vec(scope(), 0..2));
    let grant = grant.prop_map(|(scope, except, kind, serial, span, truths)| Grant {
        scope,
        except,
        kind,
        serial,
        span,
        truths,
    });
    let recall = (scope(), kind(), number(), scope(), any::<bool>());
    let recall = recall.prop_map(|(lease, kind, serial, part, keep)| Recall {
        lease,
        kind,
        serial,
        part,
        keep,
    });
    prop_oneof![
        6 => (1..8u64, vec(grant, 0..4))
            .prop_map(|(request, grants)| Down::Granted { request, grants }),
        1 => (1..8u64, select(vec![
            LeaseRefusal::OverBudget,
            LeaseRefusal::TooMany,
            LeaseRefusal::Denied,
        ]))
            .prop_map(|(request, why)| Down::Refused { request, why }),
        2 => vec(recall, 0..3).prop_map(Down::Recall),
        2 => Just(Down::Renewed),
        1 => Just(Down::Lost),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let refused = proptest::option::of((0..9u32, select(Refusal::ALL.to_vec())));
    let numbers = proptest::option::of((file(), number(), number()));
    let stock = (0..3u32, number(), number());
    let stock = stock.prop_map(|(uid, files, bytes)| (uid, Quota { files, bytes }));
    let is_over = (any::<bool>(), any::<bool>());
    let serials = proptest::option::of((number(), number()));
    let provision = (numbers, serials, proptest::option::of(stock), is_over);
    prop_oneof![
        (1..4u64, refused).prop_map(|(number, refused)| Answer::Applied { number, refused }),
        (1..8u64, vec(value(), 0..3))
            .prop_map(|(request, values)| Answer::Fetched { request, values }),
        (1..8u64, proptest::option::of(value()))
            .prop_map(|(request, value)| Answer::Listed { request, value }),
        (1..8u64, provision).prop_map(|(request, (numbers, serials, stock, is_over))| {
            let account = Account::default();
            let provision = Provision { numbers, serials, stock, is_over, account };
            Answer::Provided { request, provision }
        }),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let birth = Birth::default;
    prop_oneof![
        (file(), name()).prop_map(|(directory, name)| Call::Lookup { directory, name }),
        file().prop_map(|file| Call::GetAttr { file }),
        file().prop_map(|directory| Call::List { directory, after: None, count: 10 }),
        (file(), name()).prop_map(move |(directory, name)| Call::Do(Act::Mkdir {
            directory,
            name,
            mode: 0o777,
            birth: birth()
        })),
        (file(), name()).prop_map(|(directory, name)| Call::Do(Act::Unlink {
            directory,
            name,
            is_open: true
        })),
        (file(), name()).prop_map(|(directory, name)| Call::Do(Act::Rmdir { directory, name })),
        (file(), name(), file(), name()).prop_map(|(from, from_name, to, to_name)| {
            let over = directory::operation::Over::Replace;
            Call::Do(Act::Rename { from, from_name, to, to_name, over, is_open: false })
        }),
        (file(), number()).prop_map(|(file, size)| Call::Do(Act::SetContent {
            file,
            content: Content { size, allocated: size, ..Content::default() }
        })),
        (file(), number(), any::<bool>()).prop_map(|(file, version, is_live)| {
            Call::Do(Act::Keep { file, version, is_live, digest: None })
        }),
        file().prop_map(|file| Call::Open { file, modes: Modes::posix(true, true) }),
        (0..4u64).prop_map(|handle| Call::Close { handle }),
        (0..4u64).prop_map(|at| Call::Sync { handle: at.checked_sub(1) }),
        Just(Call::Settle),
    ]
}

#[derive(Clone, Debug)]
enum Event {
    Call(Call),
    Heard(Box<Response>, bool),
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let heard = (down(), vec(vec(value(), 0..3), 0..4), proptest::option::of(answer()), span());
    prop_oneof![
        2 => call().prop_map(Event::Call),
        6 => (heard, any::<bool>()).prop_map(|((body, values, answer, span), is_fresh)| {
            let stamp = Instant::END;
            let lease = Downward { session: 0, stamp, span, body };
            Event::Heard(Box::new(Response { lease, values, applied: 0, answer }), is_fresh)
        }),
        1 => (0..30_000u64).prop_map(Event::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn nothing_that_a_group_says_makes_a_client_panic_or_hang(events in vec(event(), 1..60)) {
        let settings = Settings { calls_max: 16, handles_max: 4, ..Settings::of(lease::Client(1)) };
        let mut client = Client::new(settings);
        let mut now = Instant::from_secs(1);
        let mut out = Vec::new();
        let mut session = 1;
        let mut open = 0i64;
        for (call, event) in events.into_iter().enumerate() {
            match event {
                Event::Call(what) => {
                    open += 1;
                    let (call, actor) = (call as u64, Actor::ROOT);
                    client.step(now, Input::Call { call, actor, time: 0, what }, &mut out);
                }
                Event::Heard(mut response, is_fresh) => {
                    response.lease.session = session;
                    response.lease.stamp = if is_fresh { now } else { Instant::END };
                    client.step(now, Input::Heard(*response), &mut out);
                }
                Event::Wait(millis) => {
                    now = now + Duration::from_millis(millis);
                    client.tick(now, &mut out);
                }
            }
            for output in out.drain(..) {
                match output {
                    Output::Send(request) => session = request.lease.session,
                    Output::Return { .. } => open -= 1,
                    Output::Lost { .. } | Output::Forget { .. } | Output::Recalled(_) => {}
                }
            }
            prop_assert!((0..=16).contains(&open), "{open} calls are open");
        }
    }
}
