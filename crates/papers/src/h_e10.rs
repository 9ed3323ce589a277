//! H-E10: a first level alone needs more messages for the same hit rate.

use crate::{
    Failure, Trial,
    hba::{Levels, Point, Profile, Trace, replay, threshold},
};

/// Times the size of the other, and thresholds, among which the first level alone may choose what suits it best.
const TIMES: [u64; 3] = [1, 4, 16];
const THRESHOLDS: [f64; 3] = [1e-2, 1e-3, 1e-5];

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let groups = trial.constant("groups") as u32;
    let recent = trial.size("recent");
    let profile = Profile::of(trial, "hp", trial.size("traces"));
    trial.say("generating");
    let trace = Trace::generate(&profile, &mut trial.rng());
    let cold = trace.prints.len() as u64 / 4;
    let hba = replay(Point::hba(groups, recent), &trace, cold);
    trial.number("hba/hit", hba.hit_rate());
    trial.number("hba/per-1000", hba.multicasts_per_mille());
    let alone = Point { levels: Levels::Recent, ..Point::hba(groups, recent) };
    let same = replay(alone, &trace, 0);
    trial.number("alone/same-size/hit", same.hit_rate());
    trial.number("alone/same-size/per-1000", same.multicasts_per_mille());
    let mut best_rate = same.hit_rate();
    let mut fewest = f64::INFINITY;
    for recent in TIMES.map(|times| times * recent) {
        for part in THRESHOLDS {
            trial.say(&format!("{recent} paths alone, threshold {part}"));
            let score = replay(Point { recent, threshold: threshold(part), ..alone }, &trace, 0);
            best_rate = best_rate.max(score.hit_rate());
            if score.hit_rate() >= hba.hit_rate() {
                fewest = fewest.min(score.multicasts_per_mille());
            }
        }
    }
    trial.number("alone/best-hit", best_rate);
    // Where no size and threshold reaches it, no number of messages does.
    let ratio = fewest / hba.multicasts_per_mille().max(1e-9);
    trial.truth("alone/needs-more", ratio > 1.0);
    if fewest.is_finite() {
        trial.number("alone/times-the-messages", ratio);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_run_is_as_the_plan_says() {
        check("H-E10", 0.1, &[]);
    }
}
