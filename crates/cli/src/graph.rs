//! `croft graph`: the workflow graphs, drawn, with their verdicts.

use std::{
    io::{Write, stderr, stdout},
    process::ExitCode,
};

use load::{Graph, draw, graphs};

#[derive(clap::Args)]
pub struct Args {
    /// Which graph; all of them in a line each if left out
    name: Option<String>,
    /// How to draw it
    #[arg(long, value_enum, default_value_t = Format::Text, requires = "name")]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// Lines to read
    Text,
    /// For Graphviz
    Dot,
    /// A picture
    Svg,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(name) = &args.name else { return list() };
    let Some(graph) = all().into_iter().find(|graph| graph.name() == name) else {
        let known: Vec<_> = all().iter().map(Graph::name).collect();
        writeln!(stderr(), "croft: no graph is called {name}; there are: {}", known.join(", "))?;
        return Ok(ExitCode::from(2));
    };
    let verdict = graph.check();
    let drawing = match args.format {
        Format::Text => draw::text(&graph, &verdict),
        Format::Dot => draw::dot(&graph, &verdict),
        Format::Svg => draw::svg(&graph, &verdict),
    };
    stdout().lock().write_all(drawing.as_bytes())?;
    Ok(code(verdict.is_immune()))
}

/// What a machine has in force, and what the papers draw.
fn all() -> Vec<Graph> {
    let client = client::Settings::of(lease::Client(1));
    let (group, member) = (group::Settings::default(), node::Limits::default());
    let in_force = [
        client::graph::graph(&client),
        node::graph::graph(&group, &member),
        host::network_graph(&host::Limits::default()),
    ];
    in_force.into_iter().chain(graphs::all()).collect()
}

fn list() -> anyhow::Result<ExitCode> {
    let mut out = stdout().lock();
    let mut all_immune = true;
    for graph in all() {
        let verdict = graph.check();
        writeln!(out, "{:10} {} ({})", graph.name(), verdict.summary(), graph.title())?;
        all_immune &= verdict.is_immune();
    }
    Ok(code(all_immune))
}

fn code(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
