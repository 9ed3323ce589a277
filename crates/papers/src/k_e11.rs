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

/// The paper's four, then two of ours.
const POLICIES: [(&str, Refresh); 6] = [
    ("always", Refresh::Always),
    ("redrawn", Refresh::Redrawn),
    ("latest", Refresh::Latest),
    ("adjusted", Refresh::Adjusted),
    ("unused", Refresh::Unused),
    ("stalest", Refresh::Stalest),
];
/// Two policies hardly differ if one leaves no more than so much more or less stale than the other.
const HARDLY: f64 = 0.25;
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
    let course = Course::synthetic(trial, trial.constant("life_s"));
    let mut contest = Contest::default();
    let with = |refresh| {
        let wiring = Wiring { refresh, ..Wiring::default() };
        Course { setup: Setup { wiring, ..course.setup }, ..course }
    };
    for (name, refresh) in POLICIES {
        contest.add(name, with(refresh), Contender::None);
    }
    contest.add("latest/proportion", with(Refresh::Latest), Contender::Proportion);
    let outcomes = contest.run(trial, &[SUCCESS, STALE, WRONG, LOST, LOOKUPS]);

    let [always, redrawn, latest, adjusted, unused, stalest] =
        POLICIES.map(|(name, _)| outcomes.get(name));
    let ratio = redrawn.stale_fingers / always.stale_fingers;
    trial.number("redrawn-to-always", ratio);
    trial.truth("suppression-hardly-matters", (ratio - 1.0).abs() <= HARDLY);
    trial.truth("the-later-time-leaves-more-stale", latest.stale_fingers > redrawn.stale_fingers);
    let servers = outcomes.get("latest/proportion");
    trial.truth("fewer-with-many-servers", servers.stale_fingers < latest.stale_fingers);
    trial.truth("adjusting-leaves-fewer-stale", adjusted.stale_fingers < redrawn.stale_fingers);
    trial.truth("ours/unused-saves-look-ups", lookups(unused) < lookups(redrawn));
    trial.truth("ours/unused-leaves-more-stale", unused.stale_fingers > redrawn.stale_fingers);
    trial.truth(
        "ours/stalest-leaves-fewer-than-unused",
        stalest.stale_fingers < unused.stale_fingers,
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_network_shows_what_the_plan_says_but_that_adjusted_intervals_follow_slowly() {
        check("K-E11", 0.1, &["adjusted/wrong"]);
    }
}
