//! H-E4: a small first level brings 8 bits a file up to 16 (Fig. 6), and where it does not.

use crate::{
    Failure, Trial,
    hba::{Point, Profile, SPRITE_ABSENT, Trace, pba, replay, seen_before, share, sprite},
};

const GROUPS: [u32; 3] = [10, 50, 100];

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    trial.say("generating");
    let profile = Profile::of(trial, "res", trial.size("traces"));
    let trace = Trace::generate(&profile, &mut trial.rng());
    calibration(trial, &profile, &trace);
    for groups in GROUPS {
        trial.say(&format!("{groups} groups"));
        let recent = trial.size(&format!("recent_{groups}"));
        let cold = trace.prints.len() as u64;
        let name = groups.to_string();
        compare(trial, "g5", &name, Point::hba(groups, recent), &trace, cold);
    }
    // The figure is of 10 to 100 traces at once, not only of the most.
    for (name, part) in [("at-10", 0.1), ("at-50", 0.5)] {
        let traces = ((trial.size("traces") as f64 * part) as u64).max(1);
        let profile = Profile::of(trial, "res", traces);
        let trace = Trace::generate(&profile, &mut trial.rng());
        for groups in GROUPS {
            trial.say(&format!("{traces} traces, {groups} groups"));
            let recent = trial.size(&format!("recent_{groups}"));
            let cold = trace.prints.len() as u64;
            compare(trial, name, &groups.to_string(), Point::hba(groups, recent), &trace, cold);
        }
    }
    creating(trial);
    match sprite(10, &mut trial.rng())? {
        None => trial.absent("sprite", SPRITE_ABSENT),
        Some(trace) => {
            for groups in GROUPS {
                trial.say(&format!("Sprite, {groups} groups"));
                let recent = trial.constant(&format!("sprite_recent_{groups}")) as u64;
                let cold = trace.prints.len() as u64;
                let name = groups.to_string();
                compare(trial, "sprite", &name, Point::hba(groups, recent), &trace, cold);
            }
        }
    }
    Ok(())
}

fn calibration(trial: &mut Trial, profile: &Profile, trace: &Trace) {
    let active = trace.prints.len() as u64;
    trial.number("g5/active-of-all", share(active, profile.files()));
    trial.number("g5/requests-per-active", trace.len() as f64 / active as f64);
    trial.number("g5/new-of-active", share(trace.new_files() as u64, active));
}

fn compare(trial: &mut Trial, space: &str, name: &str, hba: Point, trace: &Trace, cold: u64) {
    let score = replay(hba, trace, cold);
    let [pba8, pba12, pba16] = [8, 12, 16].map(|bits| pba(hba.groups, bits, trace, cold));
    trial.number(format!("{space}/{name}/hba8"), score.hit_rate());
    trial.number(format!("{space}/{name}/first-level"), score.recent_rate());
    trial.number(format!("{space}/{name}/false-hits"), score.false_rate());
    trial.number(format!("{space}/{name}/pba8"), pba8);
    trial.number(format!("{space}/{name}/pba12"), pba12);
    trial.number(format!("{space}/{name}/pba16"), pba16);
    trial.number(format!("{space}/{name}/beyond-pba16"), score.hit_rate() - pba16);
    trial.truth(format!("{space}/{name}/at-least-pba16"), score.hit_rate() >= pba16);
    trial.truth(format!("{space}/{name}/beats-pba8"), score.hit_rate() > pba8);
    trial.truth(format!("{space}/{name}/beats-pba12"), score.hit_rate() > pba12);
    // Ablations: what is in the way of a first level that finds as much as PBA with 16 bits.
    let needed = (pba16 - pba8) / (1.0 - pba8);
    let seen = seen_before(trace);
    trial.number(format!("{space}/{name}/first-level-needed"), needed);
    trial.number(format!("{space}/{name}/seen-before"), seen);
    trial.truth(format!("{space}/{name}/no-first-level-could"), seen < needed);
    let roomy = replay(hba.roomy(), trace, cold).hit_rate();
    trial.number(format!("{space}/{name}/roomy/hba8"), roomy);
    trial.truth(format!("{space}/{name}/roomy/at-least-pba16"), roomy >= pba16);
}

/// H12: where most look-ups are of paths that are to be made, no filter should answer, and many do.
fn creating(trial: &mut Trial) {
    trial.say("creations");
    let mut profile = Profile::of(trial, "res", trial.scaled_part(10));
    profile.new_share = trial.constant("creating_new_share");
    profile.visit = 1.0;
    profile.requests_per_file = trial.constant("creating_requests_per_file");
    let trace = Trace::generate(&profile, &mut trial.rng());
    for bits in [8, 12, 16] {
        let kind = crate::hba::bloom(bits);
        let score =
            replay(Point { kind, ..Point::hba(50, 100) }, &trace, trace.prints.len() as u64);
        let useful = score.recent_hits + score.all_hits;
        let all = score.lookups() + score.creations;
        trial.number(format!("creating/{bits}/answered-rightly"), share(useful, all));
        let falsely = share(score.false_creations, score.creations);
        trial.number(format!("creating/{bits}/false-new"), falsely);
    }
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_run_is_as_the_plan_says() {
        check("H-E4", 0.05, &[]);
    }
}
