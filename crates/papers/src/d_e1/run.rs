//! The run: three namespaces, three numberings, and the control.

use super::{
    contents::List,
    debian::{Archive, Layout},
    desktop::{self, Model},
    halving::{Placement, place, place_level},
    length::Lengths,
    namespace::{Namespace, Order},
};
use crate::{Failure, Trial};

const AMD64_ABSENT: &str = "Debian's list Contents-amd64 is not on this machine: \
    `apt-get install apt-file && apt-file update` brings it";
const SOURCE_ABSENT: &str = "Debian's list Contents-source is not on this machine: with a deb-src \
    line, `apt-get update -o Acquire::IndexTargets::deb-src::Contents-dsc::DefaultEnabled=true` \
    brings it";

/// How far from the paper's share of what is placed the ablation may be that shows why ours is larger.
const LEVEL_OFF_MAX: f64 = 0.05;

/// Measures every namespace that this machine has.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    generated(trial)?;
    let [amd64, source] = ["Contents-amd64", "Contents-source"].map(List::find);
    match amd64 {
        None => trial.absent("debian-amd64", AMD64_ABSENT),
        Some(list) => {
            trial.say("reading Contents-amd64");
            let archive = Archive::new(list, Layout::Merged, &mut trial.rng())?;
            let files = trial.scaled_part(archive.file_count());
            packaged(trial, "debian-amd64", &archive, files)?;
        }
    }
    match source {
        None => trial.absent("debian-source", SOURCE_ABSENT),
        Some(list) => {
            trial.say("reading Contents-source");
            let archive = Archive::new(list, Layout::Apart, &mut trial.rng())?;
            let files = trial.size("source_files");
            packaged(trial, "debian-source", &archive, files)?;
        }
    }
    Ok(())
}

fn generated(trial: &mut Trial) -> Result<(), Failure> {
    trial.say("generating the desktop namespace");
    let model = Model {
        dirs: trial.size("directories") as usize,
        offset: trial.constant("files_offset"),
        files_max: trial.constant("files_max") as usize,
        parents_max: usize::MAX,
    };
    let mut whole = model.generate(&mut trial.rng());
    let young = Model { dirs: model.dirs.div_ceil(10), ..model }.generate(&mut trial.rng());
    measure(trial, "desktop", &whole, &young)?;
    // The same with wider directories: what the control's shares hang on.
    let parents_max = (trial.constant("wide_parents_part") * model.dirs as f64).ceil() as usize;
    let wide = Model { parents_max, ..model }.generate(&mut trial.rng());
    control(trial, "wide", &wide);
    for (name, tree) in [("desktop", &whole), ("wide", &wide)] {
        let [_, _, unplaced] = place_level(tree, Order::Name, 32).shares();
        trial.number(format!("{name}/level/fixed-32/placed"), 1.0 - unplaced);
    }
    let off =
        trial.measured("desktop/level/fixed-32/placed") - trial.printed("desktop/fixed-32/placed");
    trial.truth("desktop/level/places-as-many", off.abs() <= LEVEL_OFF_MAX);
    trial.truth("wide/passes-the-paper", passes(trial));
    desktop::shuffle(&mut whole, &mut trial.rng());
    lengths(trial, "desktop/shuffled", &whole, Order::Name)?;
    Ok(())
}

fn packaged(
    trial: &mut Trial,
    name: &str,
    archive: &Archive<List>,
    files: u64,
) -> Result<(), Failure> {
    let whole = archive.part(files)?;
    let tenth = archive.part(files.div_ceil(10))?;
    measure(trial, name, &whole, &tenth)
}

/// All measurements of one namespace; `tenth` is the same with a tenth of the files or so.
fn measure(
    trial: &mut Trial,
    name: &str,
    whole: &Namespace,
    tenth: &Namespace,
) -> Result<(), Failure> {
    trial.number(format!("{name}/files"), whole.file_count() as f64);
    trial.number(format!("{name}/directories"), whole.dir_count() as f64);
    let tenfolds = (whole.file_count() as f64 / tenth.file_count() as f64).log10();
    let mut is_as_formula = true;
    let mut growth_max = f64::NEG_INFINITY;
    for (order, order_name) in Order::ALL {
        trial.say(&format!("{name}: identifiers, {order_name}"));
        let ours = lengths(trial, &format!("{name}/{order_name}"), whole, order)?;
        is_as_formula &= ours == Lengths::by_formula(whole, order);
        let growth = (ours.mean() - Lengths::measure(tenth, order)?.mean()) / tenfolds;
        growth_max = growth_max.max(growth);
    }
    trial.truth(format!("{name}/as-formula"), is_as_formula);
    trial.number(format!("{name}/growth-per-tenfold"), growth_max);
    control(trial, name, whole);
    Ok(())
}

fn lengths(
    trial: &mut Trial,
    name: &str,
    namespace: &Namespace,
    order: Order,
) -> Result<Lengths, Failure> {
    let lengths = Lengths::measure(namespace, order)?;
    trial.number(format!("{name}/mean"), lengths.mean());
    trial.number(format!("{name}/p99"), lengths.percentile(99) as f64);
    trial.number(format!("{name}/max"), lengths.max() as f64);
    // D13: what the immediate form holds.
    trial.number(format!("{name}/within-48"), lengths.share_within(48));
    Ok(lengths)
}

fn control(trial: &mut Trial, name: &str, namespace: &Namespace) {
    let placements = [32, 48, 107].map(|bits| {
        trial.say(&format!("{name}: control, {bits} bits"));
        let placement = place(namespace, Order::Name, bits);
        let parts = ["inside", "spilled", "unplaced"];
        for (part, share) in parts.into_iter().zip(placement.shares()) {
            trial.number(format!("{name}/fixed-{bits}/{part}"), share);
        }
        let [_, _, unplaced] = placement.shares();
        trial.number(format!("{name}/fixed-{bits}/placed"), 1.0 - unplaced);
        placement
    });
    let (does_spill_fall, does_32_fail) = shapes(placements);
    trial.truth(format!("{name}/fixed/spill-falls"), does_spill_fall);
    trial.truth(format!("{name}/fixed/32-fails"), does_32_fail);
}

/// Whether each of the paper's shares of the control lies between those of the desktop and of the same with wider
/// directories.
fn passes(trial: &Trial) -> bool {
    ["32/inside", "48/spilled", "107/spilled"].iter().all(|share| {
        let of = |tree: &str| trial.measured(&format!("{tree}/fixed-{share}"));
        let (narrow, wide) = (of("desktop"), of("wide"));
        let papers = trial.printed(&format!("desktop/fixed-{share}"));
        narrow.min(wide) <= papers && papers <= narrow.max(wide)
    })
}

/// Whether ever more of what is placed lies inside its own region, and whether the shortest
/// identifiers run out.
fn shapes(placements: [Placement; 3]) -> (bool, bool) {
    let spilled = placements.map(Placement::spilled_of_placed);
    (spilled.is_sorted_by(|a, b| a > b), placements[0].unplaced > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Report, Run, Scale, Value, Verdict, find};

    fn measure(scale: f64) -> Vec<(String, Value)> {
        let plan = find("D-E1").unwrap().plan();
        let mut quiet = |_: &str| ();
        let mut trial = Trial::new(&plan, scale, &mut quiet);
        generated(&mut trial).unwrap();
        trial.finish().measurements
    }

    #[test]
    fn the_generated_namespace_is_as_the_plan_says_at_full_size() {
        let plan = find("D-E1").unwrap().plan();
        let mut quiet = |_: &str| ();
        let mut trial = Trial::new(&plan, 1.0, &mut quiet);
        generated(&mut trial).unwrap();
        trial.absent("debian-amd64", "not asked");
        trial.absent("debian-source", "not asked");
        let report =
            Report::new(&plan, Scale::FULL, &[Run { seed: plan.seed, findings: trial.finish() }]);
        assert!(report.differing().is_empty(), "{report}");
        assert!(
            report.count(Verdict::Holds) > 10 && report.count(Verdict::Explained) > 0,
            "{report}"
        );
    }

    #[test]
    fn the_shapes_of_the_control_can_fail() {
        let placement = |inside, spilled, unplaced| Placement { inside, spilled, unplaced };
        let falling = [placement(1, 9, 5), placement(5, 5, 0), placement(9, 1, 0)];
        assert_eq!(shapes(falling), (true, true));
        let level = [placement(5, 5, 0), placement(5, 5, 0), placement(9, 1, 0)];
        assert_eq!(shapes(level), (false, false));
    }

    #[test]
    fn a_plan_gives_the_same_measurements_each_time() {
        assert_eq!(measure(0.01), measure(0.01));
        assert_ne!(measure(0.01), measure(0.02));
    }
}
