//! The same machines as processes, each with a UDP socket of its own on the loopback.
//!
//! The program starts itself again for each of them, as `croft papers peer`. A child tells its address on
//! stdout, is told the others' on stdin, lives for its time, and tells what it has counted. Its stdin stays
//! open as long as its parent lives, however that ends: a child whose stdin has closed ends too.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real processes, sockets and a real clock are what is compared with"
)]

use std::{
    io::{BufRead, BufReader, ErrorKind, Write, stdin, stdout},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, TryRecvError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::peer::{OCTETS_MAX, Peer, Send, Traffic};
use crate::Failure;

/// Who has heard nothing for so long after the end has heard everything.
const QUIET: Duration = Duration::from_millis(1_500);
/// How much longer than its time a child may take for each thing that it is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a child looks whether its parent is still there.
const LOOK: Duration = Duration::from_millis(200);

/// What a child is told.
#[derive(Serialize, Deserialize)]
struct Orders {
    /// Which of them it is.
    own: usize,
    seed: u64,
    seconds: u64,
    /// Where all of them are.
    addresses: Vec<SocketAddr>,
}

fn failure(what: &str, reason: impl ToString) -> Failure {
    Failure::Input { what: what.into(), reason: reason.to_string() }
}

/// Children that do not outlive this.
struct Household(Vec<Child>);

impl Drop for Household {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Who has ended can't be ended again, and that is all that can go wrong.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Lets so many processes be a network, and answers what each has counted.
pub(super) fn run(count: usize, seed: u64, seconds: u64) -> Result<Vec<Traffic>, Failure> {
    let program = std::env::current_exe().map_err(|error| failure("the own program", error))?;
    let mut household = Household(Vec::new());
    for _ in 0..count {
        let mut command = Command::new(&program);
        command.args(["papers", "peer"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| failure("a process for a machine", error))?;
        household.0.push(child);
    }
    let lines: Vec<Receiver<String>> =
        household.0.iter_mut().map(|c| lines(c.stdout.take())).collect();
    let addresses: Vec<SocketAddr> = hear_all(&lines, PATIENCE)?;
    for (own, child) in household.0.iter_mut().enumerate() {
        let orders = Orders { own, seed, seconds, addresses: addresses.clone() };
        let told = child.stdin.as_mut().map(|stdin| writeln!(stdin, "{}", json(&orders)));
        told.transpose().map_err(|error| failure("the orders of a process", error))?;
    }
    hear_all(&lines, Duration::from_secs(seconds) + QUIET + PATIENCE)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and addresses can be written")
}

/// What is said on there, line by line, until nobody is left to say anything.
fn lines(from: Option<impl std::io::Read + std::marker::Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(from?).lines().map_while(Result::ok);
        lines.map_while(|line| sender.send(line).ok()).last()
    });
    receiver
}

/// The next line of each, within this time together.
fn hear_all<T: DeserializeOwned>(
    lines: &[Receiver<String>],
    within: Duration,
) -> Result<Vec<T>, Failure> {
    let start = Instant::now();
    lines.iter().map(|lines| hear(lines, within.saturating_sub(start.elapsed()))).collect()
}

fn hear<T: DeserializeOwned>(lines: &Receiver<String>, within: Duration) -> Result<T, Failure> {
    let line = lines.recv_timeout(within);
    let line = line.map_err(|error| failure("what a process has to say", error))?;
    serde_json::from_str(&line).map_err(|error| failure("what a process said", error))
}

/// Lives as one machine: what a child does. Its parent speaks on stdin and listens on stdout.
pub fn live() -> Result<(), Failure> {
    let fail = |error: std::io::Error| failure("a machine of K-E13", error);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
    say(&socket.local_addr().map_err(fail)?).map_err(fail)?;
    let parent = lines(Some(stdin()));
    let Orders { own, seed, seconds, addresses } = hear(&parent, PATIENCE)?;
    let peer = Peer::network(addresses.len(), seed).into_iter().nth(own);
    let peer =
        peer.ok_or_else(|| failure("the orders of a process", "no machine has its number"))?;
    match serve(peer, &socket, &addresses, seconds, &parent).map_err(fail)? {
        Some(traffic) => say(&traffic).map_err(fail),
        None => Ok(()),
    }
}

fn say(what: &impl Serialize) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{}", json(what))?;
    out.flush()
}

/// Lives by the clock of the computer; nothing to tell if the parent is gone.
fn serve(
    mut peer: Peer,
    socket: &UdpSocket,
    addresses: &[SocketAddr],
    seconds: u64,
    parent: &Receiver<String>,
) -> std::io::Result<Option<Traffic>> {
    let (start, end) = (Instant::now(), seconds * 1_000_000);
    let (mut out, mut buffer) = (Vec::new(), [0; 2 * OCTETS_MAX]);
    // When it last heard anything, or when its time ends, if that is later.
    let mut heard = start + Duration::from_micros(end);
    while parent.try_recv() != Err(TryRecvError::Disconnected) {
        let now = start.elapsed().as_micros() as u64;
        // However late a process comes to it, it does what was due before the end, and nothing after.
        peer.tick(now.min(end - 1), &mut out);
        for Send { to, octets } in out.drain(..) {
            socket.send_to(&octets, addresses[to])?;
        }
        let is_over = now >= end;
        if heard.elapsed() >= QUIET || now >= end + PATIENCE.as_micros() as u64 {
            return Ok(Some(peer.traffic));
        }
        let wait = Duration::from_micros(peer.wake_at().saturating_sub(now).max(1));
        socket.set_read_timeout(Some(if is_over { LOOK } else { wait.min(LOOK) }))?;
        match socket.recv_from(&mut buffer) {
            Ok((size, _)) => {
                heard = heard.max(Instant::now());
                peer.take(start.elapsed().as_micros() as u64, &buffer[..size], &mut out);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
