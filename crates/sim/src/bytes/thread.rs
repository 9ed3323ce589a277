//! The threads of a simulated machine: each goes on until it has to wait, one after the other, always in the same
//! order.

use std::{
    future::{self, Future},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use base::Instant;

use super::{house::House, tamper::Tamper};

/// A thread.
pub(crate) type Thread = Pin<Box<dyn Future<Output = ()>>>;

/// All of them, in the order in which they were started.
#[derive(Default)]
pub(crate) struct Threads(Vec<Thread>);

impl Threads {
    /// Lets all go on as far as they can.
    pub(crate) fn run<T: Tamper>(&mut self, house: &House<T>) {
        loop {
            self.0.append(&mut house.state().started);
            {
                let mut state = house.state();
                state.deadlines.clear();
                state.has_moved = false;
            }
            let mut context = Context::from_waker(Waker::noop());
            self.0.retain_mut(|thread| thread.as_mut().poll(&mut context).is_pending());
            let state = house.state();
            if !state.has_moved && state.started.is_empty() {
                return;
            }
        }
    }
}

impl<T: Tamper> House<T> {
    /// Starts a thread.
    pub(crate) fn start(&self, thread: impl Future<Output = ()> + 'static) {
        self.state().started.push(Box::pin(thread));
    }

    /// Waits until there is something.
    pub(crate) async fn wait<R>(&self, mut look: impl FnMut() -> Option<R>) -> R {
        future::poll_fn(|_| match look() {
            Some(found) => {
                self.state().has_moved = true;
                Poll::Ready(found)
            }
            None => Poll::Pending,
        })
        .await
    }

    /// The same, and until when at the latest.
    pub(crate) async fn wait_until<R>(
        &self,
        until: Instant,
        mut look: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        self.wait(|| {
            if let Some(found) = look() {
                return Some(Some(found));
            }
            let mut state = self.state();
            if state.now >= until {
                return Some(None);
            }
            state.deadlines.push(until);
            None
        })
        .await
    }

    /// Does nothing until then.
    pub(crate) async fn pause_until(&self, until: Instant) {
        _ = self.wait_until(until, || None::<()>).await;
    }
}
