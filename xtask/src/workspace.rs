//! The workspace's crates as data, read from cargo and from their manifests.

use std::{fs, path::Path};

use serde_json::Value;

use crate::run;

/// What the rules about crates want to know of one.
#[derive(Clone, Debug, Default)]
pub struct Crate {
    /// The package's name.
    pub name: String,
    /// Its `description`.
    pub description: Option<String>,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
    /// The name of the folder that its manifest lies in.
    pub folder: String,
    /// The text of its manifest.
    pub manifest: String,
    /// The text of its `lib.rs` or `main.rs`, where there is one.
    pub root: Option<String>,
}

/// One line of a crate's dependencies, for whatever target.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// The package's real name, however the crate calls it.
    pub name: String,
    /// Whether only tests, examples and benches see it.
    pub is_dev: bool,
    /// Whether it is found by path, that is, in this repository.
    pub is_ours: bool,
}

/// Reads every crate of the workspace.
pub fn read(root: &Path) -> Result<Vec<Crate>, String> {
    let args = ["metadata", "--no-deps", "--format-version", "1"];
    let stdout = run::stdout_of(&mut run::cargo(root, &args))?;
    let metadata: Value = serde_json::from_slice(&stdout)
        .map_err(|error| format!("cannot read what `cargo metadata` says: {error}"))?;
    list(&metadata, "packages").iter().map(read_crate).collect()
}

/// Reads a text file, naming it if that fails.
pub fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn read_crate(package: &Value) -> Result<Crate, String> {
    let manifest = text(package, "manifest_path");
    let is_root = |path: &&str| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
    let root = list(package, "targets").iter().map(|target| text(target, "src_path")).find(is_root);
    Ok(Crate {
        name: text(package, "name").to_owned(),
        description: package["description"].as_str().map(str::to_owned),
        dependencies: list(package, "dependencies").iter().map(read_dependency).collect(),
        folder: folder(manifest).to_owned(),
        manifest: read_text(Path::new(manifest))?,
        root: root.map(|path| read_text(Path::new(path))).transpose()?,
    })
}

fn read_dependency(dependency: &Value) -> Dependency {
    Dependency {
        name: text(dependency, "name").to_owned(),
        is_dev: text(dependency, "kind") == "dev",
        is_ours: dependency["path"].is_string(),
    }
}

fn folder(manifest: &str) -> &str {
    manifest.trim_end_matches("/Cargo.toml").rsplit('/').next().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_renamed_dependency_keeps_its_real_name() {
        let line = json!({ "name": "tokio", "rename": "innocent", "kind": null, "path": null });
        let dependency = read_dependency(&line);
        assert_eq!(dependency.name, "tokio");
        assert!(!dependency.is_dev && !dependency.is_ours);
    }

    #[test]
    fn only_dev_dependencies_are_dev_dependencies() {
        let kinds = [json!(null), json!("build"), json!("dev")];
        let is_dev = kinds.map(|kind| read_dependency(&json!({ "kind": kind })).is_dev);
        assert_eq!(is_dev, [false, false, true]);
    }
}
