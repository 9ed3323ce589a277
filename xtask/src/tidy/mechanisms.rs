//! The list of the papers' mechanisms: what is cited stands in it, and what it names is there.

use std::collections::BTreeSet;

use super::{File, Finding, source::is_word};

/// Where the list is.
pub const PATH: &str = "docs/mechanisms.md";

/// The letters of the papers.
const LETTERS: &str = "LDKH";

/// Crates that are no part of what runs for users.
const BESIDE: &[&str] = &["crates/papers/", "crates/sim/", "crates/vice/", "crates/locator/"];

/// A state, and which files one of those that it names has to be of.
struct State {
    name: &'static str,
    needs: Option<fn(path: &str) -> bool>,
}

const STATES: &[State] = &[
    State { name: "in the product", needs: Some(is_product) },
    State { name: "in part", needs: Some(is_product) },
    State { name: "library", needs: Some(is_library) },
    State { name: "experiments", needs: Some(is_experiment) },
    State { name: "not yet", needs: None },
    State { name: "absent", needs: None },
    State { name: "on purpose", needs: None },
];

fn is_product(path: &str) -> bool {
    path.starts_with("crates/") && !BESIDE.iter().any(|beside| path.starts_with(beside))
}

fn is_library(path: &str) -> bool {
    is_product(path) || path.starts_with("crates/locator/")
}

fn is_experiment(path: &str) -> bool {
    path.starts_with("crates/papers/")
}

/// Whether it is the list.
pub fn is_list(path: &str) -> bool {
    path == PATH
}

/// The numbers that the list has.
pub fn numbers(list: &str) -> BTreeSet<String> {
    let rows = list.lines().filter_map(cells);
    rows.map(|cells| cells[0].to_owned()).collect()
}

/// Reports numbers that nobody can look up.
pub fn citation(file: &File) -> Vec<Finding> {
    let mut code = file.code.lines();
    let mut findings = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        // Of Rust, only what is blank in its code: comments and literals.
        let said: String = match code.next() {
            Some(code) => {
                let pairs = line.chars().zip(code.chars());
                pairs.map(|(said, code)| if code == ' ' { said } else { '_' }).collect()
            }
            None => line.to_owned(),
        };
        for number in cited(&said) {
            if !file.numbers.contains(number) {
                findings.push((at + 1, format!("{number} does not stand in {PATH}")));
            }
        }
    }
    findings
}

/// The numbers in a line: a paper's letter and one or two digits, and not a part of another word.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c| !is_word(c) && c != '-');
    words.filter(|word| is_number(word))
}

fn is_number(word: &str) -> bool {
    word.strip_prefix(|c| LETTERS.contains(c)).is_some_and(|digits| {
        (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The cells of a row that is about a number.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix("| ")?.strip_suffix('|')?;
    let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
    is_number(cells[0]).then_some(cells)
}

/// Reports rows that are wrong, and numbers that are left out.
pub fn list(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut last = String::new();
    for (at, line) in file.text.lines().enumerate() {
        let Some(cells) = cells(line) else { continue };
        let mut find = |message: String| findings.push((at + 1, message));
        let number = cells[0];
        if !last.is_empty() && !follows(&last, number) {
            find(format!("{number} does not come after {last}"));
        }
        last = number.to_owned();
        let [_, _, places, state] = cells[..] else {
            find(format!("{number} needs a number, what it is, where, and a state"));
            continue;
        };
        let places: Vec<&str> = places.split('`').skip(1).step_by(2).collect();
        for place in places.iter().filter(|place| !file.paths.contains(**place)) {
            find(format!("there is no file `{place}`"));
        }
        match STATES.iter().find(|known| is_state(state, known.name)) {
            None => find(format!("`{state}` is no state; the page lists them")),
            Some(State { name, needs: Some(needs) }) if !places.iter().any(|p| needs(p)) => {
                find(format!("{number} is said to be {name}, and no file of that kind is named"));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Whether it is this state, perhaps with more to say about it.
fn is_state(cell: &str, name: &str) -> bool {
    cell.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(": "))
}

/// Whether a number is the next of its paper, or the first of another.
fn follows(last: &str, number: &str) -> bool {
    let digits = |number: &str| number[1..].parse::<u32>().unwrap_or_default();
    match last[..1] == number[..1] {
        true => digits(number) == digits(last) + 1,
        false => digits(number) <= 1,
    }
}
