//! Runs that take minutes or more, by name.

use std::path::Path;

use crate::run;

/// A run that is too long for every check.
struct Run {
    name: &'static str,
    shows: &'static str,
    needs: &'static [Need],
    /// What to run, its words apart by spaces.
    words: &'static str,
}

/// Something that a run needs and that is not part of the toolchain of every day.
struct Need {
    what: &'static str,
    probe: &'static [&'static str],
    /// The command that brings it.
    source: &'static str,
}

const NIGHTLY: Need = Need {
    what: "a nightly toolchain",
    probe: &["rustup", "run", "nightly", "rustc", "--version"],
    source: "rustup toolchain install nightly",
};

const CARGO_FUZZ: Need = Need {
    what: "cargo-fuzz",
    probe: &["cargo", "fuzz", "--version"],
    source: "cargo install cargo-fuzz",
};

const FSX: Need = Need {
    what: "fsx in target/tools",
    probe: &["target/tools/bin/fsx", "--version"],
    source: "cargo install --locked --debug --root target/tools fsx --version 0.3.2",
};

const NFS: Need = Need {
    what: "a server of NFS that needs no kernel's (Debian's package starts one: not on a computer where that is not wanted)",
    probe: &["ganesha.nfsd", "-v"],
    source: "apt-get install --no-install-recommends nfs-ganesha-vfs libnfs-utils",
};

/// Tests on mounts are ended after ten minutes, if `CROFT_TEST_MINUTES` does not say more.
static RUNS: &[Run] = &[
    Run {
        name: "fuzz-file-id",
        shows: "no bytes break the reading of a file id, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run file_id -- -max_total_time=300",
    },
    Run {
        name: "fuzz-codec",
        shows: "no bytes break the canonical codec, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run codec -- -max_total_time=300",
    },
    Run {
        name: "fuzz-wire",
        shows: "no bytes break the reading of a message, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run wire -- -max_total_time=300",
    },
    Run {
        name: "fuzz-overlay",
        shows: "no bytes break the reading of certificates and invitations, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run overlay -- -max_total_time=300",
    },
    Run {
        name: "fuzz-locator",
        shows: "no bytes break the reading of a filter or what is known of groups, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run locator -- -max_total_time=300",
    },
    Run {
        name: "fuzz-order",
        shows: "no bytes break the reading of what a group decides, of joins and of names, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run order -- -max_total_time=300",
    },
    Run {
        name: "fuzz-checkpoint",
        shows: "no bytes break the reading of checkpoints, states and records of a log, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run checkpoint -- -max_total_time=300",
    },
    Run {
        name: "fuzz-query",
        shows: "no bytes break the reading of requests, answers and the file about the cell, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run query -- -max_total_time=300",
    },
    Run {
        name: "fuzz-disk",
        shows: "a log whose file was changed shows nothing that was not written, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run disk -- -max_total_time=300",
    },
    Run {
        name: "fuzz-member",
        shows: "three members agree whatever the fourth says, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run member -- -max_total_time=300",
    },
    Run {
        name: "fuzz-ear",
        shows: "a client believes nothing that only one of four members says, in five minutes of trying",
        needs: &[NIGHTLY, CARGO_FUZZ],
        words: "cargo +nightly fuzz run ear -- -max_total_time=300",
    },
    Run {
        name: "joins",
        shows: "200 machines join by one code within five minutes, and says how long it took",
        needs: &[],
        words: "env CROFT_JOINS=200 cargo test --release -p host --lib as_many_machines -- --nocapture",
    },
    Run {
        name: "joins-processes",
        shows: "the same with 200 processes of `croft join -` that nobody attends to",
        needs: &[],
        words: "env CROFT_JOINS=200 cargo test --release -p cli --test mounted as_many_processes -- --nocapture",
    },
    Run {
        name: "models",
        shows: "leases are safe in every schedule of two clients, to a greater depth",
        needs: &[],
        words: "env CROFT_MODELS_DEEP=1 cargo test --release -p lease --test models",
    },
    Run {
        name: "simulate",
        shows: "files are what the reference shows in worlds with faults, 2,000 seeds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --seed 1 --count 2000",
    },
    Run {
        name: "simulate-leases",
        shows: "leases keep their promises in worlds with faults, 2,000 seeds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --workload leases --seed 1 --count 2000",
    },
    Run {
        name: "simulate-bytes",
        shows: "bytes are what was written last, on machines that hold them under faults, 2,000 seeds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --workload bytes --seed 1 --count 2000",
    },
    Run {
        name: "simulate-cells",
        shows: "files are what the reference shows with a group of four or seven members, 2,000 seeds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --workload cells --seed 1 --count 2000",
    },
    Run {
        name: "simulate-groups",
        shows: "groups agree, answer and come back in worlds with faults and liars, 2,000 seeds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --workload groups --seed 1 --count 2000",
    },
    Run {
        name: "simulate-decrees",
        shows: "who was sent away is known to every machine soon after whatever kept it from hearing, 500 seeds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --workload decrees --seed 1 --count 500",
    },
    Run {
        name: "simulate-growth",
        shows: "a cell grows from one machine while the network fails and machines crash, and sends one away, in 500 seeds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --workload growth --seed 1 --count 500",
    },
    Run {
        name: "simulate-leaders",
        shows: "how long leaders that are slow, or deaf to somebody, keep a group waiting, 200 seeds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --workload leaders --seed 1 --count 200",
    },
    Run {
        name: "simulate-floods",
        shows: "a machine without a vote that sends all that it can keeps nobody waiting, 500 seeds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --workload floods --seed 1 --count 500",
    },
    Run {
        name: "twins",
        shows: "four members agree although one of them is two, 100,000 short worlds",
        needs: &[],
        words: "cargo run --release -p cli -- simulate --workload twins --seed 1 --count 100000",
    },
    Run {
        name: "reference",
        shows: "the reference file system answers as the kernel does, a million times twice",
        needs: &[],
        words: "env CROFT_KERNEL_OPS=1000000 cargo test --release -p sim --test kernel -- --nocapture \
                --test-threads=1",
    },
    Run {
        name: "kill",
        shows: "after kill -9 there is a prefix of the work with all that was synced, 500 times",
        needs: &[],
        words: "env CROFT_TEST_MINUTES=600 CROFT_KILL_ROUNDS=500 cargo test --release -p cli --test mounted \
                -- --nocapture crash::after",
    },
    Run {
        name: "power",
        shows: "after a power cut all that was synced is whole, 100 times",
        needs: &[],
        words: "env CROFT_TEST_MINUTES=600 CROFT_POWER_ROUNDS=100 cargo test --release -p cli --test mounted \
                -- --nocapture power::after",
    },
    Run {
        name: "fsx",
        shows: "fsx finds no fault in any way that bytes go, 100,000 operations each",
        needs: &[FSX],
        words: "env CROFT_TEST_MINUTES=600 CROFT_FSX_OPS=100000 cargo test --release -p cli --test mounted \
                -- --nocapture fsx_finds",
    },
    Run {
        name: "memory",
        shows: "a machine stays under 300 MiB while a million files are made and after a start",
        needs: &[],
        words: "env CROFT_TEST_MINUTES=600 CROFT_MEMORY_FILES=1000000 cargo test --release -p cli --test \
                mounted -- --nocapture memory::",
    },
    Run {
        name: "racing",
        shows: "100,000 deeds of programs that race on three mounts agree with the reference",
        needs: &[],
        words: "env CROFT_TEST_MINUTES=600 CROFT_RACE_DEEDS=100000 cargo test --release -p cli --test \
                mounted -- --nocapture racing_programs",
    },
    Run {
        name: "bank",
        shows: "tokens are there exactly once through 100 kills and 100 freezes of machines",
        needs: &[],
        words: "env CROFT_TEST_MINUTES=600 CROFT_BANK_KILLS=100 CROFT_BANK_FREEZES=100 cargo test --release \
                -p cli --test mounted -- --nocapture every_token",
    },
    Run {
        name: "network",
        shows: "tokens are there exactly once while wires are cut and machines killed, frozen and slow, 100 times",
        needs: &[],
        words: "env CROFT_TEST_MINUTES=600 CROFT_WEATHER_ROUNDS=100 cargo test --release -p cli --test \
                mounted -- --nocapture whatever_happens_to_machines_and_wires",
    },
    Run {
        name: "names",
        shows: "100,000 names of one directory are listed once each while others come and go",
        needs: &[],
        words: "env CROFT_TEST_MINUTES=600 CROFT_NAMES=100000 cargo test --release -p cli --test mounted -- \
                --nocapture tens_of_thousands",
    },
    Run {
        name: "connections",
        shows: "ten thousand that call cost a machine little, and a friend is served meanwhile",
        needs: &[],
        words: "env CROFT_CONNECTIONS=10000 cargo test --release -p host --lib -- --nocapture a_crowd_costs",
    },
    Run {
        name: "flood",
        shows: "a machine without a vote that sends all that it can for a minute leaves the others their writes and seats",
        needs: &[],
        words: "env CROFT_FLOOD_SECONDS=60 cargo test -p host --lib -- --nocapture a_flood_leaves",
    },
    Run {
        name: "nfs",
        shows: "a user-space server of NFS exports the tree on loopback, and a client reads it",
        needs: &[NFS],
        words: "cargo test --locked -p cli --test mounted -- --nocapture a_server_of_nfs",
    },
    Run {
        name: "bench",
        shows: "what identifiers, reservoirs, leases, creates, decisions, look-ups of paths and requests of the kernel cost, beside baselines",
        needs: &[],
        words: "cargo bench -p base -p load -p lease -p group -p directory -p locator -p mount",
    },
    Run {
        name: "papers",
        shows: "our numbers beside the published ones, with three seeds, in days; goes on where it was interrupted",
        needs: &[],
        words: "cargo run --release -p cli -- papers run all --full --out target/papers",
    },
    Run {
        name: "papers-quick",
        shows: "the same in small networks, in a quarter of an hour",
        needs: &[],
        words: "cargo run --release -p cli -- papers run all --quick --out target/papers-quick",
    },
];

/// What `cargo xtask long --help` says.
pub fn help() -> String {
    "\
Lists the long runs, each with what it shows and its command, or runs one.

Usage: cargo xtask long [NAME]
"
    .to_owned()
}

/// Lists the runs, or runs the named one.
pub fn long(root: &Path, args: &[&str]) -> Result<(), String> {
    match args {
        [] => {
            print!("{}", list());
            Ok(())
        }
        [name] => start(root, find(name)?),
        [_, extra, ..] => Err(format!("one name at a time, but got `{extra}` too")),
    }
}

fn list() -> String {
    RUNS.iter()
        .map(|run| format!("{:17}{}\n{:17}$ {}\n", run.name, run.shows, "", run.words))
        .collect()
}

fn find(name: &str) -> Result<&'static Run, String> {
    RUNS.iter()
        .find(|run| run.name == name)
        .ok_or_else(|| format!("no long run `{name}`; `cargo xtask long` lists them"))
}

fn start(root: &Path, run: &Run) -> Result<(), String> {
    let Run { name, words, .. } = run;
    if let Some(need) =
        run.needs.iter().find(|need| !run::succeeds(&mut run::line(root, need.probe)))
    {
        let Need { what, source, .. } = need;
        return Err(format!("{name} needs {what}, which is missing; get it with `{source}`"));
    }
    eprintln!("== {name}: {words}");
    let words: Vec<&str> = words.split_whitespace().collect();
    run::expect_success(&mut run::line(root, &words), "what it printed above says why")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for run in RUNS {
            assert!(std::ptr::eq(find(run.name).unwrap(), run), "{} is there twice", run.name);
        }
        assert!(find("marathon").err().unwrap().contains("`marathon`"));
    }

    #[test]
    fn a_missing_need_is_named_with_its_source() {
        let need = Need { what: "a pony", probe: &["false"], source: "apt-get install pony" };
        let needs: &'static [Need] = Box::leak(Box::new([need]));
        let run = Run { name: "ride", shows: "", needs, words: "true" };
        assert_eq!(
            start(Path::new("/"), &run).unwrap_err(),
            "ride needs a pony, which is missing; get it with `apt-get install pony`"
        );
    }
}
