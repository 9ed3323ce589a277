//! The order of the crates: each depends only on crates of strictly lower layers.
//!
//! Crates of one layer do not know each other. Up to [`PURE_MAX`] they are also fenced: no outside
//! crate comes in but those allowed here, so that no runtime, clock or entropy comes with it.

use crate::workspace::{Crate, Dependency};

/// Every crate of the product, from the lowest layer to the highest. Some are still to be built.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["load"],
    &["lease", "group", "overlay", "locator"],
    &["directory", "vice"],
    &["wire", "content"],
    &["client", "node"],
    &["host", "sim"],
    &["mount", "papers"],
    &["cli"],
];

/// Crates beside the product. They may use anything, and nothing may use them.
const OUTSIDE: &[&str] = &["fuzz", "xtask"];

/// The highest layer without async, threads, clock, entropy, files or sockets.
const PURE_MAX: usize = 5;

/// What pure crates may use from outside, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("blake3", "the one hash"),
    ("borsh", "the one canonical encoding"),
    ("ed25519-dalek", "the one signature"),
    ("arc-malachitebft-core-consensus", "the engine behind `group`, without I/O"),
    ("arc-malachitebft-core-types", "its vocabulary"),
    ("siphasher", "the fast keyed hash of paths, for filters"),
    ("triomphe", "a counted slice behind a thin pointer"),
];

/// The layer of a crate of the product.
pub fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&name))
}

/// Whether the crate is fenced.
pub fn is_pure(name: &str) -> bool {
    layer(name).is_some_and(|layer| layer <= PURE_MAX)
}

/// Says which crates have no place, and which dependencies go the wrong way.
pub fn check(crates: &[Crate]) -> Vec<String> {
    crates.iter().flat_map(check_crate).collect()
}

fn check_crate(krate: &Crate) -> Vec<String> {
    let name = &krate.name;
    if OUTSIDE.contains(&name.as_str()) {
        return Vec::new();
    }
    let Some(layer) = layer(name) else {
        return vec![format!("{name}: has no layer; give it one in xtask/src/layers.rs")];
    };
    let check = |dependency| check_dependency(name, layer, dependency);
    krate.dependencies.iter().filter_map(check).collect()
}

fn check_dependency(name: &str, layer: usize, dependency: &Dependency) -> Option<String> {
    let target = &dependency.name;
    if !dependency.is_ours {
        let is_free = dependency.is_dev || layer > PURE_MAX;
        let is_allowed = is_free || ALLOWED.iter().any(|(allowed, _)| allowed == target);
        return (!is_allowed).then(|| {
            format!(
                "{name}: uses {target} from outside, which pure crates may not; do without, or \
                 allow it in xtask/src/layers.rs and say why"
            )
        });
    }
    match self::layer(target) {
        Some(lower) if lower < layer => None,
        Some(other) => Some(format!(
            "{name}: is of layer {layer} and depends on {target} of layer {other}; only lower \
             layers will do"
        )),
        None => Some(format!("{name}: depends on {target}, which is of no layer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate from `name: ours, =outside, ?dev` as in `client: wire, =borsh, ?=proptest`.
    fn plant(line: &str) -> Crate {
        let (name, rest) = line.split_once(':').unwrap();
        let dependencies = rest.split(',').map(str::trim).filter(|word| !word.is_empty());
        let dependencies = dependencies.map(|word| Dependency {
            name: word.trim_start_matches(['?', '=']).to_owned(),
            is_dev: word.starts_with('?'),
            is_ours: !word.contains('='),
        });
        Crate { name: name.to_owned(), dependencies: dependencies.collect(), ..Crate::default() }
    }

    fn check(line: &str, expected: &[&str]) {
        let findings = super::check(&[plant(line)]);
        assert_eq!(findings.len(), expected.len(), "{findings:?}");
        for (finding, words) in findings.iter().zip(expected) {
            assert!(finding.contains(words), "{finding:?} lacks {words:?}");
        }
    }

    #[test]
    fn downward_is_fine() {
        check("client: wire, directory, lease, base, =borsh, ?=proptest", &[]);
    }

    #[test]
    fn upward_is_reported() {
        check("base: load", &["layer 0 and depends on load of layer 1"]);
        check("wire: client, base", &["depends on client of layer 5"]);
    }

    #[test]
    fn crates_of_one_layer_do_not_know_each_other() {
        check("client: node", &["depends on node of layer 5"]);
        check("node: client", &["depends on client of layer 5"]);
    }

    #[test]
    fn tests_look_downward_too() {
        check("base: ?sim", &["depends on sim of layer 6"]);
    }

    #[test]
    fn a_crate_without_a_layer_is_reported() {
        check("attic: base", &["attic: has no layer"]);
        check("cli: attic", &["depends on attic, which is of no layer"]);
        check("cli: xtask", &["depends on xtask, which is of no layer"]);
    }

    #[test]
    fn pure_crates_use_only_what_is_allowed_from_outside() {
        check("lease: =tokio, =blake3, ?=tokio", &["uses tokio from outside"]);
        check("host: =tokio", &[]);
    }

    #[test]
    fn a_namesake_from_outside_is_not_ours() {
        check("wire: =lease", &["uses lease from outside"]);
    }

    #[test]
    fn crates_beside_the_product_use_what_they_like() {
        check("xtask: cli, =toml", &[]);
    }

    #[test]
    fn every_crate_has_one_place() {
        let mut names: Vec<_> = LAYERS.concat();
        names.extend(OUTSIDE);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
