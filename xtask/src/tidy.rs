//! The house rules that no lint knows, over every file that git does not ignore.
//!
//! A rule looks at one file's path and text. What it wants to know about code it asks of the text
//! without comments and literals, so that a rule can be quoted without being broken.

mod links;
mod mechanisms;
mod rules;
mod source;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fs, path::Path};

use crate::{run, workspace};

/// One file under the rules.
pub struct File<'a> {
    /// Its path in the repository.
    pub path: &'a str,
    /// All of it.
    pub text: &'a str,
    /// If it is Rust, its text with comments and literals blanked out, line for line.
    pub code: &'a str,
    /// The path of every file in the repository.
    pub paths: &'a BTreeSet<String>,
    /// The numbers of the papers' mechanisms that may be cited.
    pub numbers: &'a BTreeSet<String>,
}

/// A line, counted from one, and what is wrong with it.
type Finding = (usize, String);

struct Rule {
    name: &'static str,
    applies: fn(path: &str) -> bool,
    check: fn(&File) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule { name: "opening", applies: rules::is_rust, check: rules::opening },
    Rule { name: "size", applies: rules::is_product, check: rules::size },
    Rule { name: "name", applies: rules::is_any, check: rules::name },
    Rule { name: "whitespace", applies: rules::is_written, check: rules::whitespace },
    Rule { name: "tab", applies: rules::is_rust, check: rules::tab },
    Rule { name: "unfinished", applies: rules::is_written, check: rules::unfinished },
    Rule { name: "ignored-test", applies: rules::is_rust, check: rules::ignored_test },
    Rule { name: "sleeping-test", applies: rules::is_rust, check: rules::sleeping_test },
    Rule { name: "async", applies: rules::is_pure, check: rules::asynchronous },
    Rule { name: "fence", applies: rules::is_pure, check: rules::fence },
    Rule { name: "clock", applies: rules::is_clockless, check: rules::clock },
    Rule { name: "one-fence", applies: rules::is_any, check: rules::one_fence },
    Rule { name: "unseen", applies: rules::is_pure, check: rules::unseen },
    Rule { name: "unsafe", applies: rules::is_rust, check: rules::unsafe_reason },
    Rule { name: "logic", applies: rules::is_index, check: rules::logic },
    Rule { name: "machine-path", applies: rules::is_any, check: rules::machine_path },
    Rule { name: "link", applies: rules::is_markdown, check: links::link },
    Rule { name: "citation", applies: rules::is_written, check: mechanisms::citation },
    Rule { name: "mechanism", applies: mechanisms::is_list, check: mechanisms::list },
];

/// Says what is untidy in the repository, as `path:line: message (rule)`.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let paths = list(root)?;
    let numbers = mechanisms::numbers(&workspace::read_text(&root.join(mechanisms::PATH))?);
    let mut findings = Vec::new();
    for path in &paths {
        let bytes = fs::read(root.join(path)).map_err(|e| format!("cannot read {path}: {e}"))?;
        if let Some(text) = text(&bytes) {
            findings.extend(check_file(path, text, &paths, &numbers));
        }
    }
    Ok(findings)
}

fn check_file(
    path: &str,
    text: &str,
    paths: &BTreeSet<String>,
    numbers: &BTreeSet<String>,
) -> Vec<String> {
    let code = if rules::is_rust(path) { source::code(text) } else { String::new() };
    let file = File { path, text, code: &code, paths, numbers };
    let mut findings = Vec::new();
    for rule in RULES.iter().filter(|rule| (rule.applies)(path)) {
        for (line, message) in (rule.check)(&file) {
            findings.push(format!("{path}:{line}: {message} ({})", rule.name));
        }
    }
    findings
}

/// Every file that is tracked or could be, and is there.
fn list(root: &Path) -> Result<BTreeSet<String>, String> {
    let words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let stdout = run::stdout_of(&mut run::line(root, &words))
        .map_err(|error| format!("{error}; the tidy rules need git and a git checkout"))?;
    let stdout = String::from_utf8(stdout)
        .map_err(|error| format!("a file name is not UTF-8 ({error}); rename it"))?;
    let is_file = |path: &&str| root.join(path).symlink_metadata().is_ok_and(|file| file.is_file());
    Ok(stdout.split_terminator('\0').filter(is_file).map(str::to_owned).collect())
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
