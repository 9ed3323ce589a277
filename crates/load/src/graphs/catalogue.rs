//! All graphs by name.

use super::{client, directory, host, pager};
use crate::{graph::Graph, settings};

/// Every graph, with default settings.
pub fn all() -> Vec<Graph> {
    vec![
        client::graph(&settings::Client::default()),
        directory::graph(&settings::Directory::default()),
        host::graph(&settings::Host::default()),
        pager::graph(&settings::Pager::default()),
    ]
}

/// The graph of this name, with default settings.
pub fn find(name: &str) -> Option<Graph> {
    all().into_iter().find(|graph| graph.name() == name)
}
