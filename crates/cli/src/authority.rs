//! `croft root` and `croft issuer`: the keys of a cell's authority, and who has them.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write, stderr, stdin, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use host::{Custody, Failure, Key, Power, Root, Secret, Warrant};

use crate::{
    machine::{self, Home},
    passphrase,
    view::short,
    words,
};

/// More than any issuer's file has, in bytes.
const ISSUER_BYTES_MAX: u64 = 4 << 10;

/// Where a root key is.
#[derive(clap::Args)]
pub struct RootFile {
    /// The file with the cell's root key; `root` in the machine's directory, if not given
    #[arg(long, value_name = "FILE")]
    root: Option<PathBuf>,
    /// A file whose first line is the passphrase of a root key that is sealed; it is asked for, if not given
    #[arg(long, value_name = "FILE", env = "CROFT_PASSPHRASE_FILE", hide_env_values = true)]
    passphrase_file: Option<PathBuf>,
}

impl RootFile {
    fn path(&self, directory: &Path) -> PathBuf {
        self.root.clone().unwrap_or_else(|| Root::usual(directory))
    }

    /// Its passphrase, when it is needed.
    fn ask(&self, path: &Path) -> Result<Secret, Failure> {
        let prompt = format!("the passphrase of {}: ", path.display());
        let asked = passphrase::get(self.passphrase_file.as_deref(), &prompt);
        asked.map_err(|error| Failure::Unfit(format!("{error:#}")))
    }

    /// The root key of the cell of the machine in a directory.
    pub fn open(&self, directory: &Path) -> anyhow::Result<Root> {
        let root = Root::open(&self.path(directory), &mut |path| self.ask(path))?;
        root.must_be_of_machine(directory)?;
        Ok(root)
    }
}

#[derive(clap::Subcommand)]
pub enum RootCommand {
    /// Seal the root key with a passphrase, or give it another one
    Seal(SealArgs),
}

#[derive(clap::Args)]
pub struct SealArgs {
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    root: RootFile,
    /// A file whose first line is the new passphrase; it is asked for, if not given
    #[arg(long, value_name = "FILE")]
    new_passphrase_file: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
pub enum IssuerCommand {
    /// Make a key that may invite machines and so on, and print it, for `croft issuer take` on the machine that is to
    /// have it; it takes the root key
    New(NewArgs),
    /// Let this machine invite and so on with a key that `croft issuer new` has printed
    Take(TakeArgs),
    /// Have the cell take nothing more from an issuer; the machines and users that it has let in stay. It takes the
    /// root key
    Revoke(RevokeArgs),
}

#[derive(clap::Args)]
pub struct NewArgs {
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    root: RootFile,
    /// How long it may, as in 30d or 365d
    #[arg(long = "for", value_name = "SPAN", default_value = "365d", value_parser = words::tenure)]
    span: Duration,
    /// What it may do, some of: invite, enrol, renew, revoke
    #[arg(
        long,
        value_name = "POWERS",
        value_delimiter = ',',
        default_value = "invite,enrol,renew,revoke",
        value_parser = words::power
    )]
    may: Vec<Power>,
}

#[derive(clap::Args)]
pub struct TakeArgs {
    /// The file with what `croft issuer new` has printed; `-` reads it from standard input
    file: PathBuf,
    #[command(flatten)]
    home: Home,
}

#[derive(clap::Args)]
pub struct RevokeArgs {
    /// The issuer: its key, as `croft issuer new` and `croft status --json` show it
    #[arg(value_parser = words::key)]
    issuer: Key,
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    root: RootFile,
}

pub fn root(command: &RootCommand) -> anyhow::Result<ExitCode> {
    let RootCommand::Seal(SealArgs { home, root, new_passphrase_file }) = command;
    let path = root.path(&home.directory);
    Root::seal(&path, &mut |path| root.ask(path), &mut |_| {
        let new = passphrase::get_new(new_passphrase_file.as_deref());
        new.map_err(|error| Failure::Unfit(format!("{error:#}")))
    })?;
    writeln!(
        stderr(),
        "{} is sealed: without the passphrase nobody can use it, and nobody can tell you what it was. Copies \
         that were made before lie open",
        path.display()
    )?;
    Ok(ExitCode::SUCCESS)
}

pub fn issuer(command: &IssuerCommand) -> anyhow::Result<ExitCode> {
    match command {
        IssuerCommand::New(args) => new(args),
        IssuerCommand::Take(args) => take(args),
        IssuerCommand::Revoke(args) => revoke(args),
    }
}

fn new(args: &NewArgs) -> anyhow::Result<ExitCode> {
    // Where the root key is there need be no machine of the cell.
    let path = args.root.path(&args.home.directory);
    let root = Root::open(&path, &mut |path| args.root.ask(path))?;
    let powers: BTreeSet<Power> = args.may.iter().copied().collect();
    let issuer = root.new_issuer(powers, args.span)?;
    let until = words::moment(words::now() + args.span.as_secs());
    let may: Vec<String> = args.may.iter().map(ToString::to_string).collect();
    writeln!(
        stderr(),
        "issuer {} may {} until {until}; whoever has what follows may, so treat it as a secret. On the machine \
         that is to have it: croft issuer take FILE",
        issuer.key,
        may.join(", ")
    )?;
    write!(stdout(), "{}", *issuer.text)?;
    Ok(ExitCode::SUCCESS)
}

fn take(args: &TakeArgs) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    let read = match args.file.as_os_str() == "-" {
        true => stdin().take(ISSUER_BYTES_MAX).read_to_string(&mut text),
        false => fs::File::open(&args.file)
            .and_then(|file| file.take(ISSUER_BYTES_MAX).read_to_string(&mut text)),
    };
    let text = Secret::new(text);
    read.with_context(|| format!("can't read {}", args.file.display()))?;
    let issuer = host::take_issuer(&args.home.directory, &text)?;
    let (may, until) = (issuer.may.join(", "), words::moment(issuer.expires));
    writeln!(stderr(), "this machine may {may} until {until}")?;
    if args.file.as_os_str() != "-" {
        writeln!(stderr(), "remove {}, which is a copy of a secret", args.file.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(args: &RevokeArgs) -> anyhow::Result<ExitCode> {
    let directory = &args.home.directory;
    let root = args.root.open(directory)?;
    machine::revoke_issuer_at(directory, root.revoke_issuer(&args.issuer))?;
    let key = args.issuer.to_string();
    writeln!(
        stderr(),
        "nothing more is taken from issuer {}; the machines that it has let in stay (`croft status --json` says \
         which came by it, `croft revoke` sends one away)",
        short(&key)
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Says where the root key of a new cell is, and what to do with it.
pub fn say_root(path: &Path, is_elsewhere: bool) -> anyhow::Result<()> {
    let mut err = stderr();
    let at = path.display();
    match Root::custody(path)? {
        None | Some(Custody::Sealed) => bail!("there is no root key at {at}"),
        Some(Custody::Open) if is_elsewhere => writeln!(err, "the cell's root key is {at}")?,
        Some(Custody::Open) => writeln!(
            err,
            "the cell's root key is {at}, and belongs elsewhere: move it to something that you put away, or seal \
             it with `croft root seal`; this machine invites for a year without it"
        )?,
    }
    Ok(())
}

/// So long every issuer lasts if nothing else is said.
const _: () = assert!(Warrant::SPAN == 365 * 86_400);
