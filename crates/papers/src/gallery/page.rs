//! The page as HTML: one file, figures and all.

use std::fmt::Write;

use super::files::{
    Entry, Gallery, NOT_YET, cells, counts, each, is_of_paper, outcome, pictures, size,
};
use crate::{Line, Report};

const STYLE: &str = include_str!("page.css");

pub(super) fn html(gallery: &Gallery) -> String {
    let mut text = String::new();
    write(gallery, &mut text).expect("there is room for text");
    text
}

fn write(gallery: &Gallery, out: &mut String) -> std::fmt::Result {
    let how = &gallery.circumstances;
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Croft: experiments</title><style>{STYLE}</style></head><body><main>\n\
         <h1>Experiments: paper, ours, verdict</h1>\n"
    )?;
    writeln!(out, "<p class=\"lead\">{}.</p>", escape(&gallery.summary()))?;
    writeln!(
        out,
        "<p>{} Diamonds in figures are numbers that the papers print; their curves are not in their text.</p>",
        escape(&gallery.reading())
    )?;
    if !gallery.not_full().is_empty() {
        writeln!(out, "<p>{}</p>", escape(&gallery.not_full()))?;
    }
    writeln!(out, "<dl>")?;
    for (what, value) in [
        ("Program", format!("Croft {}, build {}", how.version, how.program)),
        ("Command", how.command.clone()),
        ("Computer", how.computer.clone()),
        (
            "Took",
            format!("{:.0} minutes of a processor, all seeds together", how.processor_s / 60.0),
        ),
    ] {
        writeln!(out, "<dt>{what}</dt><dd>{}</dd>", escape(&value))?;
    }
    writeln!(
        out,
        "</dl>\n<table class=\"summary\"><thead><tr><th>Experiment<th>What it shows<th>Run at<th>Verdict<th>Rows</tr></thead><tbody>"
    )?;
    for Entry { experiment, report, smaller, .. } in gallery.entries {
        writeln!(
            out,
            "<tr><td><a href=\"#{id}\">{id}</a><td>{}<td>{}<td>{}<td>{}</tr>",
            escape(&report.title),
            escape(&size(experiment, report, smaller.as_ref())),
            badge(&outcome(report)),
            escape(&counts(report)),
            id = escape(&report.id),
        )?;
    }
    writeln!(out, "</tbody></table>\n<h2>Not here yet</h2>\n<ul>")?;
    for (ids, why) in NOT_YET {
        writeln!(out, "<li><b>{}</b>: {}</li>", escape(ids), escape(why))?;
    }
    writeln!(out, "</ul>")?;
    if !gallery.missing().is_empty() {
        writeln!(out, "<p>Not in this run: {}.</p>", escape(&gallery.missing()))?;
    }
    for entry in gallery.entries {
        section(entry, out)?;
    }
    writeln!(out, "</main></body></html>")
}

fn section(entry: &Entry, out: &mut String) -> std::fmt::Result {
    let Entry { experiment, report, smaller, .. } = entry;
    let plan = experiment.plan();
    writeln!(
        out,
        "<section id=\"{id}\"><h2>{id} {}</h2>\n<p class=\"of\">{}</p>\n<h3>{}</h3>\n<p>{}, {}; {}.</p>",
        badge(&outcome(report)),
        escape(&counts(report)),
        escape(&plan.title),
        escape(&plan.paper),
        escape(&report.section),
        escape(&entry.circumstances()),
        id = escape(&report.id),
    )?;
    writeln!(out, "<details><summary>How it is done</summary>")?;
    for paragraph in plan.about.trim().split("\n\n") {
        writeln!(out, "<p>{}</p>", escape(paragraph))?;
    }
    writeln!(out, "</details>")?;
    for picture in pictures(experiment, report) {
        // A page has one declaration at its top, and not one for each figure.
        let svg = picture.svg.find("<svg").map_or("", |at| &picture.svg[at..]);
        let caption = escape(&picture.caption);
        writeln!(out, "<figure>{svg}<figcaption>{caption}</figcaption></figure>")?;
    }
    tables(report, out)?;
    if let Some(smaller) = smaller {
        writeln!(
            out,
            "<details><summary>The same, {}: {}</summary>",
            escape(&smaller.circumstances()),
            escape(&format!("{}; {}", outcome(smaller), counts(smaller))),
        )?;
        tables(smaller, out)?;
        writeln!(out, "</details>")?;
    }
    writeln!(out, "</section>")
}

fn tables(report: &Report, out: &mut String) -> std::fmt::Result {
    let (judged, others): (Vec<&Line>, Vec<&Line>) =
        report.rows.iter().partition(|line| is_of_paper(line));
    table(&judged, out)?;
    if !others.is_empty() {
        writeln!(out, "<details><summary>{} more numbers of our own</summary>", others.len())?;
        table(&others, out)?;
        writeln!(out, "</details>")?;
    }
    Ok(())
}

fn table(lines: &[&Line], out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "<table><thead><tr><th>Measured<th>Paper<th>Ours<th>Verdict<th>Holds if</tr></thead><tbody>"
    )?;
    for line in lines {
        let [name, paper, ours, verdict, remark] = cells(line);
        writeln!(
            out,
            "<tr><td><code>{}</code><td class=\"n\">{}<td class=\"n\" title=\"{}\">{}<td>{}<td>{}</tr>",
            escape(&name),
            escape(&paper),
            escape(&each(line)),
            escape(&ours),
            badge(&verdict),
            escape(&remark),
        )?;
    }
    writeln!(out, "</tbody></table>")
}

/// A verdict with a colour of its own.
fn badge(verdict: &str) -> String {
    let class = verdict.split_whitespace().collect::<Vec<_>>().join("-");
    format!("<span class=\"v {}\">{}</span>", escape(&class), escape(verdict))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{find, gallery::Circumstances};

    fn entry() -> Entry {
        let experiment = find("D-E4").unwrap();
        let run = |scale: f64| experiment.run(scale, &mut |_| ()).unwrap();
        let builds = vec!["abc".into()];
        Entry { experiment, report: run(0.1), builds, smaller: Some(run(0.05)) }
    }

    fn gallery(entries: &[Entry]) -> Gallery<'_> {
        let circumstances = Circumstances {
            version: "1.2.3".into(),
            program: "abc".into(),
            computer: "a <small> computer".into(),
            command: "croft papers run".into(),
            processor_s: 60.0,
            is_gathered: true,
        };
        Gallery { circumstances, entries }
    }

    #[test]
    fn a_page_needs_nothing_else_and_its_text_is_text() {
        let html = html(&gallery(&[entry()]));
        assert!(html.contains("a &lt;small&gt; computer") && !html.contains("<small>"));
        for outside in ["<link", "<script", "src=", "<?xml", "@import"] {
            assert!(!html.contains(outside), "{outside}");
        }
        for (open, close) in
            [("<section", "</section>"), ("<table", "</table>"), ("<svg", "</svg>")]
        {
            assert_eq!(html.matches(open).count(), html.matches(close).count(), "{open}");
        }
    }

    #[test]
    fn every_row_stands_in_the_page_and_every_judged_one_in_the_text() {
        let entries = [entry()];
        let gallery = gallery(&entries);
        let files = gallery.files();
        let text = |name: &str| &files.iter().find(|(path, _)| path == name).unwrap().1;
        let (html, markdown) = (text("index.html"), text("README.md"));
        for line in &gallery.entries[0].report.rows {
            assert!(html.contains(&format!("<code>{}</code>", line.name)), "{}", line.name);
            assert_eq!(
                is_of_paper(line),
                markdown.contains(&format!("`{}`", line.name)),
                "{}",
                line.name
            );
        }
        for (path, _) in files.iter().filter(|(path, _)| path.starts_with("figures/")) {
            assert!(markdown.contains(&format!("({path})")), "{path}");
        }
        let json: serde_json::Value = serde_json::from_str(text("results.json")).unwrap();
        assert_eq!(json["experiments"][0]["id"], "D-E4");
        assert_eq!(json["circumstances"]["version"], "1.2.3");
        for text in [html, markdown] {
            assert!(text.contains("The same, without chance, scale 0.05"), "{text}");
            assert!(text.contains("build abc") && text.contains("Not at full size"), "{text}");
        }
    }
}
