//! A machine with a good certificate and no vote sends four members all that it can, of everything: they go on, and
//! none loses its seat.
//!
//! It is a process of its own: this very program, run once more with [`FLOODER`] set. What it costs the others is
//! measured against the same time in which it burns as much of the processor and sends nothing, in slices that take
//! turns: here it shares the processors with its victims.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
    time::{Duration, Instant},
};

use base::{PublicKey, SecretKey};
use directory::message::{Ask, Needs, Request};
use group::{Ed25519, Message as Words, Notary as _, Sealable as _};
use lease::message::{Up, Upward};
use rustix::time::{ClockId, clock_gettime};
use wire::{About, Message, Query, Said};

use super::{cells::*, *};
use crate::{
    Asker, Lane, Limits, Network, NetworkSettings, Reception, Welcome, cell::Membership, key,
};

/// Where the machine lives that floods.
const FLOODER: &str = "CROFT_FLOODER";
/// For how many seconds it floods, and as many it does not. `cargo xtask long flood` asks for 60.
const SECONDS: &str = "CROFT_FLOOD_SECONDS";
/// How the flooder begins a line.
const MARK: &str = "flooder ";
/// How long a slice takes.
const SLICE: Duration = Duration::from_secs(10);
/// So much of the usual rate of synced writes is left, at least.
const SHARE_MIN: f64 = 0.8;
/// In the suite each machine does so much while it is flooded.
const WRITES: u64 = 40;

/// Runs only in the process that floods: it does what each line says, and answers what it has burnt of the processor,
/// and sent.
#[test]
fn a_machine_that_floods_says_what_it_has_done() {
    let Some(home) = env::var_os(FLOODER) else { return };
    let flooder = Flooder::start(Path::new(&home));
    println!("{MARK}ready");
    let (orders, told) = channel::<String>();
    thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if orders.send(line).is_err() {
                return;
            }
        }
    });
    let mut order = told.recv().unwrap_or_default();
    while !order.is_empty() {
        let (start, used, sent) = (Instant::now(), used(), flooder.sent.load(Ordering::Relaxed));
        let next = match order.strip_prefix("burn ") {
            Some(share) => burn(share.parse().unwrap(), &told),
            None => flooder.flood(&told),
        };
        let burnt = (self::used() - used).as_secs_f64() / start.elapsed().as_secs_f64();
        let sent = flooder.sent.load(Ordering::Relaxed) - sent;
        println!("{MARK}{burnt} {sent}");
        order = next;
    }
}

/// Processor time of this process.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Burns this share of one processor until there is another order; with more than one, several threads do.
fn burn(share: f64, told: &Receiver<String>) -> String {
    let is_over = AtomicBool::new(false);
    let (start, before) = (Instant::now(), used());
    // By the processor's own account: on a busy computer a thread that spins may have none of it.
    let is_behind = || used() - before < start.elapsed().mul_f64(share);
    thread::scope(|scope| {
        for _ in 0..share.ceil() as usize {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    match is_behind() {
                        true => (0..10_000).for_each(|_| std::hint::spin_loop()),
                        false => thread::park_timeout(Duration::from_millis(1)),
                    }
                }
            });
        }
        let next = told.recv().unwrap_or_default();
        is_over.store(true, Ordering::Relaxed);
        next
    })
}

/// Hears nothing.
struct Deaf;

impl Reception for Deaf {
    fn welcome(&self, _: &PublicKey) -> Welcome {
        Welcome::Known
    }

    fn on_frame(&self, _: &PublicKey, _: Lane, _: Vec<u8>) -> Duration {
        Duration::ZERO
    }

    fn on_ask(&self, _: &Asker, _: Vec<u8>, _: &dyn Fn() -> bool) -> Vec<u8> {
        Vec::new()
    }
}

/// A machine of the cell whose owner has something else in mind.
struct Flooder {
    network: Network,
    membership: Membership,
    key: SecretKey,
    victims: Vec<PublicKey>,
    /// Frames that were taken to be sent, and queries that were answered.
    sent: AtomicU64,
}

impl Flooder {
    fn start(home: &Path) -> Flooder {
        let (key, membership) = (key::read(&home.join("key")).unwrap(), Membership::read(home));
        let membership = membership.unwrap();
        let settings =
            NetworkSettings { key: key.clone(), bind: ANYWHERE, limits: Limits::default() };
        let network = Network::start(settings, Arc::new(Deaf)).unwrap();
        let victims: Vec<PublicKey> = membership.roll.seats.iter().map(|seat| seat.key).collect();
        for machine in &membership.machines {
            network.know(&machine.key, &machine.addresses);
        }
        Flooder { network, membership, key, victims, sent: AtomicU64::new(0) }
    }

    /// Floods until there is another order.
    fn flood(&self, told: &Receiver<String>) -> String {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for victim in &self.victims {
                scope.spawn(|| self.ask(victim, &is_over));
            }
            scope.spawn(|| self.send(&is_over));
            let next = told.recv().unwrap_or_default();
            is_over.store(true, Ordering::Relaxed);
            next
        })
    }

    /// Asks one of them again and again to be let in.
    fn ask(&self, victim: &PublicKey, is_over: &AtomicBool) {
        let join = self.membership.own_join(&self.key);
        let query = wire::encode(&Query::Join(Box::new(join)));
        while !is_over.load(Ordering::Relaxed) {
            match self.network.ask(victim, query.clone(), Duration::from_secs(2)) {
                Ok(_) => _ = self.sent.fetch_add(1, Ordering::Relaxed),
                Err(_) => thread::park_timeout(Duration::from_millis(10)),
            }
        }
    }

    /// Sends all that its outboxes take.
    fn send(&self, is_over: &AtomicBool) {
        let about = self.about();
        let words = |words: Words| about.encode(Message::Member(Box::new(words)));
        let noise = |count: usize| {
            // It begins like something for a member.
            let mut bytes = words(Words::Hello { nonce: 0 });
            bytes.truncate(bytes.len() - 9);
            bytes.resize(count, 0xff);
            bytes
        };
        let mut number = u64::from(std::process::id()) << 32;
        while !is_over.load(Ordering::Relaxed) {
            let mut is_full = true;
            for victim in &self.victims {
                number += 1;
                let letters = [
                    (Lane::Urgent, words(Words::Behind { height: number % 64, epoch: 1 })),
                    (Lane::Urgent, words(Words::Fetch { height: 1_000, from: 0 })),
                    (Lane::Urgent, self.wish(number, 0)),
                    (Lane::Ordinary, self.wish(number, 8_000)),
                    (Lane::Ordinary, noise(200 << 10)),
                    (Lane::Bulk, noise(1 << 20)),
                ];
                for (lane, bytes) in letters {
                    if self.network.send(victim, lane, bytes) {
                        self.sent.fetch_add(1, Ordering::Relaxed);
                        is_full = false;
                    }
                }
            }
            if is_full {
                thread::park_timeout(Duration::from_millis(1));
            }
        }
    }

    fn about(&self) -> About {
        About { group: self.membership.group(), epoch: self.membership.roll.epoch }
    }

    /// Something new to decide, with about so many bytes.
    fn wish(&self, number: u64, bytes: usize) -> Vec<u8> {
        let (client, group) = (self.membership.client, self.membership.group());
        let lease =
            Upward { session: 1, stamp: base::Instant::from_nanos(number), body: Up::Renew };
        let ask = (bytes > 0).then(|| Ask::Provide {
            request: number,
            needs: Needs { release: vec![FileId::ROOT; bytes], ..Needs::default() },
        });
        let request = Request { lease, ask };
        let said = Said { client, request: &request };
        let seal = Ed25519::new(self.key.clone()).seal(&said.sealed_bytes(&group));
        self.about().encode(Message::Sealed(request, seal))
    }
}

/// The process that floods. It ends with this.
struct Process {
    child: Child,
    told: Option<ChildStdin>,
    says: BufReader<ChildStdout>,
}

impl Process {
    fn start(home: &Home) -> Process {
        let name = "machine::tests::flood::a_machine_that_floods_says_what_it_has_done";
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(FLOODER, &home.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, says) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut process = Process { child, told, says };
        assert_eq!(process.line(), "ready");
        process
    }

    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.says.read_line(&mut line).unwrap() > 0, "the flooder is gone");
            if let Some((_, said)) = line.split_once(MARK) {
                return said.trim_end().to_owned();
            }
        }
    }

    fn tell(&mut self, order: &str) {
        writeln!(self.told.as_mut().unwrap(), "{order}").unwrap();
    }

    /// After a further order: the share of a processor that it has burnt for the one before, and how much it has sent.
    fn report(&mut self) -> (f64, u64) {
        let line = self.line();
        let (burnt, sent) = line.split_once(' ').unwrap();
        (burnt.parse().unwrap(), sent.parse().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.told.take());
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Four members that write, and one machine more.
struct Cell {
    cell: Vec<(Home, Machine)>,
    flooder: Home,
    /// How much each has written and synced.
    written: [AtomicU64; 4],
    /// The longest that one such write has taken.
    slowest: Mutex<Duration>,
}

impl Cell {
    fn new(name: &str) -> Cell {
        let (home, machine) = found(&format!("{name}-0"));
        let mut cell = vec![(home, machine)];
        for number in 1..4 {
            cell.push(join(&cell[0].0, &format!("{name}-{number}")));
        }
        until("growing", || cell.iter().all(|(_, machine)| members(machine) == 4));
        let flooder = Home::new(&format!("{name}-flooder"));
        let code = Machine::invite(&cell[0].0.0, HOUR).unwrap();
        Machine::join(&flooder.0, code.reveal(), ANYWHERE).unwrap();
        let (written, slowest) = (Default::default(), Mutex::default());
        Cell { cell, flooder, written, slowest }
    }

    /// One machine writes and syncs in a directory of its own until it is over.
    fn write(&self, number: usize, is_over: &AtomicBool) {
        let machine = &self.cell[number].1;
        let work = mkdir(machine, &FileId::ROOT, &format!("work-{number}-{:?}", Instant::now()));
        let mut count = 0;
        while !is_over.load(Ordering::Relaxed) {
            let start = Instant::now();
            mkdir(machine, &work, &count.to_string());
            machine.desk().call(&Actor::ROOT, Call::Sync { handle: None }).unwrap();
            count += 1;
            self.written[number].fetch_add(1, Ordering::Relaxed);
            let mut slowest = self.slowest.lock().unwrap();
            *slowest = start.elapsed().max(*slowest);
        }
    }

    fn written(&self) -> u64 {
        self.written.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Who has a vote, as each of them knows, and since which height.
    fn seats(&self) -> Vec<(Vec<String>, u64)> {
        let seats = |(_, machine): &(Home, Machine)| {
            let standing = machine.standing();
            let members = standing.machines.iter().filter(|machine| machine.is_member);
            let members: Vec<String> = members.map(|machine| machine.key.to_string()).collect();
            let count = standing.group.members as u64;
            (members, count)
        };
        self.cell.iter().map(seats).collect()
    }

    /// Has all four write while this goes on.
    fn while_writing<R>(&self, what: impl FnOnce() -> R) -> R {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for number in 0..4 {
                let is_over = &is_over;
                scope.spawn(move || self.write(number, is_over));
            }
            let result = what();
            is_over.store(true, Ordering::Relaxed);
            result
        })
    }
}

#[test]
fn a_flood_by_a_machine_without_a_vote_stops_nobody_and_costs_no_seat() {
    let cell = Cell::new("flood");
    let (before, mut flooder) = (cell.seats(), Process::start(&cell.flooder));
    cell.while_writing(|| {
        flooder.tell("flood");
        let start: Vec<u64> =
            cell.written.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        until("writing", || {
            let counts = cell.written.iter().zip(&start);
            counts.into_iter().all(|(count, start)| count.load(Ordering::Relaxed) >= start + WRITES)
        });
        flooder.tell("burn 0");
    });
    let (_, sent) = flooder.report();
    assert!(sent > 100, "that was no flood: {sent}");
    assert_eq!(cell.seats(), before);
    for (home, machine) in cell.cell {
        machine.stop().unwrap();
        drop(home);
    }
}

/// Runs only if it is asked for: it compares speeds, on a computer that should have nothing else to do.
#[test]
fn a_flood_leaves_most_of_the_rate_of_synced_writes() {
    let Some(seconds) = env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok()) else {
        return;
    };
    let cell = Cell::new("rate");
    let (before, mut flooder) = (cell.seats(), Process::start(&cell.flooder));
    let slices = Duration::from_secs(seconds).as_secs_f64() / SLICE.as_secs_f64();
    let mut written = [0; 2];
    let mut burnt = 0.0;
    cell.while_writing(|| {
        flooder.tell("burn 0");
        for _ in 0..slices.ceil() as usize {
            for is_flood in [true, false] {
                flooder.tell(&if is_flood { "flood".to_owned() } else { format!("burn {burnt}") });
                // Of the pause before.
                flooder.report();
                *cell.slowest.lock().unwrap() = Duration::ZERO;
                let (start, end) = (cell.written(), Instant::now() + SLICE);
                while Instant::now() < end {
                    thread::park_timeout(end - Instant::now());
                }
                let count = cell.written() - start;
                written[usize::from(!is_flood)] += count;
                flooder.tell("burn 0");
                let (used, sent) = flooder.report();
                if is_flood {
                    burnt = used;
                }
                let slowest = *cell.slowest.lock().unwrap();
                println!(
                    "{}: {count} synced writes in {SLICE:?}, the slowest in {slowest:?}; it burnt {used:.2} \
                     of a processor and sent {sent}",
                    if is_flood { "flooded" } else { "in peace" }
                );
            }
        }
    });
    let share = written[0] as f64 / written[1] as f64;
    println!("{} flooded and {} in peace: a share of {share:.2}", written[0], written[1]);
    assert_eq!(cell.seats(), before, "none has lost its seat");
    assert!(share >= SHARE_MIN, "{share}");
}
