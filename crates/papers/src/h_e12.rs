//! H-E12: messages of both levels, of a pure Bloom array and of a first level alone (section 8).

use crate::{
    Failure, Trial,
    hba::{Levels, Point, Profile, Trace, bloom, replay, threshold},
};

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let groups = trial.constant("groups") as u32;
    let recent = trial.size("recent");
    let profile = Profile::of(trial, "hp", trial.size("traces"));
    trial.say("generating");
    let trace = Trace::generate(&profile, &mut trial.rng());
    let cold = trace.prints.len() as u64 / 4;
    let hba = replay(Point::hba(groups, recent), &trace, cold);
    let pba = Point { levels: Levels::All, kind: bloom(16), ..Point::hba(groups, recent) };
    trial.say("a pure Bloom array");
    let pba = replay(pba, &trace, cold);
    trial.say("a first level alone");
    let alone =
        Point { levels: Levels::Recent, threshold: threshold(1e-5), ..Point::hba(groups, recent) };
    let alone = replay(alone, &trace, 0);
    for (name, score) in [("hba8", hba), ("pba16", pba), ("alone", alone)] {
        trial.number(format!("{name}/hit"), score.hit_rate());
        trial.number(format!("{name}/per-1000"), score.multicasts_per_mille());
        let bytes = score.multicast_bytes as f64 / score.lookups().max(1) as f64;
        trial.number(format!("{name}/bytes-per-lookup"), bytes);
    }
    trial.truth("more-than-pba", hba.multicasts >= pba.multicasts);
    trial.truth("fewer-than-alone", hba.multicasts < alone.multicasts);
    trial.truth("finds-more-than-alone", hba.hit_rate() > alone.hit_rate());
    let ratio = hba.multicasts as f64 / pba.multicasts.max(1) as f64;
    trial.number("hba-to-pba", ratio);
    trial.truth("slightly-more-than-pba", ratio <= 2.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_run_is_as_the_plan_says() {
        check("H-E12", 0.1, &[]);
    }
}
