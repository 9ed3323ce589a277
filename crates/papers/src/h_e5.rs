//! H-E5: what a first level takes beside the second, RES (Table 4).

use locator::bloom::Shape;

use crate::{Failure, Trial};

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let files = trial.constant("files");
    let pba8 = files * 8.0;
    for bits in [12.0, 16.0] {
        trial.number(format!("pba{bits}"), files * bits / pba8);
    }
    for (groups, recent) in [(10u32, 300u64), (50, 100), (100, 50)] {
        // The shape that `locator` gives a first level, of each group.
        let bits = f64::from(groups) * f64::from(Shape::for_files(recent, 20).bits());
        let relative = 1.0 + bits / pba8;
        // Seven digits, as the paper prints them; a measurement has four.
        let above = ((relative - 1.0) * 1e7).round();
        trial.number(format!("hba/{groups}/ten-millionths-above-1"), above);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Outcome, find};

    #[test]
    fn the_run_is_as_the_plan_says() {
        let report = find("H-E5").unwrap().run(1.0, &mut |_| ()).unwrap();
        assert_eq!(report.verdict, Outcome::Holds, "{report}");
    }
}
