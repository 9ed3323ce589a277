//! H-E9: how often others are told, by threshold and by size of the first level (Figs 9 and 10).

use crate::{
    Failure, Trial,
    hba::{Point, Profile, Trace, replay, threshold},
};

const THRESHOLDS: [(&str, f64); 6] =
    [("0.001%", 1e-5), ("0.01%", 1e-4), ("0.1%", 1e-3), ("1%", 1e-2), ("10%", 1e-1), ("100%", 1.0)];
/// Parts of the paper's 1,600 paths.
const PARTS: [(&str, f64); 4] = [("400", 0.25), ("800", 0.5), ("1600", 1.0), ("3200", 2.0)];

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let groups = trial.constant("groups") as u32;
    let recent = trial.size("recent");
    let profile = Profile::of(trial, "hp", trial.size("traces"));
    trial.say("generating");
    let trace = Trace::generate(&profile, &mut trial.rng());
    let cold = trace.prints.len() as u64 / 4;
    let (mut rates, mut messages) = (Vec::new(), Vec::new());
    for (name, part) in THRESHOLDS {
        trial.say(name);
        let point = Point { threshold: threshold(part), ..Point::hba(groups, recent) };
        let score = replay(point, &trace, cold);
        trial.number(format!("threshold/{name}/hba8"), score.hit_rate());
        trial.number(format!("threshold/{name}/first-level"), score.recent_rate());
        trial.number(format!("threshold/{name}/per-1000"), score.multicasts_per_mille());
        let bytes = score.multicast_bytes as f64 / score.lookups() as f64;
        trial.number(format!("threshold/{name}/bytes-per-lookup"), bytes);
        rates.push(score.hit_rate());
        messages.push(score.multicasts_per_mille());
    }
    trial.truth("threshold/fewer-messages", messages.windows(2).all(|pair| pair[0] >= pair[1]));
    trial.number("threshold/loss-at-1%", rates[0] - rates[3]);
    trial.number("threshold/loss-at-10%", rates[0] - rates[4]);
    let knee = (messages[0] / messages[3].max(1e-9), rates[3] - rates[5]);
    trial.number("threshold/messages-saved-at-1%", knee.0);
    trial.number("threshold/lost-beyond-1%", knee.1);
    let mut messages = Vec::new();
    let rate = trial.constant("requests_per_second");
    for (name, part) in PARTS {
        trial.say(&format!("{name} paths"));
        let point = Point::hba(groups, ((recent as f64 * part) as u64).max(1));
        let score = replay(point, &trace, cold);
        trial.number(format!("size/{name}/per-1000"), score.multicasts_per_mille());
        let per_second = score.multicasts_per_mille() * rate / 1_000.0;
        trial.number(format!("size/{name}/per-second"), per_second);
        messages.push(score.multicasts_per_mille());
    }
    trial.truth("size/fewer-messages", messages.windows(2).all(|pair| pair[0] >= pair[1]));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_run_is_as_the_plan_says() {
        check("H-E9", 0.1, &[]);
    }
}
