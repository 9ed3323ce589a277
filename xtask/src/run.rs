//! Programs that a chore starts.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::Path,
    process::{Command, Stdio},
};

/// The cargo that started this chore, in the repository's root.
pub fn cargo(root: &Path, args: &[&str]) -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root);
    command
}

/// A command line as one would type it, in the repository's root.
///
/// Forgets which toolchain started this chore, so that `cargo +nightly` means what it says.
pub fn line(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(root).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// Lets the command talk to the terminal, and fails with `advice` if it fails.
pub fn expect_success(command: &mut Command, advice: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` ended with {status}; {advice}", name(command))),
        Err(error) => Err(format!("cannot start `{}`: {error}; {advice}", name(command))),
    }
}

/// What the command says on stdout; its stderr goes to the terminal.
pub fn stdout_of(command: &mut Command) -> Result<Vec<u8>, String> {
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(format!("`{}` ended with {}", name(command), output.status)),
        Err(error) => Err(format!("cannot start `{}`: {error}", name(command))),
    }
}

/// Whether the command succeeds; nobody hears it.
pub fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// Refuses arguments to a command that takes none.
pub fn expect_no_args(command: &str, args: &[&str]) -> Result<(), String> {
    match args.first() {
        None => Ok(()),
        Some(arg) => Err(format!("`cargo xtask {command}` takes no arguments, but got `{arg}`")),
    }
}

/// The program without its folder, and its first argument.
fn name(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = [Some(program), command.get_args().next()].into_iter().flatten();
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_gives_advice() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 3"]);
        let error = expect_success(&mut command, "try harder").unwrap_err();
        assert_eq!(error, "`sh -c` ended with exit status: 3; try harder");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = stdout_of(&mut Command::new("no-such-program")).unwrap_err();
        assert!(error.starts_with("cannot start `no-such-program`: "), "{error}");
    }
}
