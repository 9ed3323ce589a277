//! What a decision costs each member of a group of four, beside the bare engine in the same run.
//!
//! `cargo bench -p group`. Real signatures, no log, no transport: what is said is handed over in memory. An
//! item is one decision at one member; the figure that matters is the ratio of a group's to the bare
//! engine's, with a batch of one small command and of a hundred of 200 bytes.

use std::collections::{BTreeMap, VecDeque};

use base::{Digest, Domain, Duration, Instant, Machine, SecretKey};
use divan::{Bencher, counter::ItemsCount};
use group::{Bare, Ed25519, Input, Message, Output, Replica, Seat, Settings, Tip};

fn main() {
    divan::main();
}

const COUNT: u8 = 4;
/// So many decisions are one sample: few, so that some samples are not disturbed by anything else.
const DECISIONS: u32 = 2;

/// Members that hand each other what they say.
struct Four {
    now: Instant,
    members: BTreeMap<Seat, Replica<Ed25519>>,
    leader: Seat,
    decided: usize,
    out: Vec<Output>,
}

impl Four {
    fn new() -> Four {
        let group = Digest::of(Domain::new("group bench"), b"");
        let now = Instant::from_secs(1);
        let key = |n| SecretKey::from_seed([n; 32]);
        let seat = |n| Seat { key: key(n).public(), incarnation: 0 };
        let tip = Tip::first((0..COUNT).map(seat).collect()).expect("they are a group");
        let settings = Settings::default();
        let member = |n| {
            let notary = Ed25519::new(key(n));
            let replica = Replica::new(settings.clone(), group, seat(n), notary, tip.clone(), now);
            (seat(n), replica)
        };
        let members = (0..COUNT).map(member).collect();
        Four { now, members, leader: tip.leader, decided: 0, out: Vec::new() }
    }

    fn input(&mut self, to: Seat, input: Input, mail: &mut VecDeque<(Seat, Seat, Message)>) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let replica = self.members.get_mut(&to).expect("it is a member");
            replica.step(self.now, input, &mut self.out);
            for output in self.out.drain(..) {
                match output {
                    Output::Sync { mark } => inputs.push_back(Input::Persisted { mark }),
                    Output::Send { to: other, message } => mail.push_back((to, other, message)),
                    Output::Decided(_) => {
                        self.decided += 1;
                        self.leader = self.members[&to].tip().leader;
                    }
                    Output::WantState { height } => {
                        inputs.push_back(Input::State { height, state: [0; 8].into() });
                    }
                    Output::Persist { .. }
                    | Output::Install { .. }
                    | Output::Misled { .. }
                    | Output::Stale
                    | Output::Astray(_) => {}
                }
            }
        }
    }

    /// Decides these commands: all know it in the end.
    fn decide(&mut self, commands: &[Vec<u8>]) {
        let mut mail = VecDeque::new();
        self.now = self.now + Duration::from_millis(2);
        let leader = self.leader;
        let message = Message::Commands(commands.to_vec());
        let from = *self.members.keys().find(|seat| **seat != leader).expect("there are others");
        self.input(leader, Input::Heard { from, message, is_fit: true }, &mut mail);
        while let Some((from, to, message)) = mail.pop_front() {
            self.input(to, Input::Heard { from, message, is_fit: true }, &mut mail);
        }
    }
}

fn commands(number: u32, count: u32, bytes: usize) -> Vec<Vec<u8>> {
    let command = |n: u32| {
        let mut command = vec![0; bytes];
        command[..4].copy_from_slice(&number.to_le_bytes());
        command[4..8].copy_from_slice(&n.to_le_bytes());
        command
    };
    (0..count).map(command).collect()
}

fn items() -> ItemsCount {
    ItemsCount::new(DECISIONS * u32::from(COUNT))
}

#[divan::bench(sample_count = 1_000)]
fn bare_engine(bencher: Bencher) {
    let mut bare = Bare::new(COUNT);
    bencher.counter(items()).bench_local(|| (0..DECISIONS).for_each(|_| bare.decide()));
}

#[divan::bench(args = [(1, 8), (100, 200)], sample_count = 1_000)]
fn group(bencher: Bencher, (count, bytes): (u32, usize)) {
    let (mut four, mut number) = (Four::new(), 0);
    bencher.counter(items()).bench_local(|| {
        for _ in 0..DECISIONS {
            number += 1;
            four.decide(&commands(number, count, bytes));
        }
        assert_eq!(four.decided, number as usize * usize::from(COUNT), "all decide all");
    });
}
