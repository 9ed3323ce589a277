//! `croft quota`: who may have how much of what the machines have room for, and has.

use std::{
    io::{Write, stderr, stdout},
    process::ExitCode,
};

use anyhow::bail;
use host::{Registrar, Whose};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    machine::{self, Home},
    view::short,
    words,
};

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("whose").args(["user", "machine", "everybody"])))]
#[command(group(clap::ArgGroup::new("what").args(["bytes", "files", "usual"]).multiple(true).requires("whose")))]
pub struct Args {
    #[command(flatten)]
    home: Home,
    /// Print one JSON array
    #[arg(long, conflicts_with = "whose")]
    json: bool,
    /// Set what this user may have, by name or number; it takes an issuer's key
    #[arg(long, value_name = "USER", requires = "what")]
    user: Option<String>,
    /// Set how many bytes may be on the machine whose key begins with these digits
    #[arg(long, value_name = "KEY", requires = "what")]
    machine: Option<String>,
    /// Set what each user may have of whom nothing else is said
    #[arg(long, requires = "what")]
    everybody: bool,
    /// So many bytes, as in 500M, 10G or 2T
    #[arg(long, value_parser = words::amount)]
    bytes: Option<u64>,
    /// So many files, directories and links, as in 50000, 500K or 1M
    #[arg(long, value_parser = words::count)]
    files: Option<u64>,
    /// As much as if nothing had been set
    #[arg(long, conflicts_with_all = ["bytes", "files"])]
    usual: bool,
}

/// What is asked of a machine that runs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    Show,
    Set { whose: Whose, files: Option<u64>, bytes: Option<u64> },
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let home = &args.home.directory;
    let number = |name: &String| match name.parse() {
        Ok(uid) => Whose::Number(uid),
        Err(_) => Whose::Name(name.clone()),
    };
    let whose = args.user.as_ref().map(number);
    let whose = whose.or_else(|| args.machine.clone().map(Whose::Machine));
    let whose = whose.or_else(|| args.everybody.then_some(Whose::Everybody));
    let Some(whose) = whose else {
        show(&machine::ask_quota(home, Question::Show)?, args.json)?;
        return Ok(ExitCode::SUCCESS);
    };
    let (files, bytes) = (args.files, args.bytes);
    machine::ask_quota(home, Question::Set { whose, files, bytes })?;
    writeln!(stderr(), "it is set; what is there already stays")?;
    Ok(ExitCode::SUCCESS)
}

fn show(accounts: &Value, is_json: bool) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    if is_json {
        writeln!(out, "{accounts}")?;
        return Ok(());
    }
    let Value::Array(accounts) = accounts else { bail!("the machine answers something else") };
    writeln!(
        out,
        "{:<16}{:>10}{:>10}{:>10}{:>12}{:>12}{:>12}",
        "", "bytes", "share", "escrow", "files", "share", "escrow"
    )?;
    for account in accounts {
        let who = match account["kind"].as_str() {
            Some("machine") => short(account["machine"].as_str().unwrap_or("?")).to_owned(),
            Some("user") => {
                let name = account["name"].as_str().map(str::to_owned);
                name.unwrap_or_else(|| account["uid"].to_string())
            }
            _ => "all".to_owned(),
        };
        let amount = |what: &str, of: &str| account[what][of].as_u64().unwrap_or(0);
        let bytes = |what| words::size(amount(what, "bytes"));
        write!(out, "{who:<16}{:>10}{:>10}{:>10}", bytes("used"), bytes("share"), bytes("escrow"))?;
        if account["kind"] != "machine" {
            let files = |what| amount(what, "files");
            write!(out, "{:>12}{:>12}", files("used"), most(files("share")))?;
            write!(out, "{:>12}", files("escrow"))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A number that nobody reaches is not worth reading.
fn most(files: u64) -> String {
    if files >= 1 << 32 { "any".into() } else { files.to_string() }
}

/// What a machine that runs says to that.
pub fn answer(registrar: &Registrar, question: Question) -> Result<Value, String> {
    let said = match question {
        Question::Show => registrar.accounts().map(|accounts| serde_json::json!(accounts)),
        Question::Set { whose, files, bytes } => {
            registrar.share(&whose, files, bytes).map(|()| Value::Null)
        }
    };
    said.map_err(|failure| failure.to_string())
}
