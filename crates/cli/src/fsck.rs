//! `croft fsck`: whether everything fits together, on a machine that runs.

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use serde_json::Value;

use crate::machine::{self, Home};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    home: Home,
    /// Remove the bytes of files that are no more
    #[arg(long)]
    mend: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let report = machine::check(&args.home.directory, args.mend)?;
    let mut out = stdout().lock();
    match args.json {
        true => writeln!(out, "{report}")?,
        false => write!(out, "{}", text(&report))?,
    }
    Ok(if is_well(&report) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_well(report: &Value) -> bool {
    let findings = report["findings"].as_array();
    let is_harmless = |finding: &Value| finding["is_warning"] == true;
    findings.is_some_and(|findings| findings.iter().all(is_harmless))
        && report["findings_more"] == 0
}

fn text(report: &Value) -> String {
    let number = |name: &str| report[name].as_u64().unwrap_or(0);
    let mut text = format!(
        "looked at  {} files and directories with {} names\n           {} files with {} bytes that \
         this machine keeps\n",
        number("files"),
        number("names"),
        number("contents"),
        number("content_bytes")
    );
    for finding in report["findings"].as_array().into_iter().flatten() {
        let kind = if finding["is_warning"] == true { "warning" } else { "wrong" };
        let words = |name: &str| finding[name].as_str().unwrap_or_default();
        text += &format!("{kind:<11}{}\n  do       {}\n", words("what"), words("remedy"));
    }
    match number("findings_more") {
        0 if is_well(report) => text += "nothing is wrong\n",
        0 => {}
        more => text += &format!("wrong      {more} things more\n"),
    }
    text
}
