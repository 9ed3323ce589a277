//! One figure as SVG: our points with their intervals, and beside them what the paper prints.

use std::ops::Range;

use plotters::{
    coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter},
    prelude::*,
};

use crate::{Figure, Printed, Report, figure::Point};

const SIZE: (u32, u32) = (760, 340);
/// What the legend takes of it, on the right.
const LEGEND: u32 = 200;
const FONT: &str = "sans-serif";
/// About so many ticks stand on an axis.
const TICKS: f64 = 5.0;
/// Of an axis, on either side of what is drawn.
const MARGIN: f64 = 0.05;
/// Where places are words, series stand so far apart.
const DODGE: f64 = 0.12;
/// Okabe and Ito's colours, which those who can't tell red from green can tell apart.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(140, 140, 140),
];

type Drawing<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// One axis: how values become lengths along it, and where its ticks are.
#[derive(Clone)]
struct Axis {
    is_log: bool,
    range: Range<f64>,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis of numbers on which all of these have room.
    fn of(values: impl Iterator<Item = f64>, is_log: bool) -> Axis {
        let length = |value: f64| if is_log { value.log10() } else { value };
        let (low, high) =
            values.map(length).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        // One value alone still needs an axis.
        let wide = if high > low { high - low } else { high.abs().max(1.0) };
        let (mut low, high) = (low - MARGIN * wide, high + MARGIN * wide);
        if !is_log && low < 0.0 && low >= -MARGIN * wide {
            low = -0.01 * wide;
        }
        let ticks = if is_log { decades(low, high) } else { steps(low, high) };
        Axis { is_log, range: low..high, ticks }
    }

    /// An axis of words.
    fn of_words(words: &[String]) -> Axis {
        let ticks = words.iter().enumerate().map(|(at, word)| (at as f64, word.clone())).collect();
        Axis { is_log: false, range: -0.5..words.len() as f64 - 0.5, ticks }
    }

    /// Where a value is along it.
    fn length(&self, value: f64) -> f64 {
        if self.is_log { value.log10() } else { value }
    }

    fn label(&self, length: f64) -> String {
        let near = |tick: &&(f64, String)| (tick.0 - length).abs() < 1e-9;
        self.ticks.iter().find(near).map(|(_, label)| label.clone()).unwrap_or_default()
    }
}

/// Lengths along it are what is drawn.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, length: &f64, (from, to): (i32, i32)) -> i32 {
        let Range { start, end } = self.range;
        from + ((length - start) / (end - start) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(at, _)| *at).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, length: &f64) -> String {
        self.label(*length)
    }
}

/// Ticks at round numbers.
fn steps(low: f64, high: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let ticks = (first..).map(|at| at as f64 * step).take_while(|tick| *tick <= high);
    ticks.map(|tick| (tick, number(tick))).collect()
}

/// Ticks at powers of ten, and between them where there are few.
fn decades(low: f64, high: f64) -> Vec<(f64, String)> {
    let between: &[f64] = if high - low > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = low.floor() as i32..=high.ceil() as i32;
    let all = powers.flat_map(|power| between.iter().map(move |times| times * 10f64.powi(power)));
    let here = all.filter(|value| (low..=high).contains(&value.log10()));
    here.map(|value| (value.log10(), number(value))).collect()
}

/// As short as it can be said.
fn number(value: f64) -> String {
    let rounded = format!("{value:.6}");
    let text = rounded.trim_end_matches('0').trim_end_matches('.');
    match text.parse::<f64>() {
        Ok(0.0) if value != 0.0 && value.abs() < 5e-7 => format!("{value:e}"),
        Ok(0.0) => "0".into(),
        Ok(number) if number.abs() >= 1e7 => format!("{number:e}"),
        _ => text.into(),
    }
}

/// Draws it; nothing if nothing of it was measured.
pub(crate) fn svg(figure: &Figure, report: &Report) -> Option<String> {
    let is_drawable = |value: f64, is_log: bool| value.is_finite() && (!is_log || value > 0.0);
    let series: Vec<(&str, Vec<Point>)> = figure
        .series
        .iter()
        .map(|name| {
            let mut points = figure.points(name, report);
            points.retain(|p| is_drawable(p.x, figure.log_x) && is_drawable(p.y, figure.log_y));
            (&**name, points)
        })
        .collect();
    let all = || series.iter().flat_map(|(_, points)| points);
    all().next()?;
    let papers = |point: &Point| point.paper.map(|paper| paper.numbers()).unwrap_or_default();
    let heights = all().flat_map(|point| {
        let ends = point.interval.into_iter().flatten();
        [point.y].into_iter().chain(ends).chain(papers(point)).collect::<Vec<_>>()
    });
    let y = Axis::of(heights.filter(|y| is_drawable(*y, figure.log_y)), figure.log_y);
    let is_of_words = !figure.at.is_empty() && !figure.has_numbers();
    let x = if is_of_words {
        Axis::of_words(&figure.at)
    } else {
        Axis::of(all().map(|point| point.x), figure.log_x)
    };
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&root, figure, (&x, &y), &series, is_of_words).expect("there is room for text");
    }
    Some(text)
}

fn draw(
    root: &Drawing,
    figure: &Figure,
    (x, y): (&Axis, &Axis),
    series: &[(&str, Vec<Point>)],
    is_of_words: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(SIZE.0 - LEGEND);
    let mut chart = ChartBuilder::on(&left)
        .margin(10)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.6))
        .label_style((FONT, 13))
        .x_desc(&figure.x)
        .y_desc(&figure.y)
        .draw()?;
    let count = series.len() as f64;
    let mut has_papers = false;
    for (at, (_, points)) in series.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let shift = if is_of_words { (at as f64 - (count - 1.0) / 2.0) * DODGE } else { 0.0 };
        let place = |value: f64| x.length(value) + shift;
        let joined = points.iter().map(|point| (place(point.x), y.length(point.y)));
        if !is_of_words && !figure.is_scattered {
            chart.draw_series(LineSeries::new(joined.clone(), colour.stroke_width(2)))?;
        }
        let bars = points.iter().filter_map(|point| {
            let [low, high] = point.interval?;
            let ends = [low, high].map(|end| y.length(end));
            let ends = ends.map(|end| if end.is_nan() { y.range.start } else { end });
            let ends = ends.map(|end| end.clamp(y.range.start, y.range.end));
            let bar = vec![(place(point.x), ends[0]), (place(point.x), ends[1])];
            Some(PathElement::new(bar, colour.mix(0.5).stroke_width(4)))
        });
        chart.draw_series(bars)?;
        let size = if points.len() > 40 { 1 } else { 3 };
        chart.draw_series(joined.map(|point| Circle::new(point, size, colour.filled())))?;
        for point in points {
            let Some(paper) = point.paper else { continue };
            has_papers = true;
            let ends = paper.numbers().into_iter().map(|number| (place(point.x), y.length(number)));
            let ends: Vec<(f64, f64)> = ends.filter(|(_, length)| length.is_finite()).collect();
            if let Printed::Range(_) = paper {
                let path = PathElement::new(ends.clone(), colour.stroke_width(1));
                chart.draw_series([path])?;
            }
            let corner = vec![(0, -6), (6, 0), (0, 6), (-6, 0), (0, -6)];
            let diamond = |at: &(f64, f64)| {
                EmptyElement::at(*at) + PathElement::new(corner.clone(), colour.stroke_width(2))
            };
            chart.draw_series(ends.iter().map(diamond))?;
        }
    }
    legend(&right, series, has_papers)
}

/// What the colours mean, from the top down.
fn legend(
    area: &Drawing,
    series: &[(&str, Vec<Point>)],
    has_papers: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let style = (FONT, 13).into_font().color(&BLACK);
    let mut height = 22;
    for (at, (name, _)) in series.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        area.draw(&Circle::new((10, height + 6), 4, colour.filled()))?;
        area.draw(&Text::new((*name).to_owned(), (22, height), style.clone()))?;
        height += 20;
    }
    if has_papers {
        let corners = [(0, -6), (6, 0), (0, 6), (-6, 0), (0, -6)];
        let diamond = corners.map(|(x, y)| (10 + x, height + 18 + y));
        area.draw(&PathElement::new(diamond, BLACK.stroke_width(2)))?;
        area.draw(&Text::new("what the paper prints", (22, height + 12), style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Findings, Plan, Run, Scale, Value};

    fn report(numbers: &[(&str, f64)]) -> Report {
        let plan = Plan::parse(
            "id = 'X-E1'\ntitle = ''\npaper = ''\nsection = ''\nabout = ''\nseed = 1
             [[rows]]\nname = 'a/10'\npaper = 5\nband = [0, 9]",
        )
        .unwrap();
        let number = |(name, number): &(&str, f64)| ((*name).into(), Value::Number(*number));
        let measurements = numbers.iter().map(number).collect();
        let findings = Findings { measurements, ..Findings::default() };
        Report::new(&plan, Scale::FULL, &[Run { seed: Some(1), findings }])
    }

    fn figure(log: bool) -> Figure {
        Figure {
            of: "figure 1".into(),
            title: String::new(),
            x: "wide".into(),
            y: "high".into(),
            from: "{s}/{x}".into(),
            at: ["1", "10", "100"].map(String::from).into(),
            series: ["a", "b"].map(String::from).into(),
            log_x: log,
            log_y: log,
            is_scattered: false,
        }
    }

    #[test]
    fn a_figure_has_its_words_its_points_and_what_the_paper_prints() {
        let numbers = [("a/1", 1.0), ("a/10", 4.0), ("b/1", 2.0), ("b/100", 3.0)];
        for log in [false, true] {
            let svg = svg(&figure(log), &report(&numbers)).unwrap();
            for word in ["wide", "high", "what the paper prints"] {
                assert!(svg.contains(word), "{word}");
            }
            // Four points, and two in the legend.
            assert_eq!(svg.matches("<circle").count(), 6);
        }
    }

    #[test]
    fn what_was_not_measured_or_has_no_place_is_not_drawn() {
        assert_eq!(svg(&figure(false), &report(&[])), None);
        assert_eq!(svg(&figure(true), &report(&[("a/1", 0.0), ("b/1", f64::NAN)])), None);
        assert!(svg(&figure(false), &report(&[("a/1", 0.0)])).is_some());
    }

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let labels = |ticks: Vec<(f64, String)>| {
            ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(steps(-0.01, 1.05)), "0 0.5 1");
        assert_eq!(labels(steps(0.0, 60_000.0)), "0 20000 40000 60000");
        assert_eq!(labels(decades(0.0, 1.2)), "1 2 5 10");
        assert_eq!(labels(decades(-2.0, 3.1)), "0.01 0.1 1 10 100 1000");
    }
}
