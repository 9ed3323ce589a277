//! `croft doctor`: what is wrong with a machine or its cell, and what to do.

use std::{
    io::{Write, stdout},
    path::Path,
    process::ExitCode,
};

use host::Machine;
use serde::Serialize;
use serde_json::Value;

use crate::{
    machine::{self, Home},
    status,
    view::{Cell, MEMBERS, short},
    words,
};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    home: Home,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Who is away for so long may not come back.
const LONG_S: u64 = 300;

/// So long before its end an issuer has to be replaced, which somebody has to do by hand.
const ISSUER_LEAD_S: u64 = 30 * 86_400;

/// In how many days that is, if it is soon; in none if it is over.
fn ends_soon(expires: u64, now: u64) -> Option<u64> {
    let left = expires.saturating_sub(now);
    (left < ISSUER_LEAD_S).then(|| left.div_ceil(86_400))
}

/// Something that is not as it should be.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    what: String,
    /// What to do.
    remedy: String,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let home = &args.home.directory;
    let findings = match look(home) {
        Ok(status) => examine(home, &status),
        Err(finding) => vec![finding],
    };
    let mut out = stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&findings)?)?;
    } else {
        for Finding { what, remedy } in &findings {
            writeln!(out, "wrong   {what}\n  do    {remedy}")?;
        }
        if findings.is_empty() {
            writeln!(out, "all is well")?;
        }
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn look(home: &Path) -> Result<Value, Finding> {
    let directory = home.display();
    if !Machine::is_home(home) && !home.join("control").exists() {
        return Err(Finding {
            what: format!("no machine lives in {directory}"),
            remedy: format!(
                "name its directory with --dir, or make one: croft init --dir {directory}"
            ),
        });
    }
    machine::look(home).map_err(|error| Finding {
        what: format!("{error:#}"),
        remedy: format!(
            "start it with `croft run --dir {directory}`, or look why it does not answer"
        ),
    })
}

/// What a status gives away, the worst first.
fn examine(home: &Path, status: &Value) -> Vec<Finding> {
    let cell = Cell::of(status);
    let mut findings = Vec::new();
    let mut find = |what: String, remedy: String| findings.push(Finding { what, remedy });
    let directory = home.display();
    if let Some(astray) = status::astray(status) {
        find(astray, status::ASTRAY_REMEDY.into());
    } else if let Some(failure) = status::failure(status) {
        find(
            format!("the machine has stopped: {failure}"),
            "mend that, and start the machine again; what was synced is safe".into(),
        );
    }
    if status::is_full(status) {
        find(
            "the disk is full".into(),
            format!(
                "remove something, or make room on the disk of {directory}; all goes on by itself then"
            ),
        );
    }
    if let Some(stalled) = cell.stalled() {
        let start =
            "start the others with `croft run` where they live, or mend the network between";
        let quiet_s = status["group"]["quiet_s"].as_u64().unwrap_or(0);
        let remedy = match quiet_s >= LONG_S {
            true => format!(
                "{start}. If they are gone for good, and only then, whoever has the root key can let \
                 the cell go on from a machine that is left: `croft recover --dir {directory}` says what that \
                 would cost, and does nothing yet"
            ),
            false => start.into(),
        };
        find(stalled, remedy);
    }
    if let Some(fork) =
        status::fork(status).filter(|_| status["group"]["fork"]["is_refuted"] == true)
    {
        find(
            fork,
            format!(
                "if you have not recovered the cell, somebody else has had the root key: this machine is right, and \
                 the one named is to be sent away with `croft revoke`. If you have, `croft recover --obey --dir \
                 {directory}` lets this machine follow, here and on each other one that does not"
            ),
        );
    }
    for machine in cell.machines.iter().filter(|machine| machine.is_away && machine.is_member) {
        find(
            format!("{} does not answer, and is a member of the group", machine.name()),
            "start it, or mend the network between; while it is away no other member may be".into(),
        );
    }
    let away: Vec<String> = cell
        .machines
        .iter()
        .filter(|machine| machine.is_away && !machine.is_member)
        .map(|machine| machine.name())
        .collect();
    if !away.is_empty() {
        find(
            format!("{} of {} machines do not answer: {}", away.len(), cell.count, away.join(", ")),
            "start them, or mend the network between; only their own mounts suffer meanwhile"
                .into(),
        );
    }
    for machine in cell.machines.iter().filter(|machine| machine.lies > 0) {
        find(
            format!("{} has lied, which is proven {} times", short(&machine.key), machine.lies),
            "stop that machine, and find out who runs it and what: no honest one ever does".into(),
        );
    }
    for machine in &cell.machines {
        if let Some(days) = machine.ends_in(words::now()) {
            find(
                format!(
                    "the certificate of {} ends in {days} days; from then on no machine lets it in",
                    machine.name()
                ),
                "start a machine that has an issuer's key: the other is renewed within a day, by itself. Or bring \
                 such a key there once: `croft renew --issuer FILE`"
                    .into(),
            );
        }
    }
    let powers = &status["powers"];
    if powers["root"] == "open" {
        find(
            format!(
                "the cell's root key lies open in {}, on a machine that runs: whoever reads it can let in \
                 and send away whom they like",
                home.join("root").display()
            ),
            format!(
                "move it to something that you put away, and name it with --root when it is needed; or seal \
                 it with a passphrase: `croft root seal --dir {directory}`"
            ),
        );
    }
    if let Some(days) =
        powers["issuer"]["expires"].as_u64().and_then(|at| ends_soon(at, words::now()))
    {
        find(
            match days {
                0 => "this machine can't invite, enrol, renew and revoke any more: its issuer's warrant is over"
                    .into(),
                days => format!(
                    "the warrant of this machine's issuer ends in {days} days; from then on it can't invite, \
                     enrol, renew and revoke"
                ),
            },
            "make a new one where the root key is, `croft issuer new > FILE`, and here: `croft issuer take FILE`"
                .into(),
        );
    }
    if cell.members < MEMBERS {
        let remedy = match cell.count {
            count if count >= MEMBERS => {
                "wait: the group grows by itself as soon as four machines answer".into()
            }
            _ if !cell.is_listening => {
                "no machine can join this one, since it does not listen: start it with `croft run \
                 --listen ADDRESS`, or live with it and keep a backup"
                    .into()
            }
            _ => "have machines join until there are four, each with a code that `croft invite` prints \
                  where an issuer's key is, as where the cell was founded: from then on any one may be lost"
                .into(),
        };
        find(format!("the group is {}", cell.group()), remedy);
    }
    if let Some(path) = status["mount_wanted"].as_str()
        && !status["mounts"].as_array().is_some_and(|mounts| mounts.iter().any(|at| at == path))
    {
        find(
            format!("the tree is not mounted at {path} any more"),
            format!("mount it again: croft mount {path} --dir {directory}"),
        );
    }
    match status["recovery_files"].as_u64().unwrap_or(0) {
        0 => {}
        files => find(
            format!("{files} files in {} tell what was lost", home.join("recovery").display()),
            "look into them, do again what matters, and remove them".into(),
        ),
    }
    if status["recovery_full"] == true {
        find(
            format!("there is no room for more in {}", home.join("recovery").display()),
            "move its files elsewhere: until then of what is lost only lines in `unkept` tell, and a file \
             that was changed on two machines at once can't be used where it would lose something"
                .into(),
        );
    }
    findings
}
