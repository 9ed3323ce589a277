//! The worlds that can be run, by name.

use crate::{Outcome, bytes, decrees, files, floods, groups, growth, leases};

/// A kind of world. A seed makes it one world.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// How it is called.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Runs a seed.
    pub run: fn(u64) -> Outcome,
    /// Runs a seed and keeps as many of the last things that happened, in words.
    pub explain: fn(u64, usize) -> Outcome,
}

/// All of them.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "files",
        about: "one group, one to four machines, people who use one tree in many ways",
        run: files::run,
        explain: files::explain,
    },
    Workload {
        name: "bytes",
        about: "one group, two to four machines, programs that read and write the same few files",
        run: bytes::run,
        explain: bytes::explain,
    },
    Workload {
        name: "cells",
        about: "as `files`, with a group of four or seven members, each of which may crash",
        run: files::run_replicated,
        explain: files::explain_replicated,
    },
    Workload {
        name: "decrees",
        about: "members and machines without a vote, one of which was sent away and lies, and who hears of it",
        run: decrees::run,
        explain: decrees::explain,
    },
    Workload {
        name: "floods",
        about: "a group of four whose members need time for what they hear, and a machine without a vote that floods them",
        run: floods::run,
        explain: floods::explain,
    },
    Workload {
        name: "groups",
        about: "four or seven members of one group, some of which lie, and customers who believe enough of them",
        run: groups::run,
        explain: groups::explain,
    },
    Workload {
        name: "growth",
        about: "a cell that grows from one machine, whose machines join, take seats and crash, until one is sent away",
        run: growth::run,
        explain: growth::explain,
    },
    Workload {
        name: "leaders",
        about: "four or seven members whose first leaders are as slow as they may be, or deaf to somebody",
        run: groups::run_leaders,
        explain: groups::explain_leaders,
    },
    Workload {
        name: "leases",
        about: "one grantor, two to six clients, a small tree that all of them want",
        run: leases::run,
        explain: leases::explain,
    },
    Workload {
        name: "twins",
        about: "four members, one of which is two, for a few heights",
        run: groups::run_twins,
        explain: groups::explain_twins,
    },
];

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}
