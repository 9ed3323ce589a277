//! A program as it is and without one protection: what the checker says, and what a run shows.

use load::{Graph, Standing, Verdict};

use super::{client, directory, host, level::Peak, pager};

/// A model of a program.
pub struct Program {
    /// Its graph, with the model's settings.
    pub graph: fn() -> Graph,
    /// Runs it without the protection of one place, if one is named, under so many times its load;
    /// gives the most that was in each place.
    pub run: fn(Option<&'static str>, u64) -> Vec<Peak>,
}

/// All programs, in the order of the figures.
pub const PROGRAMS: [Program; 4] = [
    Program { graph: client::graph, run: client::run },
    Program { graph: directory::graph, run: directory::run },
    Program { graph: host::graph, run: host::run },
    Program { graph: pager::graph, run: pager::run },
];

/// The peaks of a run, and those of one with twice the rate of arrivals for twice the time.
#[derive(Debug, PartialEq, Eq)]
pub struct Runs {
    /// Under the load of the model.
    pub once: Vec<Peak>,
    /// Under twice that.
    pub twice: Vec<Peak>,
}

impl Program {
    /// Runs it under both loads.
    pub fn runs(&self, without: Option<&'static str>) -> Runs {
        let [once, twice] = [1, 2].map(|load| (self.run)(without, load));
        Runs { once, twice }
    }
}

impl Runs {
    /// Whether every place kept to what is declared.
    pub fn are_within(&self) -> bool {
        self.once.iter().chain(&self.twice).all(Peak::is_within)
    }

    /// Whether this place overflowed, the more so the more load there was, and no other place did.
    pub fn show_overflow_of(&self, label: &str) -> bool {
        let [once, twice] = [&self.once, &self.twice].map(|peaks| peak(peaks, label));
        let mut others = self.once.iter().chain(&self.twice).filter(|peak| peak.label != label);
        !once.is_within() && twice.level > once.level && others.all(Peak::is_within)
    }
}

/// The peak of this place.
pub fn peak(peaks: &[Peak], label: &str) -> Peak {
    *peaks.iter().find(|peak| peak.label == label).expect("a model has every place of its graph")
}

/// Whether the checker predicts the ablation of a place: immune before (or a known exception, as 9B
/// alone is), and then this very place is not.
pub fn is_predicted(label: &str, whole: &Verdict, ablated: &Verdict) -> bool {
    let is_exception = label == "9B";
    let standing = if is_exception { Standing::Exception } else { Standing::Immune };
    whole.is_immune() && whole.standing(label) == standing && ablated.vulnerable() == [label]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peaks(levels: [u64; 2]) -> Vec<Peak> {
        let [a, b] = levels;
        vec![
            Peak { label: "6A", capacity: 10, level: a },
            Peak { label: "6C", capacity: 10, level: b },
        ]
    }

    fn verdict(without: &str) -> Verdict {
        client::graph().without_protection(without).check()
    }

    #[test]
    fn what_is_shown_can_fail() {
        let check = |once, twice, expected| {
            let runs = Runs { once: peaks(once), twice: peaks(twice) };
            assert_eq!(runs.show_overflow_of("6A"), expected, "{runs:?}");
        };
        check([11, 10], [20, 10], true);
        check([10, 10], [20, 10], false); // it overflows only under more load
        check([11, 10], [11, 10], false); // it has a bound after all
        check([11, 10], [20, 11], false); // so does another
    }

    #[test]
    fn what_is_predicted_can_fail() {
        let whole = client::graph().check();
        assert!(is_predicted("6A", &whole, &verdict("6A")));
        assert!(!is_predicted("6A", &whole, &verdict("6B")), "it names another");
        assert!(!is_predicted("6A", &whole, &whole), "it names none");
        assert!(!is_predicted("6A", &verdict("6A"), &verdict("6A")), "it was not immune before");
        let pager = pager::graph().check();
        let without = |label| pager::graph().without_protection(label).check();
        assert!(is_predicted("9B", &pager, &without("9B")));
        assert!(is_predicted("9C", &pager, &without("9C")));
    }
}
