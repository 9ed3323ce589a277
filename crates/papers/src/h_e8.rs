//! H-E8: what a first level takes beside the second, HP (Table 5).

use locator::bloom::Shape;

use crate::{Failure, Trial};

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let pba8 = trial.constant("files") * 8.0;
    let recent = trial.constant("recent") as u64;
    for groups in [20u32, 40, 60, 80, 100] {
        for bits in [8u32, 20] {
            let first = f64::from(groups) * f64::from(Shape::for_files(recent, bits).bits());
            trial.number(format!("{bits}-bits/{groups}"), 1.0 + first / pba8);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Outcome, find};

    #[test]
    fn the_run_is_as_the_plan_says() {
        let report = find("H-E8").unwrap().run(1.0, &mut |_| ()).unwrap();
        assert_eq!(report.verdict, Outcome::Holds, "{report}");
    }
}
