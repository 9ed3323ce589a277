//! H-E1: how often an array of Bloom filters has one answer, by formula.

use crate::{Failure, Trial, hba::theory};

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    for groups in [10u32, 20, 30, 50, 100, 200] {
        for bits in [8u32, 12, 16] {
            let wrong = theory::wrong(bits.into());
            let name = format!("{groups}/{bits}");
            trial.number(format!("hit/{name}"), theory::hit(groups.into(), wrong));
            trial.number(format!("hit-exact/{name}"), theory::hit_exact(groups.into(), wrong));
            trial.number(format!("false-new/{name}"), theory::false_new(groups.into(), wrong));
        }
    }
    let mut rises_first = true;
    for groups in [10u32, 50, 100] {
        let (bits, value) = theory::false_new_max(groups.into());
        trial.number(format!("false-new-max/{groups}/bits"), bits);
        trial.number(format!("false-new-max/{groups}/value"), value);
        let at = |bits| theory::false_new(groups.into(), theory::wrong(bits));
        rises_first &= at(bits / 4.0) < at(bits / 2.0) && at(bits / 2.0) < value;
        rises_first &= at(bits * 1.5) < value && at(bits * 2.0) < at(bits * 1.5);
    }
    trial.truth("false-new/rises-then-falls", rises_first);
    // Production's choice of probes is the formula's.
    let is_best = [4u32, 8, 12, 16, 20].into_iter().all(|bits| {
        let ours = locator::bloom::Shape::for_files(1_000, bits).probes();
        let wrong = |probes: u8| theory::wrong_with(bits.into(), probes.into());
        wrong(ours) <= wrong(ours + 1) && wrong(ours) <= wrong(ours - 1)
    });
    trial.truth("probes/best", is_best);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Outcome, find};

    #[test]
    fn the_run_is_as_the_plan_says() {
        let report = find("H-E1").unwrap().run(1.0, &mut |_| ()).unwrap();
        assert_eq!(report.verdict, Outcome::Holds, "{report}");
    }
}
