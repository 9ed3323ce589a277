//! How a passphrase or a code gets here: from a file, or from whoever sits at the terminal, without being shown.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    os::fd::AsFd,
    path::Path,
};

use anyhow::{Context, bail};
use host::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The first line of a file, or what is typed after this prompt.
pub fn get(file: Option<&Path>, prompt: &str) -> anyhow::Result<Secret> {
    match file {
        Some(file) => {
            let text = fs::read_to_string(file).map(Secret::new);
            let text = text.with_context(|| format!("can't read {}", file.display()))?;
            Ok(Secret::new(text.lines().next().unwrap_or_default().to_owned()))
        }
        None => ask(prompt),
    }
}

/// The same for a passphrase that is new: who types it does so twice.
pub fn get_new(file: Option<&Path>) -> anyhow::Result<Secret> {
    if file.is_some() {
        return get(file, "");
    }
    let new = ask("a new passphrase: ")?;
    if *ask("the same again: ")? != *new {
        bail!("these are two different passphrases; nothing was changed");
    }
    Ok(new)
}

/// A code that is typed, or pasted.
pub fn get_code() -> anyhow::Result<Secret> {
    let none = "a code is needed and there is no terminal to ask for it; pass on what `croft invite` prints, \
                after `join` or, with `-` there, on standard input";
    ask_for("the code: ", none)
}

fn ask(prompt: &str) -> anyhow::Result<Secret> {
    let none = "a passphrase is needed and there is no terminal to ask for it; name a file with \
                --passphrase-file";
    ask_for(prompt, none)
}

fn ask_for(prompt: &str, none: &'static str) -> anyhow::Result<Secret> {
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    let mut terminal = terminal.context(none)?;
    terminal.write_all(prompt.as_bytes())?;
    let quiet = Quiet::new(&terminal)?;
    let mut line = String::with_capacity(1 << 10);
    let read = BufReader::new(&terminal).read_line(&mut line);
    let line = Secret::new(line);
    drop(quiet);
    writeln!(terminal)?;
    read.context("can't read from the terminal")?;
    Ok(Secret::new(line.trim_end_matches(['\r', '\n']).to_owned()))
}

/// A terminal that does not show what is typed, until this goes.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl Quiet<'_> {
    fn new(terminal: &File) -> std::io::Result<Quiet<'_>> {
        let before = tcgetattr(terminal.as_fd())?;
        let mut quiet = before.clone();
        quiet.local_modes -= LocalModes::ECHO;
        tcsetattr(terminal.as_fd(), OptionalActions::Flush, &quiet)?;
        Ok(Quiet { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // There is nothing else to try.
        _ = tcsetattr(self.terminal.as_fd(), OptionalActions::Now, &self.before);
    }
}
