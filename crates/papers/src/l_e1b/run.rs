//! The run: every program as it is, and without each of its protections.

use super::ablation::{PROGRAMS, Program, is_predicted, peak};
use crate::{Failure, Trial};

/// Measures every place of every program.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let within: Vec<bool> = PROGRAMS.iter().map(|program| measure(trial, program)).collect();
    trial.truth("all-within", !within.contains(&false));
    Ok(())
}

/// Measures every place of a program; whether all kept within bounds while they were protected.
fn measure(trial: &mut Trial, program: &Program) -> bool {
    let graph = (program.graph)();
    let whole = graph.check();
    trial.say(&format!("{}: with all protections", graph.name()));
    let protected = program.runs(None);
    for label in graph.labels() {
        trial.say(&format!("{}: without {label}", graph.name()));
        let ablated = graph.without_protection(label).check();
        let bare = program.runs(Some(label));
        let holds = is_predicted(label, &whole, &ablated)
            && peak(&protected.once, label).is_within()
            && peak(&protected.twice, label).is_within()
            && bare.show_overflow_of(label);
        let name = format!("{}/{label}", graph.name());
        trial.truth(&name, holds);
        trial.number(format!("{name}/protected"), peak(&protected.twice, label).level as f64);
        trial.number(format!("{name}/bare"), peak(&bare.once, label).level as f64);
    }
    protected.are_within()
}

#[cfg(test)]
mod tests {
    use super::super::client;
    use super::*;
    use crate::{Expect, Outcome, Value, Verdict, find};

    /// Whether all is within bounds, and the judgement of each place.
    fn measured(program: &Program) -> (bool, Vec<bool>) {
        let plan = find("L-E1b").unwrap().plan();
        let mut quiet = |_: &str| ();
        let mut trial = Trial::new(&plan, 1.0, &mut quiet);
        let is_within = measure(&mut trial, program);
        let truths = trial.finish().measurements.into_iter().filter_map(|(_, value)| match value {
            Value::Truth(truth) => Some(truth),
            Value::Number(_) => None,
        });
        (is_within, truths.collect())
    }

    #[test]
    fn the_run_is_as_the_plan_says() {
        let report = find("L-E1b").unwrap().run(1.0, &mut |_| ()).unwrap();
        assert_eq!(report.verdict, Outcome::Holds, "{report}");
        let is_judged =
            |row: &crate::Line| matches!(row.verdict, Verdict::Holds | Verdict::AsBefore);
        assert!(report.rows.iter().all(is_judged), "{report}");
    }

    #[test]
    fn a_run_is_the_same_each_time() {
        for Program { graph, run } in PROGRAMS {
            for label in graph().labels() {
                assert_eq!(run(Some(label), 1), run(Some(label), 1));
            }
        }
    }

    #[test]
    fn a_model_whose_protection_stays_shows_nothing() {
        let program = Program { graph: client::graph, run: |_, load| client::run(None, load) };
        assert_eq!(measured(&program), (true, vec![false; 6]));
    }

    #[test]
    fn a_model_that_is_never_protected_is_out_of_bounds() {
        let program =
            Program { graph: client::graph, run: |_, load| client::run(Some("6C"), load) };
        // 6C overflows as predicted, but it did before; the others do not.
        assert_eq!(measured(&program), (false, vec![false; 6]));
    }

    #[test]
    fn the_plan_bounds_each_place_as_its_graph_does() {
        let plan = find("L-E1b").unwrap().plan();
        for program in PROGRAMS {
            let graph = (program.graph)();
            for peak in (program.run)(None, 1) {
                let name = format!("{}/{}/protected", graph.name(), peak.label);
                let row = plan.rows.iter().find(|row| row.name == name).unwrap();
                assert_eq!(row.expect, Expect::Band(0.0, peak.capacity as f64), "{name}");
            }
        }
    }
}
