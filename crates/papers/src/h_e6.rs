//! H-E6: both levels beside pure Bloom arrays as groups become more, HP (Fig. 7).

use crate::{
    Failure, Trial,
    hba::{Point, Profile, SPRITE_ABSENT, Score, Trace, pba, replay, seen_before, sprite},
};

const GROUPS: [u32; 5] = [10, 20, 30, 50, 100];

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let recent = trial.size("recent");
    let profile = Profile::of(trial, "hp", trial.size("traces"));
    trial.say("generating");
    let trace = Trace::generate(&profile, &mut trial.rng());
    let active = trace.prints.len() as f64;
    trial.number("g5/active-of-all", active / profile.files() as f64);
    trial.number("g5/requests-per-active", trace.len() as f64 / active);
    trial.number("g5/new-of-active", trace.new_files() as f64 / active);
    series(trial, "g5", &trace, recent);
    match sprite(10, &mut trial.rng())? {
        None => trial.absent("sprite", SPRITE_ABSENT),
        Some(trace) => {
            let recent = trial.constant("sprite_recent") as u64;
            series(trial, "sprite", &trace, recent);
        }
    }
    Ok(())
}

fn series(trial: &mut Trial, space: &str, trace: &Trace, recent: u64) {
    let mut first_levels = Vec::new();
    let cold = trace.prints.len() as u64 / 4;
    for groups in GROUPS {
        trial.say(&format!("{space}, {groups} groups"));
        let score: Score = replay(Point::hba(groups, recent), trace, cold);
        let [pba8, pba12, pba16] = [8, 12, 16].map(|bits| pba(groups, bits, trace, cold));
        let hba = score.hit_rate();
        let name = format!("{space}/{groups}");
        trial.number(format!("{name}/hba8"), hba);
        trial.number(format!("{name}/first-level"), score.recent_rate());
        first_levels.push(score.recent_rate());
        trial.number(format!("{name}/false-hits"), score.false_rate());
        trial.number(format!("{name}/pba8"), pba8);
        trial.number(format!("{name}/pba12"), pba12);
        trial.number(format!("{name}/pba16"), pba16);
        trial.number(format!("{name}/beyond-pba8-%"), 100.0 * (hba / pba8 - 1.0));
        trial.number(format!("{name}/beyond-pba12-%"), 100.0 * (hba / pba12 - 1.0));
        let below = |hba: f64| 100.0 * (1.0 - hba / pba16);
        trial.number(format!("{name}/below-pba16-%"), below(hba));
        trial.truth(format!("{name}/at-least-pba12"), hba >= pba12);
        trial.truth(format!("{name}/pba12-beats-pba8"), pba12 > pba8);
        let is_up = if groups < 30 { hba >= pba16 } else { hba <= pba16 };
        let relation = if groups < 30 { "at-least-pba16" } else { "at-most-pba16" };
        trial.truth(format!("{name}/{relation}"), is_up);
        // Ablations: how much a first level could find at all, and what it finds if it is told at once.
        let (seen, needed) = (seen_before(trace), (pba16 - pba8) / (1.0 - pba8));
        trial.number(format!("{name}/seen-before"), seen);
        trial.truth(format!("{name}/no-first-level-could"), seen < needed);
        let roomy = below(replay(Point::hba(groups, recent).roomy(), trace, cold).hit_rate());
        trial.number(format!("{name}/roomy/below-pba16-%"), roomy);
        trial.truth(format!("{name}/roomy/as-the-paper"), (1.0..=5.7).contains(&roomy));
    }
    let raise = first_levels.last() > first_levels.first();
    trial.truth(format!("{space}/more-groups-raise-the-first-level"), raise);
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_run_is_as_the_plan_says() {
        check("H-E6", 0.1, &[]);
    }
}
