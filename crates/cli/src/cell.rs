//! `croft init`, `invite`, `join`, `renew`, `revoke` and `recover`: how a cell begins, grows, keeps its machines, gets
//! rid of one and goes on when it has lost too many.

use std::{
    io::{Read, Write, stderr, stdin, stdout},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use host::{Machine, Patrons, Root, Terms};

use crate::{
    authority::{self, RootFile},
    machine::{self, Home},
    passphrase,
    view::short,
    words,
};

/// More than two codes have, in bytes.
const CODES_BYTES_MAX: u64 = 4 << 10;

#[derive(clap::Args)]
pub struct InitArgs {
    #[command(flatten)]
    home: Home,
    /// Where other machines reach this one: an IP, or IP:PORT; without it nobody can join
    #[arg(long, value_name = "ADDRESS", value_parser = words::listen)]
    listen: Option<SocketAddr>,
    /// Whom this machine acts for. With `any`, machines of the cell act for whomever they like, as with NFS. With
    /// names, as in alice,bob, or `none`, no machine ever acts for users who have not agreed
    #[arg(long, value_name = "USERS", default_value = "any", value_parser = words::patrons)]
    users: Patrons,
    /// Where the cell's root key comes to be: best on something that you take away; in the machine's directory, as
    /// `root`, if not given
    #[arg(long, value_name = "FILE")]
    root: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct InviteArgs {
    #[command(flatten)]
    home: Home,
    /// How many machines may join with the code; each can be sent away alone
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    count: u32,
    /// How long the code serves, as in 30m, 1h or 2d
    #[arg(long = "for", value_name = "SPAN", default_value = "1h", value_parser = words::span)]
    span: Duration,
    /// Whom the machine that joins may act for: names, as in alice,bob, who have to agree there; `none`; or `any`,
    /// which it is if nothing is said and the cell was made so
    #[arg(long, value_name = "USERS", value_parser = words::patrons)]
    users: Option<Patrons>,
}

#[derive(clap::Args)]
pub struct JoinArgs {
    /// What `croft invite` has printed; `-` reads it from standard input, where nobody else sees it, and without it
    /// the terminal is asked
    code: Option<String>,
    /// A code by another machine: nothing is done unless both lead to the same cell
    other: Option<String>,
    #[command(flatten)]
    home: Home,
    /// Where other machines reach this one: an IP, or IP:PORT; the address from which this machine
    /// reaches the one that invites, if not given
    #[arg(long, value_name = "ADDRESS", value_parser = words::listen)]
    listen: Option<SocketAddr>,
}

#[derive(clap::Args)]
pub struct RenewArgs {
    #[command(flatten)]
    home: Home,
    /// A file with an issuer's key; without it, and unless one is in the machine's directory, the other machines are
    /// asked
    #[arg(long, value_name = "FILE")]
    issuer: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct RevokeArgs {
    /// The machine: its key as `croft status` shows it, or as many digits as no other key begins with
    machine: String,
    #[command(flatten)]
    home: Home,
}

#[derive(clap::Args)]
pub struct RecoverArgs {
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    root: RootFile,
    /// Do it, and accept that what only the lost members have decided is lost for good
    #[arg(long)]
    accept_loss: bool,
    /// Have this machine follow at once a recovery elsewhere that it has heard of: of itself it does so after
    /// 30 seconds in which too few members answer that they decide
    #[arg(long, conflicts_with_all = ["accept_loss", "root"])]
    obey: bool,
}

pub fn init(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let directory = &args.home.directory;
    let root = args.root.clone().unwrap_or_else(|| Root::usual(directory));
    Machine::init_for(directory, args.listen, args.users.clone(), &root)?;
    let mut err = stderr();
    writeln!(err, "made a cell of one machine in {}", directory.display())?;
    authority::say_root(&root, args.root.is_some())?;
    match &args.users {
        Patrons::Any => writeln!(
            err,
            "its machines act for any user: whoever is superuser on one of them can act as anybody, as with \
             NFS (with --users they would act only for those who agree)"
        )?,
        Patrons::These(_) => writeln!(
            err,
            "its machines act only for users who agree: croft user add NAME, then croft user agree FILE"
        )?,
    }
    say_start(directory)?;
    match args.listen {
        Some(_) => {
            writeln!(err, "then have others join: croft invite --dir {}", directory.display())?;
        }
        None => writeln!(
            err,
            "it does not listen, so no machine can join it; for that, run it with --listen ADDRESS"
        )?,
    }
    Ok(ExitCode::SUCCESS)
}

pub fn invite(args: &InviteArgs) -> anyhow::Result<ExitCode> {
    let terms = Terms { count: args.count, span: args.span, patrons: args.users.clone() };
    let code = Machine::invite_for(&args.home.directory, terms)?;
    let until = words::now() + args.span.as_secs();
    let mut err = stderr();
    writeln!(err, "on the machine that is to join, while this one runs: croft join CODE")?;
    writeln!(
        err,
        "it serves {}, until {}; whoever has it can join, so treat it as a secret",
        match args.count {
            1 => "one machine".to_owned(),
            count => format!("{count} machines"),
        },
        words::moment(until)
    )?;
    if let Some(Patrons::These(users)) = &args.users {
        let users: Vec<&str> = users.iter().map(|user| user.as_str()).collect();
        match users.is_empty() {
            true => writeln!(err, "it acts for nobody")?,
            false => writeln!(
                err,
                "it acts for {} once they have agreed there: croft user agree FILE",
                users.join(", ")
            )?,
        }
    }
    writeln!(stdout(), "{}", code.reveal())?;
    Ok(ExitCode::SUCCESS)
}

pub fn join(args: &JoinArgs) -> anyhow::Result<ExitCode> {
    let mut codes = Vec::new();
    for code in args.code.iter().chain(&args.other) {
        let typed = if code == "-" { read_codes()? } else { code.clone() };
        codes.extend(typed.split_whitespace().map(str::to_owned));
    }
    if codes.is_empty() {
        codes.push(passphrase::get_code()?.trim().to_owned());
    }
    let [code, others @ ..] = &codes[..] else { bail!("a code is needed") };
    if others.len() > 1 {
        bail!("at most two codes are compared; name two, or one");
    }
    let listen = match args.listen {
        Some(listen) => listen,
        None => Machine::way_to(code)?,
    };
    let directory = &args.home.directory;
    Machine::join_by(directory, code, others.first().map(String::as_str), listen)?;
    if !others.is_empty() {
        writeln!(stderr(), "both codes lead to the same cell")?;
    }
    writeln!(stderr(), "joined the cell, as the machine in {}", directory.display())?;
    say_start(directory)?;
    Ok(ExitCode::SUCCESS)
}

pub fn renew(args: &RenewArgs) -> anyhow::Result<ExitCode> {
    let issuer = args.issuer.as_deref().map(std::path::absolute).transpose()?;
    let told = machine::renew_at(&args.home.directory, issuer)?;
    let until = words::moment(told.as_u64().unwrap_or(0));
    writeln!(stderr(), "the certificate of this machine lasts until {until}")?;
    Ok(ExitCode::SUCCESS)
}

pub fn revoke(args: &RevokeArgs) -> anyhow::Result<ExitCode> {
    let told = machine::revoke_at(&args.home.directory, &args.machine)?;
    let key = told["key"].as_str().unwrap_or_default();
    let mut err = stderr();
    writeln!(err, "{} is no longer of the cell; nobody lets it in or listens to it", short(key))?;
    if told["was_member"] == true {
        let what = match told["has_successor"] == true {
            true => "another machine takes its seat in the group as soon as it is there",
            false => {
                "it keeps its seat in the group, as one that is away, since no other machine can take \
                 it: until one more joins, no other member may be away"
            }
        };
        writeln!(err, "{what}")?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn recover(args: &RecoverArgs) -> anyhow::Result<ExitCode> {
    let directory = &args.home.directory;
    let mut err = stderr();
    if args.obey {
        machine::obey_at(directory)?;
        writeln!(
            err,
            "this machine follows the recovery from now on, and lets go of what was decided elsewhere since"
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut root, mut rescue) = (None, None);
    let done = loop {
        let told = machine::recover_at(directory, args.accept_loss, rescue.take())?;
        if let Some(what) = told["sign"].as_str() {
            if root.is_none() {
                root = Some(args.root.open(directory)?);
            }
            let signed = root.as_ref().map(|root: &Root| root.rescue(directory, what));
            rescue = signed.transpose()?;
            continue;
        }
        let Some(seconds) = told["wait"].as_u64() else { break told["done"].clone() };
        writeln!(
            err,
            "the lost members may have promised something that is still believed; waiting {seconds} s \
             until that is over"
        )?;
        thread::sleep(Duration::from_secs(seconds));
    };
    let (number, height) = (&done["number"], &done["height"]);
    let survivors = done["survivors"].as_array().into_iter().flatten();
    let survivors: Vec<&str> = survivors.filter_map(|key| key.as_str()).map(short).collect();
    writeln!(
        err,
        "RECOVERED: the group goes on from decision {height}, on this machine alone (recovery {number}); \
         {} other machines were told, and follow when they have asked for 30 s whether too few members are left \
         (`croft recover --obey` there has them follow at once)",
        done["told"]
    )?;
    writeln!(
        err,
        "with four machines it bears a loss again: have as many join as there are too few, with `croft \
         invite`"
    )?;
    if !survivors.is_empty() {
        writeln!(err, "these had a vote too, and get one again then: {}", survivors.join(", "))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say_start(directory: &Path) -> std::io::Result<()> {
    writeln!(stderr(), "start it with: croft run --dir {} --mount PATH", directory.display())
}

fn read_codes() -> anyhow::Result<String> {
    let mut code = String::new();
    let read = stdin().take(CODES_BYTES_MAX).read_to_string(&mut code);
    read.context("can't read the code from standard input")?;
    if code.trim().is_empty() {
        bail!("standard input has no code; pass on what `croft invite` prints");
    }
    Ok(code)
}
