//! What every crate owes its reader: a folder of its name, the workspace's lints, and one sentence.
//!
//! The sentence stands in three places: the manifest's `description`, the first line of `lib.rs` or
//! `main.rs`, and the code map. A crate that can't keep its sentence is split or renamed.

use crate::{layers, workspace::Crate};

/// The page with the code map.
pub const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Says which crates lack manners; `architecture` is the text of the page with the code map.
pub fn check(crates: &[Crate], architecture: &str) -> Vec<String> {
    crates.iter().flat_map(|krate| check_crate(krate, architecture)).collect()
}

fn check_crate(krate: &Crate, architecture: &str) -> Vec<String> {
    let name = &krate.name;
    let mut findings = Vec::new();
    if krate.folder != *name {
        findings
            .push(format!("{name}: lies in a folder called {}; give it its name", krate.folder));
    }
    if !has_workspace_lints(&krate.manifest) {
        findings.push(format!("{name}: lacks `[lints] workspace = true` in its manifest"));
    }
    let Some(description) = krate.description.as_deref().map(|text| text.trim_end_matches('.'))
    else {
        findings.push(format!("{name}: lacks a `description` in its manifest"));
        return findings;
    };
    let layer = layers::layer(name).map_or("–".to_owned(), |layer| layer.to_string());
    let row = format!("| {layer} | `{name}` | {description} |");
    if !architecture.lines().any(|line| line == row) {
        findings.push(format!("{name}: {ARCHITECTURE}'s code map lacks the line `{row}`"));
    }
    if let Some(sentence) = krate.root.as_deref().map(first_sentence)
        && sentence != description
    {
        findings.push(format!(
            "{name}: its description is `{description}`, but its first sentence `{sentence}`; say \
             the same in both"
        ));
    }
    findings
}

fn has_workspace_lints(manifest: &str) -> bool {
    let Ok(manifest) = manifest.parse::<toml::Table>() else { return false };
    let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
    lints.and_then(toml::Value::as_bool) == Some(true)
}

/// The first sentence of a file's opening comment, without its full stop.
fn first_sentence(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let paragraph = lines.map(str::trim).take_while(|line| !line.is_empty());
    let paragraph = paragraph.collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").unwrap_or(paragraph.len());
    paragraph[..end].trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "| 2 | `lease` | Both halves of the lease contract |";

    fn polite() -> Crate {
        Crate {
            name: "lease".to_owned(),
            folder: "lease".to_owned(),
            description: Some("Both halves of the lease contract".to_owned()),
            manifest: "[lints]\nworkspace = true\n".to_owned(),
            root: Some("//! Both halves of\n//! the lease contract.\n//!\n//! More.\n".to_owned()),
            ..Crate::default()
        }
    }

    fn findings(krate: Crate, map: &str) -> String {
        check(&[krate], map).join("\n")
    }

    #[test]
    fn a_polite_crate_passes() {
        assert_eq!(findings(polite(), MAP), "");
    }

    #[test]
    fn a_crate_without_the_lints_is_reported() {
        for manifest in
            ["", "[lints]\nworkspace = false\n", "[lints.rust]\nmissing_docs = \"warn\""]
        {
            let krate = Crate { manifest: manifest.to_owned(), ..polite() };
            assert!(findings(krate, MAP).contains("lacks `[lints]"), "{manifest}");
        }
    }

    #[test]
    fn a_crate_without_a_description_is_reported() {
        let krate = Crate { description: None, ..polite() };
        assert!(findings(krate, MAP).contains("lacks a `description`"));
    }

    #[test]
    fn a_crate_that_the_code_map_lacks_is_reported() {
        for map in ["", "| 3 | `lease` | Both halves of the lease contract |"] {
            assert!(findings(polite(), map).contains("code map lacks the line"), "{map}");
        }
    }

    #[test]
    fn a_crate_in_a_strange_folder_is_reported() {
        let krate = Crate { folder: "leases".to_owned(), ..polite() };
        assert!(findings(krate, MAP).contains("a folder called leases"));
    }

    #[test]
    fn a_crate_with_two_sentences_is_reported() {
        let krate = Crate { root: Some("//! Half of it. More.\n".to_owned()), ..polite() };
        assert!(findings(krate, MAP).contains("but its first sentence `Half of it`"));
    }

    #[test]
    fn a_crate_without_a_root_has_nothing_to_compare() {
        assert_eq!(findings(Crate { root: None, ..polite() }, MAP), "");
    }
}
