//! Refusals: which settings cannot stand together, and why.

use std::fmt;

use base::Duration;

use crate::graph::{Graph, words::span};

/// The longest period that something else may have to wait for, so that it comes to pass at all.
pub(super) const PERIOD_MAX: Duration = Duration::from_secs(86_400);

/// Settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The section of the settings.
    pub section: &'static str,
    /// What is wrong, one sentence each; never empty.
    pub breaches: Vec<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} settings cannot be used", self.section)?;
        self.breaches.iter().try_for_each(|breach| write!(f, "\n{breach}"))
    }
}

impl std::error::Error for Refused {}

/// Collects what is wrong with one section.
pub(super) struct Review {
    section: &'static str,
    breaches: Vec<String>,
}

impl Review {
    pub fn new(section: &'static str) -> Review {
        Review { section, breaches: Vec::new() }
    }

    /// An inequality that must hold, in words.
    pub fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.breaches.push(otherwise());
        }
    }

    /// Periods that must not be zero.
    pub fn require_periods(&mut self, periods: &[(&str, Duration)]) {
        for (key, period) in periods {
            self.require(!period.is_zero(), || format!("`{key}` must be above 0"));
        }
    }

    /// Periods after which something must happen that others count on.
    pub fn require_at_most(&mut self, max: Duration, periods: &[(&str, Duration)]) {
        for &(key, period) in periods {
            self.require(period <= max, || {
                format!("`{key}` ≤ {} must hold, but it is {}", span(max), span(period))
            });
        }
    }

    /// The graph that follows from the settings must be immune; `keys` says which setting is for
    /// which place.
    pub fn require_immune(&mut self, graph: &Graph, keys: &[(&str, &str)]) {
        for finding in graph.check().findings {
            let text = finding.to_string();
            let named = keys.iter().filter(|(label, _)| text.contains(label));
            let named: Vec<_> =
                named.map(|(label, key)| format!("`{key}` is for {label}")).collect();
            let tail = if named.is_empty() { "" } else { "; " };
            self.breaches.push(format!("{text}{tail}{}", named.join(", ")));
        }
    }

    pub fn verdict(self) -> Result<(), Refused> {
        if self.breaches.is_empty() {
            return Ok(());
        }
        Err(Refused { section: self.section, breaches: self.breaches })
    }
}
