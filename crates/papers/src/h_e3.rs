//! H-E3: how much a pure Bloom array gains by telling of changes early (Table 3).

use crate::{
    Failure, Trial,
    hba::{Levels, Point, Profile, Trace, bloom, replay_from, share, threshold},
};

const GROUPS: u32 = 10;
/// As parts of a filter's bits.
const THRESHOLDS: [(&str, f64); 4] =
    [("100%", 1.0), ("10%", 0.1), ("0.001%", 1e-5), ("0.00001%", 1e-7)];

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let profile = Profile::of(trial, "res", trial.size("traces"));
    trial.say("generating");
    let trace = Trace::generate(&profile, &mut trial.rng());
    let cold = profile.files().saturating_sub(trace.prints.len() as u64);
    trial.number("trace/new-of-active", share(trace.new_files() as u64, trace.prints.len() as u64));
    let mut rates = Vec::new();
    for (name, part) in THRESHOLDS {
        trial.say(name);
        let point = Point {
            groups: GROUPS,
            levels: Levels::All,
            kind: bloom(8),
            recent: 1,
            threshold: threshold(part),
        };
        let score = replay_from(0, point, &trace, cold);
        trial.number(format!("{name}/hit"), score.hit_rate());
        trial.number(format!("{name}/false-hits"), score.false_rate());
        trial.number(format!("{name}/multicasts"), score.multicasts as f64);
        rates.push(score.hit_rate());
    }
    trial.truth("monotone", rates.windows(2).all(|pair| pair[0] <= pair[1]));
    trial.number("gain", rates[3] - rates[0]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_run_is_as_the_plan_says() {
        check("H-E3", 0.1, &[]);
    }
}
