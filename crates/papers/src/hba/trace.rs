//! Generator G5: requests for paths as the paper's two traces have them, as far as it says how those are.
//!
//! The traces are lost. What is known: which part of all files is active, requests a file, and the part of
//! active files that is new (H15). Here files are drawn by Zipf's law from all of them, and each draw is a
//! visit: a run of requests (stat, open, close and so on) among those of other visits under way. The trace
//! is made more intense as the paper does it: several traces at once, each under a prefix of its own.

use base::Rng;
use locator::{Print, Salt};

use crate::Trial;

/// What a trace is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    /// Traces at once, each with a prefix.
    pub(crate) traces: u64,
    /// Active files of each, about.
    pub(crate) active: f64,
    /// Requests for each active file.
    pub(crate) requests_per_file: f64,
    /// Active files of all files.
    pub(crate) active_share: f64,
    /// New files of the active ones.
    pub(crate) new_share: f64,
    /// Requests of a visit, on average.
    pub(crate) visit: f64,
    /// Visits under way at a time in each trace.
    pub(crate) open: usize,
    /// The exponent of Zipf's law.
    pub(crate) zipf: f64,
}

impl Profile {
    /// The profile that a plan states under a prefix (`res_` or `hp_`), for this many traces.
    pub(crate) fn of(trial: &Trial, prefix: &str, traces: u64) -> Profile {
        let constant = |name: &str| trial.constant(&format!("{prefix}_{name}"));
        Profile {
            traces,
            active: constant("active"),
            requests_per_file: constant("requests_per_file"),
            active_share: constant("active_share"),
            new_share: constant("new_share"),
            visit: constant("visit"),
            open: constant("open") as usize,
            zipf: constant("zipf"),
        }
    }

    /// All files, active or not.
    pub(crate) fn files(&self) -> u64 {
        (self.active / self.active_share) as u64 * self.traces
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) file: u32,
    /// The file is made by it.
    pub(crate) is_creation: bool,
}

/// Requests for files that are numbered as they come up.
#[derive(Debug)]
pub(crate) struct Trace {
    requests: Vec<u32>,
    pub(crate) prints: Vec<Print>,
    is_new: Vec<bool>,
}

impl Trace {
    /// A trace of this profile.
    pub(crate) fn generate(profile: &Profile, rng: &mut Rng) -> Trace {
        let files = (profile.active / profile.active_share) as u64;
        let count = (profile.active * profile.requests_per_file) as usize * profile.traces as usize;
        let zipf = Zipf::new(files, profile.zipf);
        let mut open: Vec<Visit> = vec![Visit::default(); profile.open * profile.traces as usize];
        let (mut visits, mut requests) = (Vec::new(), Vec::with_capacity(count));
        for _ in 0..count {
            let at = rng.index(open.len());
            let visit = &mut open[at];
            if visit.left == 0 {
                let trace = (at / profile.open) as u64;
                visit.number = visits.len() as u32;
                visit.left = run_length(profile.visit, rng);
                visits.push(trace * files + zipf.draw(rng));
            }
            visit.left -= 1;
            requests.push(visit.number);
        }
        Trace::new(&visits, requests, profile.new_share, rng)
    }

    /// Visits by number of file, in order of their first requests, and requests by number of visit; of the
    /// files, this share is new.
    ///
    /// What everybody uses is not new: new files come up in the second half, and are of those with the fewer
    /// requests.
    pub(crate) fn new(
        visits: &[u64],
        mut requests: Vec<u32>,
        new_share: f64,
        rng: &mut Rng,
    ) -> Trace {
        let mut numbers: Vec<u64> = visits.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let early = requests[..requests.len() / 2].iter().max().map_or(0, |&visit| visit as usize);
        let mut files = vec![u32::MAX; numbers.len()];
        let (mut prints, mut late_from) = (Vec::new(), 0);
        let salt = Salt::new([5; 16]);
        let file_of = |(visit, number): (usize, &u64)| {
            let index = numbers.binary_search(number).expect("it is one of them");
            if files[index] == u32::MAX {
                files[index] = prints.len() as u32;
                prints.push(Print::of(&salt, format!("/{number}").as_bytes()));
            }
            if visit <= early {
                late_from = prints.len();
            }
            files[index]
        };
        let file_of: Vec<u32> = visits.iter().enumerate().map(file_of).collect();
        requests.iter_mut().for_each(|visit| *visit = file_of[*visit as usize]);
        let mut counts = vec![0u32; prints.len()];
        requests.iter().for_each(|&file| counts[file as usize] += 1);
        let mut late: Vec<usize> = (late_from..prints.len()).collect();
        late.sort_by_key(|&file| counts[file]);
        let wanted = (new_share * prints.len() as f64) as usize;
        // Where more are to be new than such files, others are too.
        let mut eligible = late;
        eligible.truncate(wanted.max(eligible.len() / 2));
        eligible.extend((0..late_from).take(wanted.saturating_sub(eligible.len())));
        rng.shuffle(&mut eligible);
        let mut is_new = vec![false; prints.len()];
        eligible.iter().take(wanted).for_each(|&file| is_new[file] = true);
        Trace { requests, prints, is_new }
    }

    /// Files that are there before the first request.
    pub(crate) fn old(&self) -> impl Iterator<Item = u32> {
        (0..self.prints.len() as u32).filter(|&file| !self.is_new[file as usize])
    }

    /// How many files are new.
    pub(crate) fn new_files(&self) -> usize {
        self.is_new.iter().filter(|is_new| **is_new).count()
    }

    /// How many requests there are.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The requests in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Request> {
        let mut made = self.is_new.iter().map(|is_new| !is_new).collect::<Vec<bool>>();
        self.requests.iter().map(move |&file| {
            let is_creation = !std::mem::replace(&mut made[file as usize], true);
            Request { file, is_creation }
        })
    }
}

#[derive(Clone, Debug, Default)]
struct Visit {
    number: u32,
    left: u32,
}

/// At least one, and `mean` on average; each further one as likely as the one before.
fn run_length(mean: f64, rng: &mut Rng) -> u32 {
    let stop = 1.0 / mean.max(1.0);
    if stop >= 1.0 {
        return 1;
    }
    let length = 1.0 + ((1.0 - rng.unit()).ln() / (1.0 - stop).ln()).floor();
    length.clamp(1.0, 1e6) as u32
}

/// Zipf's law by its continuous counterpart: rank to the power of minus the exponent.
struct Zipf {
    files: u64,
    exponent: f64,
    range: f64,
}

impl Zipf {
    fn new(files: u64, exponent: f64) -> Zipf {
        assert!(files > 0 && exponent > 0.0 && exponent != 1.0, "the law in this form");
        let range = (files as f64 + 1.0).powf(1.0 - exponent) - 1.0;
        Zipf { files, exponent, range }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let rank = (1.0 + rng.unit() * self.range).powf(1.0 / (1.0 - self.exponent));
        (rank as u64).clamp(1, self.files) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Profile = Profile {
        traces: 2,
        active: 500.0,
        requests_per_file: 20.0,
        active_share: 0.05,
        new_share: 0.1,
        visit: 5.0,
        open: 3,
        zipf: 0.9,
    };

    #[test]
    fn a_seed_is_a_trace() {
        let trace = |seed| Trace::generate(&SMALL, &mut Rng::new(seed)).requests;
        assert_eq!(trace(1), trace(1));
        assert_ne!(trace(1), trace(2));
    }

    #[test]
    fn visits_have_the_stated_mean_and_ranks_follow_the_law() {
        let mut rng = Rng::new(1);
        let sum: u32 = (0..100_000).map(|_| run_length(8.0, &mut rng)).sum();
        assert!((780_000..820_000).contains(&sum), "{sum}");
        let zipf = Zipf::new(1_000, 0.8);
        let mut counts = [0u32; 1_000];
        (0..1_000_000).for_each(|_| counts[zipf.draw(&mut rng) as usize] += 1);
        let ratio = f64::from(counts[9..19].iter().sum::<u32>())
            / f64::from(counts[99..199].iter().sum::<u32>());
        let expected = (10.0f64 / 100.0).powf(0.2);
        assert!((ratio - expected).abs() < 0.05, "{ratio} and not {expected}");
    }

    #[test]
    fn as_many_files_are_new_as_stated_and_each_is_made_once() {
        for new_share in [0.0, 0.1, 0.7] {
            let profile = Profile { new_share, ..SMALL };
            let trace = Trace::generate(&profile, &mut Rng::new(1));
            let share = trace.new_files() as f64 / trace.prints.len() as f64;
            assert!((share - new_share).abs() < 0.05, "{share}");
            let made = trace.iter().filter(|request| request.is_creation).count();
            assert_eq!(made, trace.new_files());
            assert_eq!(trace.iter().count(), trace.len());
        }
    }
}
