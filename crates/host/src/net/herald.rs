//! Lines for people, not more than somebody would read: a hostile peer must not fill the log.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use wire::plain;

/// So many lines at once, and then as many in each span.
pub(crate) const LINES_MAX: u32 = 10;
const SPAN: Duration = Duration::from_secs(10);

/// Who says lines.
pub(crate) struct Herald {
    say: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<State>,
    /// What was said.
    #[cfg(test)]
    pub(crate) lines: Mutex<Vec<String>>,
}

struct State {
    begun: Instant,
    said: u32,
    withheld: u64,
}

impl Herald {
    pub(crate) fn new(say: impl Fn(&str) + Send + Sync + 'static) -> Herald {
        let state = State { begun: Instant::now(), said: 0, withheld: 0 };
        Herald {
            say: Box::new(say),
            state: Mutex::new(state),
            #[cfg(test)]
            lines: Mutex::default(),
        }
    }

    /// Says a line, or counts it if there were too many.
    pub(crate) fn say(&self, line: &str) {
        self.say_at(Instant::now(), line);
    }

    fn say_at(&self, now: Instant, line: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(state.begun) >= SPAN {
            if state.withheld > 0 {
                (self.say)(&format!(
                    "{} more lines about the network were left out",
                    state.withheld
                ));
            }
            *state = State { begun: now, said: 0, withheld: 0 };
        }
        if state.said < LINES_MAX {
            state.said += 1;
            #[cfg(test)]
            self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
            // There may be words of others in it, as of whoever has ended a connection.
            (self.say)(&plain(line));
        } else {
            state.withheld += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn lines_beyond_what_people_read_are_counted_and_the_count_is_said_later() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let herald = Herald::new(move |line| sink.lock().unwrap().push(line.to_owned()));
        let start = Instant::now();
        (0..25).for_each(|line| herald.say_at(start, &line.to_string()));
        assert_eq!(lines.lock().unwrap().len(), 10);
        herald.say_at(start + SPAN * 2, "later");
        let lines = lines.lock().unwrap();
        assert_eq!(lines[10..], ["15 more lines about the network were left out", "later"]);
    }
}
