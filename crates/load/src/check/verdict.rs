//! Verdicts: what the checker says about a whole graph.

use std::fmt;

use super::finding::{Finding, Path};

/// What the checker says about a graph.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The name of the graph.
    pub graph: &'static str,
    /// Why it is not immune. Empty if it is.
    pub findings: Vec<Finding>,
    /// What is suspicious, but does not make it vulnerable.
    pub cautions: Vec<Finding>,
    /// The places that are not immune, which is known.
    pub exceptions: Vec<Exception>,
}

/// A place that is not immune, which is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The label of the place.
    pub place: &'static str,
    /// The name of the place.
    pub name: &'static str,
    /// How load gets there.
    pub path: Path,
    /// Why it cannot be protected, and what is done instead.
    pub because: &'static str,
}

/// How a place stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It cannot overflow.
    Immune,
    /// It can, and that is known.
    Exception,
    /// It can.
    Vulnerable,
}

impl Verdict {
    pub(super) fn new(graph: &'static str) -> Verdict {
        Verdict { graph, findings: Vec::new(), cautions: Vec::new(), exceptions: Vec::new() }
    }

    /// Whether every place is immune, but for known exceptions.
    pub fn is_immune(&self) -> bool {
        self.findings.is_empty()
    }

    /// How one place stands.
    pub fn standing(&self, label: &str) -> Standing {
        if self.findings.iter().any(|finding| finding.place == label) {
            Standing::Vulnerable
        } else if self.exceptions.iter().any(|exception| exception.place == label) {
            Standing::Exception
        } else {
            Standing::Immune
        }
    }

    /// The labels of the places that are not immune, each once, in order of the findings.
    pub fn vulnerable(&self) -> Vec<&'static str> {
        let mut labels = Vec::new();
        for finding in &self.findings {
            if !labels.contains(&finding.place) {
                labels.push(finding.place);
            }
        }
        labels
    }

    /// The verdict in one line.
    pub fn summary(&self) -> String {
        if !self.is_immune() {
            return format!("not immune: {}", self.vulnerable().join(", "));
        }
        let labels: Vec<_> = self.exceptions.iter().map(|exception| exception.place).collect();
        match labels.len() {
            0 => "immune".to_owned(),
            1 => format!("immune but for {}, a known exception", labels[0]),
            _ => format!("immune but for {}, known exceptions", labels.join(", ")),
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exception { place, name, path, because } = self;
        write!(f, "{place} ({name}): not provably immune, load comes by {path}; {because}")
    }
}
