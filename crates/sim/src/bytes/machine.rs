//! A machine with programs, and threads that look after its bytes.

use base::{Duration, Instant, Machine as _, Rng};
use client::{Input, Settings};

use crate::Node;

use super::{
    actor::{Letter, Note, Out, decode},
    disk::Disk,
    house::House,
    program::Habit,
    tamper::Tamper,
    thread::Threads,
};

/// How often it looks after what is open.
const ROUND: Duration = Duration::from_secs(1);

pub(crate) struct Machine<T: Tamper> {
    house: House<T>,
    threads: Threads,
    settings: Settings,
    habits: Vec<Habit>,
    life: u32,
    has_begun: bool,
    rng: Rng,
    tamper: T,
}

impl<T: Tamper> Machine<T> {
    pub(crate) fn new(
        settings: Settings,
        habits: Vec<Habit>,
        mut rng: Rng,
        tamper: T,
    ) -> Machine<T> {
        let house = House::new(settings, 0, Disk::default(), rng.fork(), tamper.clone());
        let threads = Threads::default();
        let machine =
            Machine { house, threads, settings, habits, life: 0, has_begun: false, rng, tamper };
        machine.begin();
        machine
    }

    fn begin(&self) {
        for habit in &self.habits {
            self.house.start(self.house.clone().work(*habit));
        }
        self.house.start(give_up_all(self.house.clone()));
        self.house.start(look_at_all(self.house.clone()));
        self.house.start(tidy(self.house.clone()));
    }

    /// Nobody begins anything new.
    pub(crate) fn rest(&mut self) {
        self.house.state().is_resting = true;
    }

    pub(crate) fn house(&self) -> &House<T> {
        &self.house
    }

    pub(crate) fn deliver(&mut self, now: Instant, from: Node, letter: Letter, out: &mut Out<T>) {
        self.house.state().now = now;
        match letter {
            Letter::Downward(bytes) => {
                if let Some(response) = decode(&bytes) {
                    self.house.step(Input::Heard(response));
                }
            }
            Letter::Ask { number, life, query } => {
                if self.house.is_asked(from, number, life) {
                    self.house.start(self.house.clone().serve(from, number, query));
                }
            }
            Letter::Answer { number, answer } => self.house.on_answer(number, answer),
            Letter::Drop(number) => self.house.on_drop(from, number),
            Letter::Upward(_) => {}
        }
        self.go_on(out);
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        self.house.state().now = now;
        self.house.tick();
        self.go_on(out);
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let state = self.house.state();
        let first = (!self.has_begun).then_some(Instant::START);
        let deadlines = state.deadlines.iter().copied();
        deadlines.chain(state.client.wake_at()).chain(first).min()
    }

    /// The machine was killed: what was in memory is gone, what was on the disk is there.
    pub(crate) fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        out.mark("a machine starts again");
        self.threads = Threads::default();
        self.life += 1;
        let disk = std::mem::take(&mut self.house.state().disk);
        self.settings.session = self.house.state().client.session() + 1;
        self.house =
            House::new(self.settings, self.life, disk, self.rng.fork(), self.tamper.clone());
        self.house.state().now = now;
        self.house.note(Note::Restarted);
        self.house.step(Input::Begin);
        self.begin();
        self.go_on(out);
    }

    fn go_on(&mut self, out: &mut Out<T>) {
        self.has_begun = true;
        self.threads.run(&self.house);
        for (to, letter) in self.house.take_out() {
            out.send(to, letter);
        }
        let mut state = self.house.state();
        for note in state.notes.drain(..) {
            out.note(note);
        }
        for mark in std::mem::take(&mut state.marks) {
            out.mark(mark);
        }
    }
}

/// What others want is given up, one after the other.
async fn give_up_all<T: Tamper>(house: House<T>) {
    loop {
        let wanted = house
            .wait(|| {
                let recalled = &mut house.state().recalled;
                (!recalled.is_empty()).then(|| recalled.remove(0))
            })
            .await;
        house.give_up(wanted).await;
    }
}

/// What the directory may not know of is looked at, one after the other.
async fn look_at_all<T: Tamper>(house: House<T>) {
    loop {
        let (file, is_lost) = house
            .wait(|| {
                let mut state = house.state();
                let looks = super::house::once(std::mem::take(&mut state.looks));
                state.looks = looks;
                state.looks.first().cloned()
            })
            .await;
        _ = house.look(&file, is_lost).await;
        house.state().looks.retain(|look| *look != (file.clone(), is_lost));
    }
}

/// Looks after what is open, about once a second.
async fn tidy<T: Tamper>(house: House<T>) {
    loop {
        let next = house.now() + ROUND;
        house.pause_until(next).await;
        house.state().contests.grow_older();
        let opens: Vec<_> = house.state().opens.values().cloned().collect();
        for open in opens {
            house.settle_old(&open).await;
        }
    }
}
