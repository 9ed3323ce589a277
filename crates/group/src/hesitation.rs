//! A rescue that was heard and is not obeyed yet.
//!
//! The authority's word alone proves only that somebody has it: it may have been signed for a bad hour that is over, or
//! by a thief. So whoever hears one asks all members first, and obeys only if no quorum of them has answered for long.

use std::collections::BTreeSet;

use base::{Duration, Instant};

use crate::{
    batch::Decision,
    rescue::Rescue,
    seat::{Seat, Seats},
};

/// One that was heard, and what the members say who would be passed over.
#[derive(Clone, Debug)]
pub struct Hesitation {
    rescue: Decision,
    members: Seats,
    since: Instant,
    again_at: Instant,
    /// How often all were asked.
    asked: u32,
    /// Who has answered, and is one of them.
    answered: BTreeSet<Seat>,
}

impl Hesitation {
    /// Somebody shows a rescue, and these sit here as far as is known.
    pub fn new(rescue: Decision, members: Seats, now: Instant) -> Hesitation {
        let answered = BTreeSet::new();
        Hesitation { rescue, members, since: now, again_at: now, asked: 0, answered }
    }

    /// What was heard.
    pub fn rescue(&self) -> &Decision {
        &self.rescue
    }

    /// Tells answers to what it asks from others.
    pub fn nonce(&self) -> u64 {
        self.since.as_nanos()
    }

    /// So many answer that they decide: it is not obeyed.
    pub fn is_refuted(&self) -> bool {
        self.answered.len() >= self.members.quorum()
    }

    /// These sit here now, as far as is known: others are to be asked than before.
    pub fn ask_others(&mut self, members: &Seats, now: Instant) {
        if members.list() != self.members.list() {
            *self = Hesitation::new(self.rescue.clone(), members.clone(), now);
        }
    }

    /// It is shown again. If so many have answered long ago, they are asked anew: they may be gone since.
    pub fn on_shown_again(&mut self, span: Duration, now: Instant) {
        if self.is_refuted() && now.since(self.since) >= span {
            *self = Hesitation::new(self.rescue.clone(), self.members.clone(), now);
        }
    }

    /// A member answers, which stands at this height. Who goes by the rescue does not speak for those before it.
    pub fn on_answer(&mut self, from: Seat, height: u64) {
        let is_before = Rescue::number_at(height) < Rescue::number_at(self.rescue.height);
        if is_before && self.members.contains(&from) {
            self.answered.insert(from);
        }
    }

    /// Whom to ask now, and again after a while.
    pub fn ask(&mut self, now: Instant, repeat: Duration) -> Vec<Seat> {
        if self.is_refuted() || now < self.again_at {
            return Vec::new();
        }
        self.again_at = now + repeat;
        self.asked += 1;
        let silent = self.members.list().iter().filter(|seat| !self.answered.contains(seat));
        silent.copied().collect()
    }

    /// Whether all were asked for so long, and too few have answered. Asking counts and not time: a machine that has
    /// slept has heard nobody meanwhile.
    pub fn is_over(&self, span: Duration, repeat: Duration, now: Instant) -> bool {
        !self.is_refuted() && now >= self.again_at && repeat * self.asked >= span
    }

    /// When there is something to do.
    pub fn wake_at(&self) -> Option<Instant> {
        (!self.is_refuted()).then_some(self.again_at)
    }
}

#[cfg(test)]
mod tests {
    use base::PublicKey;

    use super::*;
    use crate::{
        seal::{Seal, Sealed},
        seat::Seat,
    };

    const SPAN: Duration = Duration::from_secs(30);
    const REPEAT: Duration = Duration::from_secs(1);

    fn seat(number: u8) -> Seat {
        Seat { key: PublicKey::from_bytes([number; 32]), incarnation: 0 }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(100 + seconds)
    }

    /// Four members, of whom the last is the survivor.
    fn heard() -> Hesitation {
        let (number, height, time, at_s) = (2, 40, at(0), 5);
        let what = Rescue { number, seat: seat(3), height, time, at: at_s };
        let rescue = Sealed { what, seal: Seal([0; 64]) }.decision();
        let members = Seats::new((0..4).map(seat).collect()).unwrap();
        Hesitation::new(rescue, members, at(0))
    }

    /// All are asked once a second from then on, and so many times. How many of them are, the last time.
    fn ask(heard: &mut Hesitation, from: u64, count: u64) -> usize {
        let mut asked = 0;
        for second in from..from + count {
            assert!(!heard.is_over(SPAN, REPEAT, at(second)), "{second}");
            asked = heard.ask(at(second), REPEAT).len();
            assert_eq!(heard.wake_at(), (!heard.is_refuted()).then_some(at(second + 1)));
        }
        asked
    }

    fn is_over(heard: &Hesitation, seconds: u64) -> bool {
        heard.is_over(SPAN, REPEAT, at(seconds))
    }

    #[test]
    fn it_is_over_when_all_were_asked_for_long_and_too_few_have_answered() {
        let mut heard = heard();
        assert_eq!(ask(&mut heard, 0, 2), 4);
        heard.on_answer(seat(0), 40);
        heard.on_answer(seat(1), 39);
        assert_eq!(ask(&mut heard, 2, 28), 2);
        assert!(is_over(&heard, 30));
    }

    #[test]
    fn a_machine_that_has_slept_asks_for_the_rest_of_the_time() {
        let mut heard = heard();
        ask(&mut heard, 0, 10);
        assert_eq!(ask(&mut heard, 500, 20), 4);
        assert!(is_over(&heard, 520));
    }

    #[test]
    fn a_quorum_that_answers_refutes_it_and_is_asked_anew_when_it_is_shown_long_after() {
        let mut heard = heard();
        for number in [0, 1, 1, 7] {
            heard.on_answer(seat(number), 50);
        }
        assert!(!heard.is_refuted(), "two of four and a stranger");
        heard.on_answer(seat(2), 50);
        assert!(heard.is_refuted() && !is_over(&heard, 1_000));
        assert_eq!((heard.ask(at(9), REPEAT).len(), heard.wake_at()), (0, None));
        heard.on_shown_again(SPAN, at(29));
        assert!(heard.is_refuted(), "they are not asked all the time");
        heard.on_shown_again(SPAN, at(31));
        assert_eq!((heard.is_refuted(), ask(&mut heard, 31, 30)), (false, 4));
        assert!(is_over(&heard, 61));
    }

    #[test]
    fn those_who_go_by_it_already_do_not_speak_for_the_others() {
        let mut heard = heard();
        for number in 0..4 {
            heard.on_answer(seat(number), 2 << 44);
        }
        ask(&mut heard, 0, 30);
        assert!(is_over(&heard, 30));
    }

    #[test]
    fn others_are_given_the_whole_time_to_answer() {
        let mut heard = heard();
        ask(&mut heard, 0, 20);
        let others = Seats::new((4..8).map(seat).collect()).unwrap();
        heard.ask_others(&others, at(20));
        heard.on_answer(seat(0), 50);
        assert_eq!(ask(&mut heard, 20, 30), 4);
        assert!(is_over(&heard, 50));
    }
}
