//! The side of a group that has files: its filters, and when others are told of them.

use base::{Duration, Instant, Machine};

use crate::{
    Found, Print,
    bloom::Shape,
    counting::Counting,
    fuse::{Fuse, Grid},
    message::{Body, Places, Tier, Update},
    recent::{Recent, Sizing},
    roll::{Change, Roll},
};

/// The filter of all paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The paper's Bloom filter.
    Bloom {
        /// Bits for each path.
        bits_per_file: u32,
    },
    /// A binary fuse filter that is built anew from time to time, with a small Bloom filter of what came
    /// since.
    Fuse,
}

/// H6: others are told when more than this part of a filter's bits has changed, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold(pub u32);

impl Threshold {
    /// One in a hundred, which the paper found best.
    pub const PERCENT: Threshold = Threshold(10_000_000);

    fn is_exceeded(self, filter: &Counting) -> bool {
        let bits = u64::from(filter.shape().bits());
        u64::from(filter.changed()) * 1_000_000_000 > u64::from(self.0) * bits
    }
}

/// What a group does with its filters.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The second level.
    pub kind: Kind,
    /// The first.
    pub recent: Sizing,
    /// When others are told.
    pub threshold: Threshold,
    /// Others are told of any change after this time, so that the last ones are not kept for ever.
    pub patience: Option<Duration>,
    /// Filters of all paths have room for a number of files in steps, eight for each doubling. So those of
    /// groups of about equal size have equal shapes and lie side by side. If not, room for exactly those
    /// that are there.
    pub is_stepped: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            kind: Kind::Fuse,
            recent: Sizing::default(),
            threshold: Threshold::PERCENT,
            patience: Some(Duration::from_secs(10)),
            is_stepped: true,
        }
    }
}

/// What can happen to a group's filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Somebody came for a path that is here.
    Used {
        /// The path.
        print: Print,
        /// How it was found.
        found: Found,
    },
    /// A path is here from now on.
    Added(Print),
    /// A path is not here any more.
    Removed(Print),
    /// Somebody has missed something and wants a filter whole.
    Wanted(Tier),
}

/// What a group wants others to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For all.
    Publish(Update),
    /// For whoever wanted it.
    Answer(Update),
}

/// A group's own filters.
#[derive(Debug)]
pub struct Home {
    settings: Settings,
    roll: Roll,
    recent: Recent,
    /// Of all paths, or of those that came since the last build.
    filter: Counting,
    /// How many paths `filter` has room for.
    room: u64,
    /// The static filter of all paths; none if there are none or too many.
    built: Option<Fuse>,
    version: u64,
    versions: [u64; 3],
    /// Since when something has not been told.
    untold_since: Option<Instant>,
}

impl Home {
    /// The filters of a group with these paths. Versions are greater than `version`, so that whoever
    /// remembers an earlier life of this group takes them for newer.
    pub fn new(
        settings: Settings,
        prints: Vec<Print>,
        version: u64,
        out: &mut Vec<Output>,
    ) -> Home {
        let mut home = Home {
            settings,
            roll: Roll::new(prints),
            recent: Recent::new(settings.recent),
            filter: Counting::new(Shape::for_files(1, 1)),
            room: 0,
            built: None,
            version,
            versions: [version; 3],
            untold_since: None,
        };
        home.build(out);
        home.publish_whole(Tier::Recent, out);
        home
    }

    /// How many paths there are.
    pub fn files(&self) -> u64 {
        self.roll.files()
    }

    /// How many paths the first level has room for.
    pub fn recent_files_max(&self) -> u64 {
        self.recent.files_max()
    }

    fn on_used(&mut self, now: Instant, print: Print, found: Found, out: &mut Vec<Output>) {
        if self.recent.use_path(now, print, found) {
            self.publish_whole(Tier::Recent, out);
        }
    }

    fn on_added(&mut self, print: Print, out: &mut Vec<Output>) {
        let change = self.roll.add(print);
        let is_counted = match self.settings.kind {
            Kind::Bloom { .. } => change != Change::No,
            Kind::Fuse => change == Change::Fresh,
        };
        if is_counted {
            self.filter.add(print);
        }
        self.build_if_outgrown(out);
    }

    fn on_removed(&mut self, print: Print, out: &mut Vec<Output>) {
        self.recent.remove(print);
        let change = self.roll.remove(print);
        let is_counted = match self.settings.kind {
            Kind::Bloom { .. } => change != Change::No,
            Kind::Fuse => change == Change::Fresh,
        };
        if is_counted {
            self.filter.remove(print);
        }
        self.build_if_outgrown(out);
    }

    fn on_wanted(&mut self, tier: Tier, out: &mut Vec<Output>) {
        let update = Update { tier, version: self.versions[tier.index()], body: self.whole(tier) };
        out.push(Output::Answer(update));
    }

    fn build_if_outgrown(&mut self, out: &mut Vec<Output>) {
        let is_outgrown = match self.settings.kind {
            Kind::Bloom { .. } => self.roll.files() > self.room + self.room / 8,
            // Those that are gone are still claimed by the static filter.
            Kind::Fuse => {
                self.roll.added() > self.room || self.roll.removed() > 16 + self.roll.files() / 16
            }
        };
        if is_outgrown {
            self.build(out);
        }
    }

    /// Builds the second level anew and tells everybody.
    fn build(&mut self, out: &mut Vec<Output>) {
        let files = self.roll.files();
        let roomy = if self.settings.is_stepped { step_up(files) } else { files };
        let prints = self.roll.merge();
        match self.settings.kind {
            Kind::Bloom { bits_per_file } => {
                self.room = roomy.max(64.min(files + 1));
                self.filter = Counting::new(Shape::for_files(self.room, bits_per_file));
                prints.iter().for_each(|&print| self.filter.add(print));
                self.publish_whole(Tier::All, out);
            }
            Kind::Fuse => {
                let is_some = (1..=Grid::FILES_MAX).contains(&files);
                self.built = if is_some { Fuse::build(prints, roomy) } else { None };
                self.room = (roomy / 32).max(64);
                self.filter = Counting::new(Shape::for_files(self.room, 16));
                // All paths first: whoever hears only the one has every path in either.
                self.publish_whole(Tier::All, out);
                self.publish_whole(Tier::Fresh, out);
            }
        }
    }

    fn publish_whole(&mut self, tier: Tier, out: &mut Vec<Output>) {
        if let Some(filter) = self.counting_mut(tier) {
            filter.take_changes();
        }
        let version = self.next_version(tier);
        out.push(Output::Publish(Update { tier, version, body: self.whole(tier) }));
    }

    /// A filter as it was last told.
    fn whole(&self, tier: Tier) -> Body {
        match (tier, self.settings.kind) {
            (Tier::Recent, _) => Body::Bits(self.recent.filter.told().clone()),
            (Tier::All, Kind::Fuse) => self.built.clone().map_or(Body::Nothing, Body::Fuse),
            (Tier::All, Kind::Bloom { .. }) | (Tier::Fresh, Kind::Fuse) => {
                Body::Bits(self.filter.told().clone())
            }
            (Tier::Fresh, Kind::Bloom { .. }) => Body::Nothing,
        }
    }

    /// The counting filter behind a tier, if there is one.
    fn counting_mut(&mut self, tier: Tier) -> Option<&mut Counting> {
        match (tier, self.settings.kind) {
            (Tier::Recent, _) => Some(&mut self.recent.filter),
            (Tier::All, Kind::Bloom { .. }) | (Tier::Fresh, Kind::Fuse) => Some(&mut self.filter),
            (Tier::All, Kind::Fuse) | (Tier::Fresh, Kind::Bloom { .. }) => None,
        }
    }

    /// Tells others of changes: of those beyond the threshold, or of all that are due.
    fn publish_changes(&mut self, is_due: bool, out: &mut Vec<Output>) {
        let threshold = self.settings.threshold;
        for tier in Tier::EACH {
            let Some(filter) = self.counting_mut(tier) else { continue };
            if filter.changed() == 0 || !(is_due || threshold.is_exceeded(filter)) {
                continue;
            }
            let places = Places::new(&filter.take_changes());
            let bytes = filter.told().words().len() * 8;
            let since = self.versions[tier.index()];
            let version = self.next_version(tier);
            let is_shorter = places.bytes() < bytes;
            let body = if is_shorter { Body::Changes { since, places } } else { self.whole(tier) };
            out.push(Output::Publish(Update { tier, version, body }));
        }
    }

    fn is_untold(&self) -> bool {
        self.recent.filter.changed() + self.filter.changed() > 0
    }

    fn next_version(&mut self, tier: Tier) -> u64 {
        self.version += 1;
        self.versions[tier.index()] = self.version;
        self.version
    }
}

impl Machine for Home {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Used { print, found } => self.on_used(now, print, found, out),
            Input::Added(print) => self.on_added(print, out),
            Input::Removed(print) => self.on_removed(print, out),
            Input::Wanted(tier) => self.on_wanted(tier, out),
        }
        self.publish_changes(false, out);
        let untold_since = self.untold_since.unwrap_or(now);
        self.untold_since = self.is_untold().then_some(untold_since);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        if self.wake_at().is_some_and(|at| at <= now) {
            self.publish_changes(true, out);
            self.untold_since = None;
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        Some(self.untold_since? + self.settings.patience?)
    }
}

/// The next of eight steps to a doubling: room that groups of about equal size share.
fn step_up(files: u64) -> u64 {
    let unit = files.max(64).ilog2() - 3;
    files.max(64).div_ceil(1 << unit) << unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_an_eighth_apart_at_the_most_and_are_their_own_steps() {
        for files in (0..5_000).chain([99_999, 1_000_000, 123_456_789]) {
            let step = step_up(files);
            assert!(step >= files && (files < 64 || step * 8 <= files * 9), "{files} to {step}");
            assert_eq!(step_up(step), step);
        }
    }
}
