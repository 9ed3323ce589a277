//! What a plan says of one of the paper's figures, and the points that a report has for it.

use serde::Deserialize;

use crate::{Expect, Printed, Report};

/// One of the paper's figures or tables, drawn from our measurements. What the paper prints of the same measurements
/// stands beside them; its curves are not in its text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// As the paper calls it.
    pub of: String,
    /// What it shows.
    pub title: String,
    /// Of the axis.
    pub x: String,
    /// Of the axis.
    pub y: String,
    /// The name of a measurement, in which `{x}` and `{s}` stand for each of these; without `{x}` that of a curve.
    pub from: String,
    /// Places on the axis. If all are numbers, it is an axis of numbers.
    #[serde(default)]
    pub at: Vec<String>,
    /// What is drawn with a colour each.
    pub series: Vec<String>,
    /// A step is ten times as much.
    #[serde(default)]
    pub log_x: bool,
    /// A step is ten times as much.
    #[serde(default)]
    pub log_y: bool,
    /// Points are not joined.
    #[serde(default)]
    pub is_scattered: bool,
}

/// A point of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// In which the true mean lies with a probability of 95 %.
    pub(crate) interval: Option<[f64; 2]>,
    /// What the paper prints, or that it prints nothing.
    pub(crate) paper: Option<Printed>,
}

impl Figure {
    /// What is wrong with it.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.series.is_empty() {
            return Some("draws nothing");
        }
        if self.from.contains("{x}") == self.at.is_empty() {
            return Some("needs places exactly if it has {x}");
        }
        let is_repeated = self.series.len() > 1 && !self.from.contains("{s}");
        is_repeated.then_some("draws one thing several times")
    }

    /// Whether its axis has numbers, and not words.
    pub(crate) fn has_numbers(&self) -> bool {
        self.at.iter().all(|at| at.parse::<f64>().is_ok())
    }

    /// What a report has for one of its series, by places on the axis. Words stand at 0, 1, 2 and so on.
    pub(crate) fn points(&self, series: &str, report: &Report) -> Vec<Point> {
        let from = self.from.replace("{s}", series);
        if self.at.is_empty() {
            let curve = report.curves.iter().find(|curve| curve.name == from);
            let points = curve.map(|curve| &*curve.points).unwrap_or_default();
            let point = |[x, y]: &[f64; 2]| Point { x: *x, y: *y, interval: None, paper: None };
            return points.iter().map(point).collect();
        }
        let mut points = Vec::new();
        for (at, place) in self.at.iter().enumerate() {
            let name = from.replace("{x}", place);
            let lines = || report.rows.iter().filter(|line| line.name == name);
            // A pin is of one seed.
            let is_pin = |expect: &Option<Expect>| matches!(expect, Some(Expect::Pin(_)));
            let line = lines().find(|line| !is_pin(&line.expected)).or_else(|| lines().next());
            let Some((line, y)) = line.and_then(|line| Some((line, line.ours?.number()?))) else {
                continue;
            };
            let x = if self.has_numbers() { place.parse().unwrap_or(0.0) } else { at as f64 };
            let paper = lines().find_map(|line| line.paper);
            points.push(Point { x, y, interval: line.interval, paper });
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Findings, Plan, Run, Scale, Value};

    fn figure(rest: &str) -> Result<Figure, String> {
        let figure: Figure =
            toml::from_str(&format!("of = 'figure 1'\ntitle = 't'\nx = 'x'\ny = 'y'\n{rest}"))
                .map_err(|error| error.to_string())?;
        figure.fault().map_or(Ok(figure), |fault| Err(fault.into()))
    }

    #[test]
    fn a_figure_that_draws_nothing_or_one_thing_twice_is_none() {
        assert!(figure("from = '{s}/{x}'\nat = ['1']\nseries = ['a', 'b']").is_ok());
        assert!(figure("from = '{s}'\nseries = ['a']").is_ok());
        assert!(figure("from = 'a/{x}'\nat = ['1']\nseries = ['a']").is_ok());
        assert!(figure("from = '{s}/{x}'\nat = ['1']\nseries = []").is_err());
        assert!(figure("from = '{s}/{x}'\nseries = ['a']").is_err());
        assert!(figure("from = '{s}'\nat = ['1']\nseries = ['a']").is_err());
        assert!(figure("from = 'a/{x}'\nat = ['1']\nseries = ['a', 'b']").is_err());
    }

    #[test]
    fn points_are_of_measurements_with_what_the_paper_prints_of_them() {
        let plan = Plan::parse(
            "id = 'X-E1'\ntitle = ''\npaper = ''\nsection = ''\nabout = ''\nseed = 1
             [[rows]]\nname = 'a/10'\npin = 4\n[[rows]]\nname = 'a/10'\npaper = 5\nband = [0, 9]",
        )
        .unwrap();
        let run = |seed, number| {
            let numbers =
                [("a/10".into(), Value::Number(number)), ("a/2".into(), Value::Number(1.0))];
            let curves = vec![("c".into(), vec![[0.0, number], [1.0, 2.0]])];
            let findings = Findings { measurements: numbers.into(), curves, ..Findings::default() };
            Run { seed: Some(seed), findings }
        };
        let report = Report::new(&plan, Scale::FULL, &[run(1, 4.0), run(2, 6.0)]);
        let figure =
            figure("from = '{s}/{x}'\nat = ['2', '3', '10']\nseries = ['a', 'b']").unwrap();
        let points = figure.points("a", &report);
        assert_eq!(
            points.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>(),
            [(2.0, 1.0), (10.0, 5.0)]
        );
        assert_eq!(points[1].paper, Some(Printed::Number(5.0)));
        assert!(points[1].interval.is_some_and(|[low, high]| low < 4.0 && high > 6.0));
        assert_eq!(figure.points("b", &report), []);
        let figure = Figure { from: "{s}".into(), at: Vec::new(), ..figure };
        let points = figure.points("c", &report);
        assert_eq!(points.iter().map(|point| point.y).collect::<Vec<_>>(), [5.0, 2.0], "means");
    }
}
