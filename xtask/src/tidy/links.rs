//! Links between our own pages: each must lead to a file or folder that is there.

use super::{File, Finding};

/// Reports relative links that lead nowhere.
pub fn link(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_fenced = false;
    for (at, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        for target in targets(line) {
            if is_relative(&target) && !exists(file, &target) {
                findings.push((at + 1, format!("the link to `{target}` leads nowhere")));
            }
        }
    }
    findings
}

/// Where the links of a line lead: `[words](target "title")` and `[name]: target`.
fn targets(line: &str) -> Vec<String> {
    // Every other piece between backticks is code.
    let line = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let inline = line.match_indices("](").map(|(at, _)| &line[at + 2..]);
    let inline = inline.filter_map(|rest| rest.split([')', ' ']).next());
    let named = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let named = named.and_then(|(_, rest)| rest.split_whitespace().next());
    inline.chain(named).map(|target| target.trim_matches(['<', '>']).to_owned()).collect()
}

fn is_relative(target: &str) -> bool {
    let has_scheme = target.split(['/', '#']).next().is_some_and(|first| first.contains(':'));
    !has_scheme && !target.starts_with('#') && !target.is_empty()
}

fn exists(file: &File, target: &str) -> bool {
    let target = target.split(['#', '?']).next().unwrap_or(target);
    let mut parts: Vec<&str> = file.path.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return false,
            ".." => {}
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    let folder = format!("{path}/");
    let is_folder =
        || file.paths.range(folder.clone()..).next().is_some_and(|p| p.starts_with(&folder));
    path.is_empty() || file.paths.contains(&path) || is_folder()
}
