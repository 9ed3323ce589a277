//! What waits to be sent to one peer on one lane: a reservoir, bounded in frames and in bytes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::{limits::LaneLimits, room::Room};

/// The reservoir. Threads put frames in, the network's own thread takes them out.
pub(crate) struct Outbox {
    limits: LaneLimits,
    /// That all outboxes share.
    room: Arc<Room>,
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    /// At most `outbox_count_max`, and one more that was taken and could not be sent.
    frames: VecDeque<Vec<u8>>,
    /// Of all frames; at most `outbox_bytes_max`, and what one frame has.
    bytes: usize,
}

impl Outbox {
    pub(crate) fn new(limits: LaneLimits, room: Arc<Room>) -> Outbox {
        Outbox { limits, room, state: Mutex::default(), arrived: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a frame in, if there is room for it. Whether there was.
    pub(crate) fn put(&self, frame: Vec<u8>) -> bool {
        let mut state = self.state();
        let limits = &self.limits;
        let bytes = state.bytes.saturating_add(frame.len());
        let has_room = frame.len() <= limits.frame_bytes_max
            && bytes <= limits.outbox_bytes_max
            && state.frames.len() < limits.outbox_count_max
            && self.room.take(frame.len());
        if has_room {
            state.bytes = bytes;
            state.frames.push_back(frame);
            self.arrived.notify_one();
        }
        has_room
    }

    /// Puts a frame back that was taken last and not sent.
    pub(crate) fn put_back(&self, frame: Vec<u8>) {
        let mut state = self.state();
        self.room.take_back(frame.len());
        state.bytes += frame.len();
        state.frames.push_front(frame);
        self.arrived.notify_one();
    }

    /// The next frame, when there is one. Whoever stops waiting has taken none.
    pub(crate) async fn next(&self) -> Vec<u8> {
        loop {
            if let Some(frame) = self.take() {
                return frame;
            }
            self.arrived.notified().await;
        }
    }

    fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        let frame = state.frames.pop_front()?;
        state.bytes -= frame.len();
        self.room.give(frame.len());
        Some(frame)
    }

    /// Drops all frames, and says how many.
    pub(crate) fn clear(&self) -> usize {
        let state = std::mem::take(&mut *self.state());
        self.room.give(state.bytes);
        state.frames.len()
    }

    /// Frames and bytes that wait.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = self.state();
        (state.frames.len(), state.bytes)
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox() -> Outbox {
        outbox_in(&Arc::new(Room::new(100)))
    }

    fn outbox_in(room: &Arc<Room>) -> Outbox {
        let limits = LaneLimits { frame_bytes_max: 4, outbox_count_max: 3, outbox_bytes_max: 9 };
        Outbox::new(limits, Arc::clone(room))
    }

    #[test]
    fn all_outboxes_share_one_room_and_give_back_what_they_had() {
        let room = Arc::new(Room::new(10));
        let (one, two) = (outbox_in(&room), outbox_in(&room));
        assert!(one.put(vec![0; 4]) && one.put(vec![0; 3]) && !two.put(vec![0; 4]));
        assert!(two.put(vec![0; 3]));
        let taken = one.take().unwrap();
        assert!(two.put(vec![0; 4]));
        one.put_back(taken);
        assert_eq!(room.taken(), 14, "what was not sent is not lost for want of room");
        assert_eq!(one.clear(), 2);
        drop(two);
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn it_is_full_by_frames_or_by_bytes_and_takes_no_frame_that_is_too_large() {
        let outbox = outbox();
        assert!(!outbox.put(vec![0; 5]));
        assert!(outbox.put(vec![0; 4]) && outbox.put(vec![0; 4]) && !outbox.put(vec![0; 2]));
        assert!(outbox.put(vec![0; 1]) && !outbox.put(vec![]));
        assert_eq!(outbox.waiting(), (3, 9));
        assert_eq!(outbox.clear(), 3);
        assert_eq!(outbox.waiting(), (0, 0));
    }

    #[test]
    fn frames_come_in_order_and_what_was_not_sent_comes_first() {
        let outbox = outbox();
        (1..4).for_each(|byte| assert!(outbox.put(vec![byte])));
        let first = outbox.take().unwrap();
        outbox.put_back(first);
        let all: Vec<u8> = std::iter::from_fn(|| outbox.take()).flatten().collect();
        assert_eq!((all, outbox.waiting()), (vec![1, 2, 3], (0, 0)));
    }
}
