//! A cell of groups that look paths up by their filters: the code of `locator` throughout, and a tally.

use base::{Instant, Machine, Rng, encode};
use locator::{
    Array, Bounds, Found, Group, Hint, Home, Print, Sizing,
    home::{Input, Kind, Output, Settings},
    message::Tier,
};

use super::{Point, Request, Trace};

/// Which levels there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Levels {
    /// The paper's HBA.
    Both,
    /// A pure Bloom array (PBA): the second level alone.
    All,
    /// Pure LRU arrays: the first level alone.
    Recent,
}

/// What came of look-ups. H11: misses and false hits apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    pub(crate) recent_hits: u64,
    pub(crate) all_hits: u64,
    pub(crate) misses: u64,
    pub(crate) false_hits: u64,
    /// Paths that were to be made: nobody has them, and no filter should say so.
    pub(crate) creations: u64,
    pub(crate) false_creations: u64,
    /// Updates sent to all, and their bytes.
    pub(crate) multicasts: u64,
    pub(crate) multicast_bytes: u64,
}

impl Score {
    pub(crate) fn lookups(&self) -> u64 {
        self.recent_hits + self.all_hits + self.misses + self.false_hits
    }

    /// Hits of all look-ups of paths that are there.
    pub(crate) fn hit_rate(&self) -> f64 {
        (self.recent_hits + self.all_hits) as f64 / self.lookups().max(1) as f64
    }

    /// Hits of the first level.
    pub(crate) fn recent_rate(&self) -> f64 {
        self.recent_hits as f64 / self.lookups().max(1) as f64
    }

    pub(crate) fn false_rate(&self) -> f64 {
        self.false_hits as f64 / self.lookups().max(1) as f64
    }

    /// Multicasts for each thousand look-ups.
    pub(crate) fn multicasts_per_mille(&self) -> f64 {
        1_000.0 * self.multicasts as f64 / self.lookups().max(1) as f64
    }
}

/// Which of so many groups has a file.
pub(crate) type Place = fn(file: u32, groups: u32) -> u32;

/// Any file may be at any group.
pub(crate) fn home_of(file: u32, groups: u32) -> u32 {
    (u64::from(file).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 % groups
}

/// The second level of the paper.
pub(crate) fn bloom(bits_per_file: u32) -> Kind {
    Kind::Bloom { bits_per_file }
}

/// Groups, and what one that is not among them knows of their filters. All groups hear the same, so one
/// array stands for all.
pub(crate) struct Cell {
    levels: Levels,
    groups: u32,
    place: Place,
    homes: Vec<Home>,
    pub(crate) array: Array,
    pub(crate) score: Score,
    now: u64,
    out: Vec<Output>,
}

impl Cell {
    /// The old files of a trace, each at its place, and `cold` more that nobody asks for.
    pub(crate) fn new(point: Point, trace: &Trace, cold: u64, place: Place) -> Cell {
        let Point { groups, levels, kind, recent, threshold } = point;
        let mut prints: Vec<Vec<Print>> = (0..groups).map(|_| Vec::new()).collect();
        for file in trace.old() {
            prints[place(file, groups) as usize].push(trace.prints[file as usize]);
        }
        let mut rng = Rng::new(cold);
        for file in 0..cold {
            let print = Print::from_words(rng.next_u64(), rng.next_u64());
            prints[(file % u64::from(groups)) as usize].push(print);
        }
        let recent = Sizing::fixed(recent);
        let settings = Settings { kind, recent, threshold, patience: None, is_stepped: false };
        let mut array = Array::new(Bounds { bytes_max: 4 << 30, ..Bounds::default() });
        (0..groups).for_each(|group| assert!(array.join(Group(group)), "there is room"));
        let mut cell = Cell {
            levels,
            groups,
            place,
            homes: Vec::new(),
            array,
            score: Score::default(),
            now: 0,
            out: Vec::new(),
        };
        for (group, prints) in (0..).zip(prints) {
            let home = Home::new(settings, prints, 0, &mut cell.out);
            cell.homes.push(home);
            cell.tell(group);
        }
        cell.score = Score::default();
        cell
    }

    /// One request, and what the group of its path makes of it.
    pub(crate) fn request(&mut self, request: Request, print: Print) -> Hint {
        let home = (self.place)(request.file, self.groups);
        let hint = self.array.look_up(print);
        let found = match hint {
            Hint::Recent(Group(group)) if group == home => Found::Recent,
            Hint::All(Group(group)) if group == home => Found::All,
            _ => Found::Walk,
        };
        let score = &mut self.score;
        match (request.is_creation, found, hint) {
            (true, _, hint) => {
                score.creations += 1;
                score.false_creations += u64::from(hint != Hint::Miss);
            }
            (false, Found::Recent, _) => score.recent_hits += 1,
            (false, Found::All, _) => score.all_hits += 1,
            (false, Found::Walk, Hint::Miss) => score.misses += 1,
            (false, Found::Walk, _) => score.false_hits += 1,
        }
        if request.is_creation {
            self.step(home, Input::Added(print));
        }
        if self.levels != Levels::All {
            self.step(home, Input::Used { print, found });
        }
        hint
    }

    fn step(&mut self, home: u32, input: Input) {
        self.now += 1;
        self.homes[home as usize].step(Instant::from_nanos(self.now), input, &mut self.out);
        if !self.out.is_empty() {
            self.tell(home);
        }
    }

    fn tell(&mut self, home: u32) {
        for output in std::mem::take(&mut self.out) {
            let (Output::Publish(update) | Output::Answer(update)) = output;
            let is_here = match self.levels {
                Levels::Both => true,
                Levels::All => update.tier != Tier::Recent,
                Levels::Recent => update.tier == Tier::Recent,
            };
            if !is_here {
                continue;
            }
            self.score.multicasts += 1;
            self.score.multicast_bytes += encode(&update).len() as u64;
            let taken = self.array.hear(Group(home), &update);
            assert_eq!(taken, Ok(()), "an honest update is taken");
        }
    }
}
