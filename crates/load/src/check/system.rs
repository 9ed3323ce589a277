//! Systems: several graphs of one machine that may overlap.

use super::{Verdict, verdict::Standing};
use crate::graph::Graph;

/// Several graphs that together describe one machine.
///
/// A large graph may be cut into subsystems that overlap. A place need only be immune in one of
/// those that contain it (L22).
#[derive(Clone, Debug)]
pub struct System {
    name: &'static str,
    graphs: Vec<Graph>,
}

impl System {
    /// A system of these graphs. Equal labels mean the same place.
    pub fn new(name: &'static str, graphs: Vec<Graph>) -> System {
        System { name, graphs }
    }

    /// Whether every place is immune in some graph, and if not, why.
    pub fn check(&self) -> Verdict {
        let verdicts: Vec<_> = self.graphs.iter().map(|graph| (graph, graph.check())).collect();
        let has_standing = |label: &str, standing| {
            verdicts.iter().any(|(graph, verdict)| {
                graph.node(label).is_some() && verdict.standing(label) == standing
            })
        };
        let mut whole = Verdict::new(self.name);
        for (_, verdict) in &verdicts {
            let findings = verdict.findings.iter().filter(|finding| {
                finding.fault.is_structural()
                    || !has_standing(finding.place, Standing::Immune)
                        && !has_standing(finding.place, Standing::Exception)
            });
            whole.findings.extend(findings.cloned());
            whole.cautions.extend(verdict.cautions.iter().cloned());
            for exception in &verdict.exceptions {
                let is_known = whole.exceptions.iter().any(|other| other.place == exception.place);
                if !is_known && !has_standing(exception.place, Standing::Immune) {
                    whole.exceptions.push(exception.clone());
                }
            }
        }
        whole
    }
}
