//! The page as Markdown, for those who read it beside the code.

use std::fmt::Write;

use super::files::{Entry, Gallery, NOT_YET, cells, counts, is_of_paper, outcome, pictures, size};
use crate::{Line, Report, Verdict};

pub(super) fn text(gallery: &Gallery) -> String {
    let mut text = String::new();
    write(gallery, &mut text).expect("there is room for text");
    text
}

fn write(gallery: &Gallery, out: &mut String) -> std::fmt::Result {
    let how = &gallery.circumstances;
    writeln!(out, "# Experiments: paper, ours, verdict\n")?;
    writeln!(
        out,
        "This page is written by `{}`; nothing in it is written by hand. Croft {} (build {}), on {}; {:.0} \
         minutes of a processor for all seeds.\n",
        how.command,
        how.version,
        how.program,
        how.computer,
        how.processor_s / 60.0
    )?;
    writeln!(
        out,
        "**{}.** {} What a verdict means stands in `croft papers run --help`, how an experiment is done in its plan.\n",
        gallery.summary(),
        gallery.reading()
    )?;
    if !gallery.not_full().is_empty() {
        writeln!(out, "{}\n", gallery.not_full())?;
    }
    writeln!(
        out,
        "| Experiment | What it shows | Run at | Verdict | Rows |\n|---|---|---|---|---|"
    )?;
    for Entry { experiment, report, smaller, .. } in gallery.entries {
        writeln!(
            out,
            "| [{id}](#{anchor}) | {} | {} | **{}** | {} |",
            cell(&report.title),
            size(experiment, report, smaller.as_ref()),
            outcome(report),
            counts(report),
            id = report.id,
            anchor = report.id.to_lowercase(),
        )?;
    }
    writeln!(out, "\nNot here yet:\n")?;
    for (ids, why) in NOT_YET {
        writeln!(out, "- {ids}: {why}")?;
    }
    if !gallery.missing().is_empty() {
        writeln!(out, "\nNot in this run: {}.", gallery.missing())?;
    }
    gallery.entries.iter().try_for_each(|entry| section(entry, out))
}

fn section(entry: &Entry, out: &mut String) -> std::fmt::Result {
    let Entry { experiment, report, smaller, .. } = entry;
    let plan = experiment.plan();
    writeln!(out, "\n## {}\n", report.id)?;
    writeln!(
        out,
        "{}. {}, {}; {}. **It {}.**\n",
        plan.title,
        plan.paper,
        report.section,
        entry.circumstances(),
        report.verdict
    )?;
    for picture in pictures(experiment, report) {
        writeln!(
            out,
            "![{}](figures/{})\n\n*{}*\n",
            picture.caption, picture.file, picture.caption
        )?;
    }
    table(report, out)?;
    if let Some(smaller) = smaller {
        writeln!(out, "\nThe same, {}: it {}.\n", smaller.circumstances(), smaller.verdict)?;
        table(smaller, out)?;
    }
    Ok(())
}

fn table(report: &Report, out: &mut String) -> std::fmt::Result {
    writeln!(out, "| Measured | Paper | Ours | Verdict | Holds if |\n|---|---|---|---|---|")?;
    for line in report.rows.iter().filter(|line| is_of_paper(line)) {
        let [name, paper, ours, verdict, remark] = cells(line);
        let remark = cell(&remark);
        writeln!(out, "| `{name}` | {paper} | {ours} | {verdict} | {remark} |")?;
    }
    let is_pin = |line: &&Line| !is_of_paper(line) && line.expected.is_some();
    let (as_before, all) =
        (report.count(Verdict::AsBefore), report.rows.iter().filter(is_pin).count());
    if all > 0 {
        writeln!(out, "\n{as_before} of {all} numbers of our own came out as before.")?;
    }
    Ok(())
}

/// Text that a cell of a table can have.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
