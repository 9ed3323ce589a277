//! H-E7: a first level that grows finds more, and less and less more (Fig. 8).

use base::{Instant, Machine};
use locator::{
    Array, Bounds, Found, Group, Hint, Home, Sizing,
    home::{Input, Output, Settings},
};

use crate::{
    Failure, Trial,
    hba::{Point, Profile, Trace, bloom, home_of, replay, threshold},
};

/// Parts of the paper's 1,600 paths.
const PARTS: [(&str, f64); 6] = [
    ("100", 1.0 / 16.0),
    ("200", 0.125),
    ("400", 0.25),
    ("800", 0.5),
    ("1600", 1.0),
    ("3200", 2.0),
];

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let groups = trial.constant("groups") as u32;
    let profile = Profile::of(trial, "hp", trial.size("traces"));
    trial.say("generating");
    let trace = Trace::generate(&profile, &mut trial.rng());
    let cold = trace.prints.len() as u64 / 4;
    let mut rates = Vec::new();
    let whole = trial.size("recent") as f64;
    for (name, part) in PARTS {
        trial.say(&format!("{name} paths"));
        let recent = ((whole * part) as u64).max(1);
        let at_once = Point { threshold: threshold(1e-5), ..Point::hba(groups, recent) };
        let score = replay(at_once, &trace, cold);
        trial.number(format!("{name}/hba8"), score.hit_rate());
        trial.number(format!("{name}/first-level"), score.recent_rate());
        rates.push(score.hit_rate());
        if part >= 1.0 {
            let late = replay(Point::hba(groups, recent), &trace, cold);
            trial.number(format!("{name}/told-at-1%/hba8"), late.hit_rate());
        }
    }
    let gains: Vec<f64> = rates.windows(2).map(|pair| pair[1] - pair[0]).collect();
    trial.truth("grows", gains.iter().all(|gain| *gain > -0.001));
    let (first, last) = (gains[..2].iter().sum::<f64>(), gains[3..].iter().sum::<f64>());
    trial.truth("less-and-less", last < first);
    trial.number("gain-of-the-last-doubling", gains[4]);
    adaptive(trial, groups, &trace, whole as u64);
    Ok(())
}

/// H10, not a figure of the paper: a first level that finds its size by itself.
fn adaptive(trial: &mut Trial, groups: u32, trace: &Trace, whole: u64) {
    trial.say("growing by itself");
    let window = trial.constant("adaptive_window") as u32;
    let goal = trial.constant("adaptive_goal") as u32;
    let (files, files_max) = ((whole / 32).max(1), 2 * whole);
    let recent = Sizing { files, files_max, window, goal, ..Sizing::default() };
    let settings = Settings { kind: bloom(8), recent, patience: None, ..Settings::default() };
    let mut array = Array::new(Bounds::default());
    let mut out = Vec::new();
    let mut homes = Vec::new();
    for group in (0..groups).map(Group) {
        assert!(array.join(group), "there is room");
        homes.push(Home::new(settings, Vec::new(), 0, &mut out));
        hear(&mut array, group, &mut out);
    }
    let (mut hits, mut count) = (0u64, 0u64);
    for (at, request) in trace.iter().enumerate() {
        let print = trace.prints[request.file as usize];
        let home = home_of(request.file, groups);
        let is_hit = array.look_up(print) == Hint::Recent(Group(home));
        if at >= trace.len() / 2 {
            hits += u64::from(is_hit);
            count += 1;
        }
        let found = if is_hit { Found::Recent } else { Found::Walk };
        let input = Input::Used { print, found };
        homes[home as usize].step(Instant::from_nanos(at as u64), input, &mut out);
        hear(&mut array, Group(home), &mut out);
    }
    let sizes: u64 = homes.iter().map(Home::recent_files_max).sum();
    trial.number("adaptive/mean-paths", sizes as f64 / f64::from(groups));
    trial.number("adaptive/first-level", crate::hba::share(hits, count));
    let is_grown = homes.iter().all(|home| home.recent_files_max() > files);
    trial.truth("adaptive/grows", is_grown);
}

fn hear(array: &mut Array, group: Group, out: &mut Vec<Output>) {
    for output in out.drain(..) {
        let (Output::Publish(update) | Output::Answer(update)) = output;
        assert_eq!(array.hear(group, &update), Ok(()), "an honest update is taken");
    }
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_run_is_as_the_plan_says() {
        check("H-E7", 0.1, &[]);
    }
}
