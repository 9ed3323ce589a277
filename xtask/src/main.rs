//! Repository chores: checks, fixes and long runs.
//!
//! Start at [`check`]: it is the list of everything that a change must pass.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a chore runs programs, reads files and talks; nothing here is part of the product"
)]

mod check;
mod layers;
mod long;
mod manners;
mod packages;
mod run;
mod tidy;
mod workspace;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

const HELP: &str = "\
Repository chores.

Usage: cargo xtask COMMAND

Commands:
  check [STEP...]  Run every check, or only these; writes nothing to the source tree
  fix              Format the code and apply what clippy can repair by itself
  test             Install what the tests need, then run every check
  long [NAME]      List the long runs, or run one of them

`cargo xtask COMMAND --help` says more about a command.
";

/// One word after `cargo xtask`.
struct Command {
    name: &'static str,
    help: fn() -> String,
    run: fn(root: &Path, args: &[&str]) -> Result<(), String>,
}

const COMMANDS: &[Command] = &[
    Command { name: "check", help: check::help, run: check::check },
    Command { name: "fix", help: check::fix_help, run: check::fix },
    Command { name: "test", help: packages::help, run: test },
    Command { name: "long", help: long::help, run: long::long },
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[&str]) -> Result<(), String> {
    let Some((&name, rest)) = args.split_first().filter(|(name, _)| !is_help(name)) else {
        print!("{HELP}");
        return Ok(());
    };
    let command = COMMANDS
        .iter()
        .find(|command| command.name == name)
        .ok_or_else(|| format!("no command `{name}`; `cargo xtask --help` lists them"))?;
    if rest.iter().any(|arg| is_help(arg)) {
        print!("{}", (command.help)());
        return Ok(());
    }
    (command.run)(&root()?, rest)
}

fn is_help(arg: &str) -> bool {
    ["help", "-h", "--help"].contains(&arg)
}

fn test(root: &Path, args: &[&str]) -> Result<(), String> {
    run::expect_no_args("test", args)?;
    packages::provide()?;
    packages::provide_tools(root)?;
    check::check(root, &[])
}

/// The repository that this program was started in, not the one that it was built in.
fn root() -> Result<PathBuf, String> {
    env::var_os("CARGO_MANIFEST_DIR")
        .and_then(|xtask| PathBuf::from(xtask).parent().map(Path::to_owned))
        .ok_or_else(|| "CARGO_MANIFEST_DIR is not set; start this as `cargo xtask`".to_owned())
}
