//! Requests: a stream each, whose end is the end of the request, and an answer back.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use base::PublicKey;
use node::{Queries, mailroom::Sender, queries};
use quinn::{Connection, ReadToEndError, RecvStream, SendStream, VarInt};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{Duration, interval, sleep, timeout},
};

use crate::clock::Clock;

use super::{
    Asker, Reception,
    frame::Stop,
    hub::{Hub, Slot},
    link::{Close, Link},
};

/// Why a request is not answered, as the other end is told.
const BUSY: VarInt = VarInt::from_u32(1);
const FAILED: VarInt = VarInt::from_u32(2);

/// How often it is looked whether a stranger who has asked for nothing yet is known by now.
const KNOWN_LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Job {
    from: Asker,
    bytes: Vec<u8>,
    reply: oneshot::Sender<Vec<u8>>,
}

/// The threads that answer requests of others. What waits for them is bounded, and whose turn it is they are told.
pub(crate) struct Pool {
    state: Mutex<State>,
    stirred: Condvar,
    clock: Clock,
}

struct State {
    queries: Queries<Job>,
    is_over: bool,
}

impl Pool {
    pub(crate) fn start(
        limits: queries::Limits,
        reception: &Arc<dyn Reception>,
    ) -> (Arc<Pool>, Vec<JoinHandle<()>>) {
        let state = Mutex::new(State { queries: Queries::new(limits), is_over: false });
        let pool = Arc::new(Pool { state, stirred: Condvar::new(), clock: Clock });
        let start = |_| {
            let (pool, reception) = (Arc::clone(&pool), Arc::clone(reception));
            thread::spawn(move || pool.answer_all(&*reception))
        };
        let threads = (0..limits.threads.max(1)).map(start).collect();
        (pool, threads)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long somebody is not heard.
    fn rest(&self, from: &Asker) -> Duration {
        self.lock().queries.rest(self.clock.now(), &sender(from))
    }

    /// The answer, when it is there; none if there is no room, or whoever answers has panicked.
    fn answer(&self, from: Asker, bytes: Vec<u8>) -> Option<oneshot::Receiver<Vec<u8>>> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.lock();
        let (whose, job) = (sender(&from), Job { from, bytes, reply });
        let is_in = !state.is_over && state.queries.put(self.clock.now(), whose, job).is_ok();
        self.stirred.notify_one();
        is_in.then_some(answer)
    }

    /// Lets the threads end.
    pub(crate) fn stop(&self) {
        self.lock().is_over = true;
        self.stirred.notify_all();
    }

    /// What a thread is to do next. None when it is over and nothing waits that it may do.
    fn next(&self) -> Option<(Sender, Job)> {
        let mut state = self.lock();
        loop {
            let job = state.queries.begin(self.clock.now());
            if job.is_some() || state.is_over {
                return job;
            }
            state = self.stirred.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn answer_all(&self, reception: &dyn Reception) {
        while let Some((whose, Job { from, bytes, reply })) = self.next() {
            let used = self.clock.used();
            let is_awaited = || !reply.is_closed();
            let answer = is_awaited().then(|| {
                // A thread that panics has said why; the next request may be another.
                catch_unwind(AssertUnwindSafe(|| reception.on_ask(&from, bytes, &is_awaited)))
            });
            let answer = answer.and_then(Result::ok);
            let (size, took) = (answer.as_ref().map_or(0, Vec::len), self.clock.used() - used);
            self.lock().queries.end(self.clock.now(), whose, Duration::from_nanos(took), size);
            self.stirred.notify_one();
            if let Some(answer) = answer {
                // Whoever asked may have gone.
                _ = reply.send(answer);
            }
        }
    }
}

fn sender(from: &Asker) -> Sender {
    if from.is_known { Sender::Machine(from.key) } else { Sender::Stranger }
}

/// Serves the requests of a machine that is known. How many at a time is a limit of the connection.
pub(crate) async fn serve(hub: Arc<Hub>, key: PublicKey, link: Arc<Link>) {
    let mut asks = JoinSet::new();
    while let Ok((send, recv)) = link.connection.accept_bi().await {
        while asks.try_join_next().is_some() {}
        let (hub, link) = (Arc::clone(&hub), Arc::clone(&link));
        asks.spawn(async move {
            let _serving = link.begin_serving();
            let from = Asker { key, is_known: true };
            if let Err(stop) = answer(&hub, from, send, recv, hub.limits.ask_bytes_max).await {
                hub.expel(&key, &link.connection, stop);
            }
        });
    }
}

/// Serves the one request of somebody who is only here for that.
pub(crate) async fn host(hub: Arc<Hub>, connection: Connection, from: Asker, slot: Slot) {
    let one = async {
        let accepted = tokio::select! {
            accepted = connection.accept_bi() => accepted,
            // It is known by now, and believes that it is heard: it has to call again.
            () = known(&hub, &from) => return,
        };
        let Ok((send, recv)) = accepted else { return };
        let size_max = match from.is_known {
            true => hub.limits.ask_bytes_max,
            false => hub.limits.ask_stranger_bytes_max,
        };
        match answer(&hub, from.clone(), send, recv, size_max).await {
            Ok(()) => {}
            Err(stop) => hub.expel(&from.key, &connection, stop),
        }
    };
    _ = timeout(hub.limits.guest, one).await;
    connection.close(Close::Stranger.code(), b"one request, and that is over");
    drop(slot);
}

/// Waits until a stranger is none any more.
async fn known(hub: &Hub, from: &Asker) {
    let mut looks = interval(KNOWN_LOOK);
    while from.is_known || !hub.is_known(&from.key) {
        looks.tick().await;
    }
}

async fn answer(
    hub: &Hub,
    from: Asker,
    mut send: SendStream,
    mut recv: RecvStream,
    size_max: usize,
) -> Result<(), Stop> {
    let bytes = match recv.read_to_end(size_max).await {
        Ok(bytes) => bytes,
        Err(ReadToEndError::TooLong) => {
            return Err(Stop::Oversized { size: size_max.saturating_add(1), size_max });
        }
        Err(ReadToEndError::Read(_)) => return Ok(()),
    };
    let rest = hub.pool.rest(&from).max(hub.reception.rest(&from));
    if !rest.is_zero() {
        sleep(rest).await;
    }
    let Some(answer) = hub.pool.answer(from, bytes) else {
        hub.turned.asks.add(1);
        _ = send.reset(BUSY);
        return Ok(());
    };
    let answer = tokio::select! {
        answer = answer => answer,
        // Nobody waits for it any more.
        _ = send.stopped() => return Ok(()),
    };
    match answer {
        Ok(answer) if answer.len() <= hub.limits.answer_bytes_max => {
            if send.write_all(&answer).await.is_ok() {
                _ = send.finish();
                // Until all of it has arrived.
                _ = send.stopped().await;
            }
        }
        _ => _ = send.reset(FAILED),
    }
    Ok(())
}

/// Asks over a connection.
pub(crate) async fn ask(
    hub: &Hub,
    connection: &Connection,
    bytes: &[u8],
) -> Result<Vec<u8>, String> {
    let lost = |error: &dyn std::fmt::Display| {
        format!("the connection was lost ({error}); it may be tried again")
    };
    let (mut send, mut recv) = connection.open_bi().await.map_err(|error| hub.explain(&error))?;
    let written = send.write_all(bytes).await;
    // Whoever does not want to read all of it may still answer.
    if written.is_ok() {
        _ = send.finish();
    }
    match recv.read_to_end(hub.limits.answer_bytes_max).await {
        Ok(answer) => Ok(answer),
        Err(ReadToEndError::TooLong) => {
            Err("its answer is longer than any may be; do both run the same release?".into())
        }
        Err(ReadToEndError::Read(quinn::ReadError::Reset(BUSY))) => {
            Err("it has too much to do; try again later".into())
        }
        Err(ReadToEndError::Read(quinn::ReadError::Reset(_))) => {
            Err("it could not answer; its own log says why".into())
        }
        Err(ReadToEndError::Read(quinn::ReadError::ConnectionLost(error))) => {
            Err(hub.explain(&error))
        }
        Err(ReadToEndError::Read(error)) => Err(lost(&error)),
    }
}
