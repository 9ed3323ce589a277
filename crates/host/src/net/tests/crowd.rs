//! Thousands that call one machine, which is a process of its own: what that costs it, and who is still served.
//!
//! The machine is this very program, run once more with [`BESIEGED`] set. It answers each line with how it stands.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, UdpSocket},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use base::SecretKey;
use quinn::{ClientConfig, Endpoint};
use tokio::{runtime::Builder, task::JoinSet, time::timeout};

use super::{
    super::{Limits, Welcome, hub, tls},
    rig::{LONG, Machine, key},
};

const BESIEGED: &str = "CROFT_BESIEGED";
/// How many call. `cargo xtask long connections` asks for ten thousand.
const COUNT: &str = "CROFT_CONNECTIONS";
/// How the machine begins a line.
const MARK: &str = "besieged ";
/// So many call at a time, from each of a few sockets.
const WAVE: usize = 100;
const SOCKETS: usize = 4;
/// So long is waited for an answer to a call that nobody lets through.
const SILENCE: Duration = Duration::from_millis(300);

/// Runs only in the process that plays the machine.
#[test]
fn a_machine_that_is_besieged_says_how_it_stands() {
    if env::var_os(BESIEGED).is_none() {
        return;
    }
    let machine = Machine::start_with(1, Limits::default());
    machine.welcomes_others(Welcome::Stranger);
    machine.welcomes_key(&key(2).public(), Welcome::Known);
    println!("{MARK}{}", machine.address());
    for line in std::io::stdin().lines() {
        if line.is_err() {
            break;
        }
        let standing = machine.network.standing().unwrap();
        let lines = machine.heard(|heard| heard.lines.clone());
        println!("{MARK}{}", serde_json::to_string(&(standing, lines)).unwrap());
    }
}

/// The process that plays the machine. It ends with this.
struct Besieged {
    child: Child,
    told: Option<ChildStdin>,
    says: BufReader<ChildStdout>,
    address: SocketAddr,
}

/// What it says of itself.
struct Said {
    handshakes: u64,
    guests: u64,
    turned_away: u64,
    lines: Vec<String>,
}

impl Besieged {
    fn start() -> Besieged {
        let name = "net::tests::crowd::a_machine_that_is_besieged_says_how_it_stands";
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(BESIEGED, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, says) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut besieged = Besieged { child, told, says, address };
        besieged.address = besieged.line().parse().unwrap();
        besieged
    }

    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.says.read_line(&mut line).unwrap() > 0, "the machine is gone");
            // The first one stands behind what the test runner says.
            if let Some((_, said)) = line.split_once(MARK) {
                return said.trim_end().to_owned();
            }
        }
    }

    fn standing(&mut self) -> Said {
        self.told.as_mut().unwrap().write_all(b"\n").unwrap();
        let (standing, lines): (serde_json::Value, Vec<String>) =
            serde_json::from_str(&self.line()).unwrap();
        let refused = standing["refused"].as_object().unwrap().values();
        Said {
            handshakes: standing["handshakes"].as_u64().unwrap(),
            guests: standing["guests"].as_u64().unwrap(),
            turned_away: refused.map(|count| count.as_u64().unwrap()).sum(),
            lines,
        }
    }

    /// Its memory, in KiB.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Besieged {
    fn drop(&mut self) {
        drop(self.told.take());
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn stranger(number: usize) -> SecretKey {
    let mut seed = [77; 32];
    seed[..8].copy_from_slice(&(number as u64).to_le_bytes());
    SecretKey::from_seed(seed)
}

/// A way on which everything gets there and nothing back, until it is dropped.
struct OneWay {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl OneWay {
    fn to(target: SocketAddr) -> OneWay {
        let inward = UdpSocket::bind("127.0.0.1:0").unwrap();
        let outward = UdpSocket::bind("127.0.0.1:0").unwrap();
        inward.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (address, is_over) = (inward.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut datagram = [0; 2_048];
            while !ends.load(Ordering::Relaxed) {
                if let Ok(count) = inward.recv(&mut datagram) {
                    _ = outward.send_to(&datagram[..count], target);
                }
            }
        });
        OneWay { address, is_over, thread: Some(thread) }
    }
}

impl Drop for OneWay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// Has so many strangers call there, and says how many were let in.
fn call_all(range: std::ops::Range<usize>, to: SocketAddr, patience: Duration) -> usize {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let let_in = Arc::new(AtomicUsize::new(0));
    runtime.block_on(async {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let numbers: Vec<usize> = range.collect();
        for wave in numbers.chunks(WAVE) {
            let mut calls = JoinSet::new();
            for number in wave {
                let identity = tls::Identity::new(&stranger(*number)).unwrap();
                let config = identity.client(Some(key(1).public()), tls::ASK).unwrap();
                let mut config = ClientConfig::new(Arc::new(config));
                config.transport_config(Arc::new(hub::transport(LONG)));
                let call = endpoint.connect_with(config, to, "croft").unwrap();
                let let_in = Arc::clone(&let_in);
                calls.spawn(async move {
                    let Ok(Ok(connection)) = timeout(patience, call).await else { return };
                    let_in.fetch_add(1, Ordering::Relaxed);
                    // It stays without a word, as long as it may.
                    _ = timeout(patience, connection.closed()).await;
                });
            }
            while calls.join_next().await.is_some() {}
        }
    });
    let_in.load(Ordering::Relaxed)
}

#[test]
fn a_crowd_costs_a_machine_little_and_friends_are_still_served() {
    let count = env::var(COUNT).ok().and_then(|count| count.parse().ok()).unwrap_or(400_usize);
    let mut machine = Besieged::start();
    let address = machine.address;
    let friend = Machine::start(2);
    assert!(friend.network.know(&key(1).public(), &[address]));
    let ask = || {
        let start = Instant::now();
        let answer = friend.network.ask(&key(1).public(), b"well?".to_vec(), LONG);
        assert_eq!(answer.unwrap(), b"known: well?");
        start.elapsed()
    };
    ask();
    let before = machine.resident();
    // Half of them would speak, of the others only the first words arrive.
    let way = OneWay::to(address);
    let callers: Vec<_> = (0..SOCKETS)
        .map(|socket| {
            let range = count * socket / SOCKETS..count * (socket + 1) / SOCKETS;
            let to = if socket % 2 == 0 { (address, LONG) } else { (way.address, SILENCE) };
            thread::spawn(move || call_all(range, to.0, to.1.min(Duration::from_secs(2))))
        })
        .collect();
    let (mut most, mut slowest, mut asked) = (before, Duration::ZERO, 0);
    let limits = Limits::default();
    while callers.iter().any(|caller| !caller.is_finished()) {
        let said = machine.standing();
        assert!(said.handshakes <= limits.handshakes_max as u64, "{} handshakes", said.handshakes);
        assert!(said.guests <= limits.guests_max as u64, "{} strangers", said.guests);
        (slowest, asked) = (slowest.max(ask()), asked + 1);
        most = most.max(machine.resident());
    }
    let let_in: usize = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
    let said = machine.standing();
    let turned_away = said.turned_away;
    println!(
        "{count} called from {SOCKETS} sockets: {let_in} were let in for a while, the machine turned away \
         {turned_away}; its memory went from {before} to {most} KiB; a friend asked {asked} times \
         meanwhile and waited at most {slowest:?}; {} lines for people",
        said.lines.len()
    );
    assert!(turned_away > 0 && asked > 0);
    // A handshake of each kind is a few dozen KiB, and there are only so many at a time.
    assert!(most - before < 96 << 10, "{most} KiB where {before} were before");
    let is_told = |words: &str| said.lines.iter().any(|line| line.contains(words));
    assert!(is_told("too many strangers") || is_told("too many handshakes"), "{:?}", said.lines);
    let newcomer = Machine::start(2);
    assert!(newcomer.network.know(&key(1).public(), &[address]));
    assert!(newcomer.network.ask(&key(1).public(), b"me too".to_vec(), LONG).is_ok());
}
