//! When to look up fingers anew: how many point at the dead, and what each policy costs (section VI-L).

use overlay::Refresh;

use crate::{
    Failure, Trial,
    swarm::{
        contest::{Contest, Figure, SUCCESS},
        course::{Course, Figures},
        network::Wiring,
        scheme::Contender,
        world::Setup,
    },
};

const POLICIES: [(&str, Refresh); 4] = [
    ("always", Refresh::Always),
    ("unused", Refresh::Unused),
    ("stalest", Refresh::Stalest),
    ("adjusted", Refresh::Adjusted),
];
const STALE: Figure = ("stale", |figures| figures.stale_fingers);
/// The part of look-ups that found the dead: what a server that adjusts its interval can know.
const WRONG: Figure = ("wrong", |figures| {
    figures.total.refreshed_dead as f64 / figures.total.refreshes.max(1) as f64
});
/// Queries that failed at a stale finger, of all hops.
const LOST: Figure =
    ("lost", |figures| figures.total.stale as f64 / figures.total.hops.max(1) as f64);
/// Look-ups of all machines together in a second.
const LOOKUPS: Figure = ("look-ups", lookups);

fn lookups(figures: &Figures) -> f64 {
    figures.total.refreshes as f64 / figures.total.seconds.max(1) as f64
}

/// Measures all policies.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let course = Course::classes(trial, trial.constant("life_s"));
    let mut contest = Contest::default();
    for (name, refresh) in POLICIES {
        let wiring = Wiring { refresh, ..Wiring::default() };
        let course = Course { setup: Setup { wiring, ..course.setup }, ..course };
        contest.add(name, course, Contender::None);
    }
    let outcomes = contest.run(trial, &[SUCCESS, STALE, WRONG, LOST, LOOKUPS]);

    let [always, unused, stalest, adjusted] = POLICIES.map(|(name, _)| outcomes.get(name));
    trial.truth("suppression-saves-look-ups", lookups(unused) < lookups(always));
    trial.truth("suppression-leaves-more-stale", unused.stale_fingers > always.stale_fingers);
    trial.truth("stalest-first-leaves-fewer-stale", stalest.stale_fingers < unused.stale_fingers);
    let is_least = |other: &&Figures| adjusted.stale_fingers < other.stale_fingers;
    trial.truth("adjusting-leaves-fewest-stale", [always, unused, stalest].iter().all(is_least));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_network_shows_what_the_plan_says_but_that_adjusting_misses_its_aim() {
        check("K-E11", 0.1, &["adjusted/wrong"]);
    }
}
