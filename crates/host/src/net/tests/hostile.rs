//! Peers that do not keep the rules: what they send, and what becomes of them.

use std::{net::UdpSocket, sync::Arc, thread::JoinHandle};

use base::Rng;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, TransportConfig, VarInt};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

use super::{
    super::{Lane, Limits, Welcome, hub, link::Close, tls},
    rig::{LONG, Machine, key, quick, until},
};

/// Somebody with a key and a socket who says what it likes.
pub(super) struct Raw {
    handle: Handle,
    endpoint: Endpoint,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Raw {
    pub(super) fn new() -> Raw {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let endpoint = {
            let _inside = runtime.enter();
            Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap()
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            _ = runtime.block_on(stopped);
        });
        Raw { handle, endpoint, stop: Some(stop), thread: Some(thread) }
    }

    /// Begins a call.
    pub(super) fn dial(&self, seed: u8, to: &Machine, protocol: &[u8]) -> quinn::Connecting {
        let identity = tls::Identity::new(&key(seed)).unwrap();
        let config = identity.client(Some(to.key), protocol).unwrap();
        let mut config = ClientConfig::new(Arc::new(config));
        let mut transport: TransportConfig = hub::transport(LONG);
        transport.max_concurrent_uni_streams(VarInt::from_u32(4));
        config.transport_config(Arc::new(transport));
        let _inside = self.handle.enter();
        self.endpoint.connect_with(config, to.address(), "croft").unwrap()
    }

    pub(super) fn call(&self, seed: u8, to: &Machine) -> Connection {
        self.handle.block_on(self.dial(seed, to, tls::LINK)).unwrap()
    }

    /// Says something on a stream of its own.
    fn say(&self, connection: &Connection, bytes: &[u8]) {
        self.handle.block_on(async {
            // Whoever is thrown out while it speaks is thrown out.
            let Ok(mut stream) = connection.open_uni().await else { return };
            _ = stream.write_all(bytes).await;
            _ = stream.finish();
        });
    }

    /// Begins to say something on a stream of its own, and does not end.
    pub(super) fn begin(&self, connection: &Connection, bytes: &[u8]) -> Option<quinn::SendStream> {
        self.handle.block_on(async {
            let mut stream = connection.open_uni().await.ok()?;
            _ = stream.write_all(bytes).await;
            Some(stream)
        })
    }

    pub(super) fn closed(&self, connection: &Connection) -> ConnectionError {
        self.handle.block_on(connection.closed())
    }

    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// Says something to a machine, which throws it out for that with a line that has these words.
fn check(bytes: &[u8], words: &str) {
    let machine = Machine::start(1);
    let raw = Raw::new();
    let connection = raw.call(9, &machine);
    raw.say(&connection, bytes);
    let end = raw.closed(&connection);
    assert!(Close::Garbage.is_why(&end), "{end}");
    let name = format!("{:?}", key(9).public());
    machine
        .hears(|heard| heard.lines.iter().any(|line| line.contains(words) && line.contains(&name)));
    let refused = machine.network.standing().unwrap().refused;
    assert_eq!(refused.garbage + refused.oversized, 1);
    until(|| machine.network.standing().unwrap().connections == 0);
}

#[test]
fn a_lane_that_there_is_not_ends_the_connection() {
    check(&[9], "a stream of lane 9");
}

#[test]
fn a_stream_with_nothing_on_it_ends_the_connection() {
    check(&[], "a stream without a lane");
}

#[test]
fn a_length_or_a_frame_that_is_cut_ends_the_connection() {
    check(&[0, 1, 2], "within a length");
    check(&[0, 3, 0, 0, 0, 7], "within a frame");
}

#[test]
fn a_frame_that_is_too_large_ends_the_connection_before_a_byte_of_it_comes() {
    check(&[0, 0xff, 0xff, 0xff, 0xff], "4294967295 bytes at once where at most 1048576 may be");
}

#[test]
fn noise_on_streams_ends_connections_and_nothing_else() {
    let machine = Machine::start(1);
    let raw = Raw::new();
    let mut rng = Rng::new(21);
    for _ in 0..40 {
        let connection = raw.call(9, &machine);
        let size = 1 + rng.index(300);
        // A first byte that no lane has, nor the farewell.
        let mut noise: Vec<u8> = (0..size).map(|_| rng.next_u64() as u8).collect();
        noise[0] = 3 + rng.below(250) as u8;
        raw.say(&connection, &noise);
        raw.closed(&connection);
        until(|| machine.network.standing().unwrap().connections == 0);
    }
    assert_eq!(machine.network.standing().unwrap().refused.garbage, 40);
    // Ten lines of forty, so nobody fills the log.
    assert!(machine.heard(|heard| heard.lines.len()) <= 20);
    let friend = Machine::start(2);
    friend.knows(&machine);
    assert!(friend.network.ask(&machine.key, b"well?".to_vec(), LONG).is_ok());
}

#[test]
fn a_second_stream_of_one_lane_ends_the_connection() {
    let machine = Machine::start(1);
    let raw = Raw::new();
    let connection = raw.call(9, &machine);
    raw.say(&connection, &[0, 1, 0, 0, 0, 7]);
    machine.hears(|heard| heard.frames == [(key(9).public(), Lane::Urgent, vec![7])]);
    raw.say(&connection, &[0, 1, 0, 0, 0, 7]);
    assert!(Close::Garbage.is_why(&raw.closed(&connection)));
    assert_eq!(machine.heard(|heard| heard.frames.len()), 1);
}

#[test]
fn garbage_datagrams_are_not_even_noticed() {
    let machine = Machine::start(1);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut rng = Rng::new(22);
    for _ in 0..3_000 {
        let size = rng.index(1_400);
        let mut noise: Vec<u8> = (0..size).map(|_| rng.next_u64() as u8).collect();
        if let Some(first) = noise.first_mut().filter(|_| rng.chance(0.5)) {
            // As the first packet of a connection begins.
            *first |= 0xc0;
        }
        _ = socket.send_to(&noise, machine.address());
    }
    let friend = Machine::start(2);
    friend.knows(&machine);
    assert!(friend.network.ask(&machine.key, b"well?".to_vec(), LONG).is_ok());
    let standing = machine.network.standing().unwrap();
    assert_eq!((standing.connections, standing.guests, standing.handshakes), (1, 0, 0));
}

#[test]
fn another_version_is_refused_and_the_line_says_so() {
    let machine = Machine::start(1);
    let raw = Raw::new();
    let refused = raw.wait(raw.dial(9, &machine, b"croft/2"));
    assert!(refused.is_err());
    machine.hears(|heard| heard.lines.iter().any(|line| line.contains("speaks another version")));
    assert_eq!(machine.network.standing().unwrap().refused.version, 1);
}

#[test]
fn a_peer_that_never_reads_fills_only_its_own_outbox() {
    let (machine, friend) = (Machine::start(1), Machine::start(2));
    let raw = Raw::new();
    let connection = raw.call(9, &machine);
    until(|| machine.network.standing().unwrap().connections == 1);
    let sloth = key(9).public();
    let mut sent = 0;
    let size = 64 << 10;
    while machine.network.send(&sloth, Lane::Bulk, vec![0; size]) {
        sent += size;
        assert!(sent < 256 << 20, "there is no bound");
        until(|| {
            let lane = &machine.network.standing().unwrap().peers[0].lanes[2];
            // As much as it may take is on its way, or the outbox is full.
            lane.bytes_out as usize + lane.waiting_bytes + size >= sent
        });
    }
    assert!(!machine.network.send(&sloth, Lane::Bulk, vec![0; size]));
    let said = format!("{sloth:?} takes what it is sent too slowly, or not at all");
    let lines = machine.heard(|heard| heard.lines.iter().filter(|l| l.contains(&said)).count());
    assert_eq!(lines, 1, "people are told, and once");
    assert!(machine.network.send(&sloth, Lane::Urgent, vec![0]), "its other lanes are free");
    machine.knows(&friend);
    assert!(machine.network.send(&friend.key, Lane::Bulk, b"hello".to_vec()));
    friend.hears(|heard| heard.frames.len() == 1);
    connection.close(VarInt::from_u32(0), b"");
}

#[test]
fn one_machine_has_no_more_than_two_connections() {
    let machine = Machine::start_with(1, Limits { stall: LONG, ..quick() });
    let raw = Raw::new();
    let connections: Vec<_> = (0..6).map(|_| raw.call(9, &machine)).collect();
    until(|| machine.network.standing().unwrap().refused.crowded == 4);
    let standing = machine.network.standing().unwrap();
    assert_eq!((standing.connections, standing.peers[0].connections), (2, 2));
    let is_open = |connection: &&Connection| connection.close_reason().is_none();
    until(|| connections.iter().filter(is_open).count() == 2);
}

#[test]
fn nobody_calls_with_our_own_key() {
    let machine = Machine::start(1);
    let raw = Raw::new();
    let connection = raw.call(1, &machine);
    assert!(Close::Unwelcome.is_why(&raw.closed(&connection)));
    assert!(!machine.network.know(&machine.key, &[machine.address()]));
}

#[test]
fn a_stranger_that_stays_is_shown_out() {
    let limits = Limits { guest: std::time::Duration::from_millis(50), ..quick() };
    let machine = Machine::start_with(1, limits);
    machine.welcomes_others(Welcome::Stranger);
    let raw = Raw::new();
    let connection = raw.call(9, &machine);
    assert!(Close::Stranger.is_why(&raw.closed(&connection)));
    until(|| machine.network.standing().unwrap().guests == 0);
}
