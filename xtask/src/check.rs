//! Everything that a change must pass, in the order of how soon it can fail.

use std::{path::Path, time::Instant};

use crate::{layers, manners, run, tidy, workspace};

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&Path) -> Result<(), String>,
}

const STEPS: &[Step] = &[
    Step { name: "format", what: "the code is formatted", run: format },
    Step { name: "layers", what: "crates depend downward and keep their sentence", run: layers },
    Step { name: "tidy", what: "the house rules that no lint knows", run: tidy },
    Step { name: "clippy", what: "lints, among them the determinism fence", run: clippy },
    Step { name: "tests", what: "every test of the workspace", run: tests },
    Step { name: "docs", what: "the documentation builds and its links hold", run: docs },
];

/// What `cargo xtask check --help` says.
pub fn help() -> String {
    let mut help = "\
Runs every check, or only the named steps, and stops at the first that fails.
Writes nothing to the source tree.

Usage: cargo xtask check [STEP...]

Steps:
"
    .to_owned();
    for step in STEPS {
        help += &format!("  {:8} {}\n", step.name, step.what);
    }
    help
}

/// Runs the named steps, or all of them, until one fails.
pub fn check(root: &Path, names: &[&str]) -> Result<(), String> {
    for step in choose(names)? {
        eprintln!("== {}: {}", step.name, step.what);
        let start = Instant::now();
        let outcome = (step.run)(root);
        eprintln!("== {} took {:.1} s", step.name, start.elapsed().as_secs_f64());
        outcome.map_err(|message| format!("{}: {message}", step.name))?;
    }
    Ok(())
}

fn choose(names: &[&str]) -> Result<Vec<&'static Step>, String> {
    let find = |name: &&str| {
        STEPS.iter().find(|step| step.name == *name).ok_or_else(|| {
            format!("no step `{name}`; `cargo xtask check --help` lists the steps of a check")
        })
    };
    if names.is_empty() { Ok(STEPS.iter().collect()) } else { names.iter().map(find).collect() }
}

fn format(root: &Path) -> Result<(), String> {
    run::expect_success(
        &mut run::cargo(root, &["fmt", "--all", "--check"]),
        "`cargo xtask fix` formats the code",
    )
}

fn layers(root: &Path) -> Result<(), String> {
    let crates = workspace::read(root)?;
    let architecture = workspace::read_text(&root.join(manners::ARCHITECTURE))?;
    let mut findings = layers::check(&crates);
    findings.extend(manners::check(&crates, &architecture));
    report(
        &findings,
        "mend what stands above; if the design has changed, change xtask/src/layers.rs with it",
    )
}

fn tidy(root: &Path) -> Result<(), String> {
    report(&tidy::check(root)?, "mend what stands above; each rule stands in xtask/src/tidy.rs")
}

fn clippy(root: &Path) -> Result<(), String> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    run::expect_success(
        &mut run::cargo(root, &args),
        "mend what it reports (`cargo xtask fix` does what can be done by itself); clippy.toml \
         says what the fence keeps out and why",
    )
}

fn tests(root: &Path) -> Result<(), String> {
    run::expect_success(
        &mut run::cargo(root, &["test", "--workspace", "--locked"]),
        "run one test alone with `cargo test -p CRATE NAME`",
    )
}

fn docs(root: &Path) -> Result<(), String> {
    run::expect_success(
        run::cargo(root, &["doc", "--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
        "mend the documentation that it names",
    )
}

fn report(findings: &[String], advice: &str) -> Result<(), String> {
    for finding in findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err(format!("1 finding; {advice}")),
        count => Err(format!("{count} findings; {advice}")),
    }
}

/// What `cargo xtask fix --help` says.
pub fn fix_help() -> String {
    "\
Applies what clippy can repair by itself, then formats the code.
Changes files in place, also when they have changes that are not committed.

Usage: cargo xtask fix
"
    .to_owned()
}

/// Repairs what can be repaired without thinking.
pub fn fix(root: &Path, args: &[&str]) -> Result<(), String> {
    run::expect_no_args("fix", args)?;
    let clippy =
        ["clippy", "--fix", "--allow-dirty", "--allow-staged", "--workspace", "--all-targets"];
    run::expect_success(&mut run::cargo(root, &clippy), "mend the rest by hand")?;
    run::expect_success(&mut run::cargo(root, &["fmt", "--all"]), "mend the syntax by hand")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_without_names_is_the_whole_check() {
        assert_eq!(choose(&[]).unwrap().len(), STEPS.len());
    }

    #[test]
    fn named_steps_run_in_the_order_given() {
        let names: Vec<_> = choose(&["tidy", "format"]).unwrap().iter().map(|s| s.name).collect();
        assert_eq!(names, ["tidy", "format"]);
    }

    #[test]
    fn an_unknown_step_is_named() {
        assert!(choose(&["tidy", "polish"]).err().unwrap().contains("`polish`"));
    }
}
