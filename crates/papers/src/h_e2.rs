//! H-E2: how often an array has one answer, by number of probes; and what a modern filter does instead.

use base::Rng;
use locator::{
    Array, Bounds, Counting, Group, Print,
    bloom::{Bits, Shape},
    fuse::Fuse,
    message::{Body, Tier, Update},
};

use crate::{
    Failure, Trial,
    hba::{share, theory},
};

const PROBES: [u8; 11] = [1, 2, 3, 4, 6, 8, 9, 11, 14, 17, 20];

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let files = trial.size("files_per_group") as usize;
    for groups in [10u32, 100] {
        let prints = prints(&mut trial.rng(), groups, files);
        let mut farthest = 0.0f64;
        for bits in [8u32, 12, 16, 20] {
            trial.say(&format!("{groups} groups, {bits} bits a file"));
            let (mut best, mut curve) = ((0.0, 0), Vec::new());
            for probes in PROBES {
                let shape = Shape::new(files as u32 * bits, probes).expect("it is small");
                let ours = hit_rate_one_by_one(&prints, shape);
                let wrong = theory::wrong_with(bits.into(), probes.into());
                let theory = theory::hit_exact(groups.into(), wrong);
                farthest = farthest.max((ours - theory).abs());
                curve.push([f64::from(probes), ours]);
                if ours > best.0 {
                    best = (ours, probes);
                }
            }
            trial.curve(format!("{groups}/{bits}"), curve);
            let chosen = Shape::for_files(files as u64, bits);
            let at_best = hit_rate(&prints, |prints| bloom(chosen, prints));
            trial.number(format!("{groups}/{bits}/hit"), at_best);
            trial.number(format!("{groups}/{bits}/probes"), chosen.probes().into());
            // Next to the best, the rates differ by less than chance does in 10,000 look-ups.
            trial.truth(format!("{groups}/{bits}/best"), best.0 - at_best < 0.02);
        }
        trial.number(format!("{groups}/farthest-from-theory"), farthest);
    }
    modern(trial);
    Ok(())
}

/// Not in the paper: the static filter of the product beside a Bloom filter of as many bits.
fn modern(trial: &mut Trial) {
    trial.say("a modern filter");
    let files = trial.size("modern_files_per_group") as usize;
    let prints = prints(&mut trial.rng(), 100, files);
    let mut cells = 0;
    let fuse = hit_rate(&prints, |prints| {
        let fuse = Fuse::build(prints, 0).expect("they are few");
        cells = fuse.cells().len();
        Body::Fuse(fuse)
    });
    let shape = Shape::new(cells as u32 * 8, 6).expect("they are few");
    let bloom = hit_rate(&prints, |prints| bloom(shape, prints));
    trial.number("modern/bits-per-file", cells as f64 * 8.0 / files as f64);
    trial.number("modern/fuse", fuse);
    trial.number("modern/bloom", bloom);
    trial.number("modern/theory-fuse", theory::hit_exact(100.0, 1.0 / 256.0));
    trial.truth("modern/fuse-is-better", fuse > bloom);
}

fn prints(rng: &mut Rng, groups: u32, files: usize) -> Vec<Vec<Print>> {
    let print = |rng: &mut Rng| Print::from_words(rng.next_u64(), rng.next_u64());
    (0..groups).map(|_| (0..files).map(|_| print(rng)).collect()).collect()
}

fn bits(shape: Shape, prints: &[Print]) -> Bits {
    let mut filter = Counting::new(shape);
    prints.iter().for_each(|&print| filter.add(print));
    filter.take_changes();
    filter.told().clone()
}

fn bloom(shape: Shape, prints: &[Print]) -> Body {
    Body::Bits(bits(shape, prints))
}

/// How many of the files, some of each group, only one filter has. Filters with far too many probes are
/// crowded, and the array of `locator` refuses them.
fn hit_rate_one_by_one(prints: &[Vec<Print>], shape: Shape) -> f64 {
    let filters: Vec<Bits> = prints.iter().map(|prints| bits(shape, prints)).collect();
    let sample = (10_000 / prints.len()).max(1);
    let (mut hits, mut count) = (0, 0);
    for (group, prints) in prints.iter().enumerate() {
        for &print in prints.iter().take(sample) {
            let mut others = filters.iter().enumerate().filter(|(other, _)| *other != group);
            let is_only = others.all(|(_, filter)| !filter.contains(print));
            hits += u64::from(is_only && filters[group].contains(print));
            count += 1;
        }
    }
    share(hits, count)
}

/// How many of the files, some of each group, are found by the array of `locator`.
fn hit_rate(prints: &[Vec<Print>], mut filter: impl FnMut(&[Print]) -> Body) -> f64 {
    let mut array = Array::new(Bounds { bytes_max: 4 << 30, ..Bounds::default() });
    for (group, prints) in (0..).zip(prints) {
        array.join(Group(group));
        let update = Update { tier: Tier::All, version: 1, body: filter(prints) };
        assert_eq!(array.hear(Group(group), &update), Ok(()), "an honest update is taken");
    }
    let sample = (40_000 / prints.len()).max(1);
    let (mut hits, mut count) = (0, 0);
    for (group, prints) in (0..).zip(prints) {
        for &print in prints.iter().take(sample) {
            hits += u64::from(array.look_up(print).group() == Some(Group(group)));
            count += 1;
        }
    }
    share(hits, count)
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_run_is_as_the_plan_says() {
        check("H-E2", 0.05, &[]);
    }
}
