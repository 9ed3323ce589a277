//! `croft user`: who the users of a cell are, and whom machines act for.

use std::{
    collections::BTreeSet,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use host::{Machine, Profile, Registrar, UserName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    machine::{self, Home},
    view::short,
    words,
};

#[derive(clap::Subcommand)]
pub enum Command {
    /// Enrol a user, or say anew which groups they are in; it takes an issuer's key
    Add(AddArgs),
    /// Show the users of the cell
    List(ListArgs),
    /// Remove a user for good: no machine acts for them any more; it takes an issuer's key
    Remove(RemoveArgs),
    /// Let this machine act for the user whose key is in a file
    Agree(AgreeArgs),
    /// Make a key in a file, unless it is there, and print its public half
    Key(KeyArgs),
}

#[derive(clap::Args)]
pub struct AddArgs {
    /// What they are called
    #[arg(value_parser = words::user)]
    name: UserName,
    /// Their number, which is the same on all machines
    #[arg(long, value_name = "NUMBER")]
    uid: u32,
    /// The group that their new files are of; the number of the user, if not given
    #[arg(long, value_name = "NUMBER")]
    gid: Option<u32>,
    /// The further groups that they are in
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    groups: Vec<u32>,
    /// The public half of their key, as `croft user key` prints it
    #[arg(long, value_name = "KEY", conflicts_with = "file")]
    key: Option<String>,
    /// Where their key is, or is to be made for them; NAME.key, if not given
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    home: Home,
}

#[derive(clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    home: Home,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct RemoveArgs {
    /// Who
    #[arg(value_parser = words::user)]
    name: UserName,
    #[command(flatten)]
    home: Home,
}

#[derive(clap::Args)]
pub struct AgreeArgs {
    /// The file with the user's key
    file: PathBuf,
    #[command(flatten)]
    home: Home,
}

#[derive(clap::Args)]
pub struct KeyArgs {
    /// The file
    file: PathBuf,
}

/// What is asked of a machine that runs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    Add { name: String, key: String, uid: u32, gid: u32, groups: BTreeSet<u32> },
    List,
    Remove(String),
    Agree(String),
}

pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Add(args) => add(args)?,
        Command::List(args) => list(args)?,
        Command::Remove(args) => {
            let question = Question::Remove(args.name.to_string());
            machine::ask_user(&args.home.directory, question)?;
            writeln!(stderr(), "no machine acts for {} any more", args.name)?;
        }
        Command::Agree(args) => {
            let home = &args.home.directory;
            let question = Question::Agree(Machine::consent(home, &args.file)?);
            let told = machine::ask_user(home, question)?;
            let name = told.as_str().unwrap_or_default();
            writeln!(stderr(), "the machine in {} acts for {name} now", home.display())?;
        }
        Command::Key(args) => {
            let key = host::user_key(&args.file)?;
            writeln!(stdout(), "{}", host::Key(key))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn add(args: &AddArgs) -> anyhow::Result<()> {
    let home = &args.home.directory;
    let known = users(home)?;
    let known = known.iter().find(|user| user["name"] == args.name.as_str());
    let mut err = stderr();
    let key = match (&args.key, known.filter(|_| args.file.is_none())) {
        (Some(key), _) => key.clone(),
        // Only the groups are to be others.
        (None, Some(user)) => user["key"].as_str().unwrap_or_default().to_owned(),
        (None, None) => {
            let usual = PathBuf::from(format!("{}.key", args.name));
            let file = args.file.as_ref().unwrap_or(&usual);
            let is_new = !file.exists();
            let key = host::user_key(file)?;
            if is_new {
                writeln!(
                    err,
                    "made the key of {} in {}: a secret, which is theirs alone; hand it over, and keep no copy",
                    args.name,
                    file.display()
                )?;
            }
            host::Key(key).to_string()
        }
    };
    let question = Question::Add {
        name: args.name.to_string(),
        key,
        uid: args.uid,
        gid: args.gid.unwrap_or(args.uid),
        groups: args.groups.iter().copied().collect(),
    };
    machine::ask_user(home, question)?;
    writeln!(err, "{} is a user of the cell, with the number {}", args.name, args.uid)?;
    if known.is_none() {
        writeln!(
            err,
            "machines act for them that were invited with --users {}, where they agree: croft user agree FILE",
            args.name
        )?;
    }
    Ok(())
}

fn users(home: &Path) -> anyhow::Result<Vec<Value>> {
    match machine::ask_user(home, Question::List)? {
        Value::Array(users) => Ok(users),
        other => bail!("the machine answers something else: {other}"),
    }
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let users = users(&args.home.directory)?;
    let mut out = stdout().lock();
    if args.json {
        writeln!(out, "{}", Value::Array(users))?;
        return Ok(());
    }
    for user in &users {
        let text = |field: &str| user[field].as_str().unwrap_or_default().to_owned();
        let groups = user["groups"].as_array().into_iter().flatten();
        let groups: Vec<String> = [&user["gid"]]
            .into_iter()
            .chain(groups.filter(|group| **group != user["gid"]))
            .map(Value::to_string)
            .collect();
        let removed = if user["is_removed"] == true { ", removed" } else { "" };
        writeln!(
            out,
            "{:<16}  {}  number {}, groups {}{removed}",
            text("name"),
            short(&text("key")),
            user["uid"],
            groups.join(" ")
        )?;
    }
    Ok(())
}

/// What a machine that runs says to that.
pub fn answer(registrar: &Registrar, question: Question) -> Result<Value, String> {
    try_answer(registrar, question).map_err(|error| format!("{error:#}"))
}

fn try_answer(registrar: &Registrar, question: Question) -> anyhow::Result<Value> {
    let name = |text: &str| UserName::new(text).context("that can't be a user's name");
    match question {
        Question::List => Ok(serde_json::to_value(registrar.users()?)?),
        Question::Add { name: called, key, uid, gid, groups } => {
            let what = "a key is 64 hexadecimal digits, as `croft user key` prints them";
            let key = host::public_key(&key).context(what)?;
            registrar.enrol(Profile { name: name(&called)?, key, uid, gid, groups })?;
            Ok(Value::Null)
        }
        Question::Remove(called) => {
            registrar.remove(&name(&called)?)?;
            Ok(Value::Null)
        }
        Question::Agree(consent) => Ok(registrar.agree(&consent)?.as_str().into()),
    }
}
