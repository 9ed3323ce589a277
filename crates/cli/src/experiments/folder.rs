//! The folder of a page: what has been run, so that an interrupted run goes on, and what readers get.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use base::{Digest, Domain};
use papers::{Experiment, Gallery, Run, Scale};
use serde::{Deserialize, Serialize};

const PROGRAM: Domain = Domain::new("program that ran an experiment v1");
const PLAN: Domain = Domain::new("plan of an experiment v1");

pub struct Folder {
    root: PathBuf,
    /// The digest of this very program: runs of another are run again.
    program: String,
}

/// A run that was kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    program: String,
    plan: String,
    scale: Scale,
    processor_s: f64,
    run: Run,
}

impl Folder {
    /// This folder, which is made if it is not there.
    pub fn open(root: &Path) -> anyhow::Result<Folder> {
        let runs = root.join("runs");
        fs::create_dir_all(&runs).with_context(|| format!("cannot make {}", runs.display()))?;
        let program = std::env::current_exe().and_then(fs::read);
        let program = program.context("cannot read the program that is running")?;
        let program = Digest::of(PROGRAM, &program).to_string();
        Ok(Folder { root: root.to_owned(), program })
    }

    pub fn program(&self) -> &str {
        &self.program
    }

    fn path(&self, id: &str, seed: Option<u64>) -> PathBuf {
        let seed = seed.map(|seed| format!("-{seed}")).unwrap_or_default();
        self.root.join("runs").join(format!("{id}{seed}.json"))
    }

    /// What this program has found with the same plan, scale and seed, and what it took of a processor. What can't be
    /// read is run again.
    pub fn find(
        &self,
        experiment: &Experiment,
        scale: Scale,
        seed: Option<u64>,
    ) -> Option<(Run, f64)> {
        let text = fs::read(self.path(&experiment.plan().id, seed)).ok()?;
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        let is_same = kept.program == self.program
            && kept.plan == plan(experiment)
            && kept.scale == scale
            && kept.run.seed == seed;
        is_same.then_some((kept.run, kept.processor_s))
    }

    /// Keeps a run, for whoever comes back.
    pub fn keep(
        &self,
        experiment: &Experiment,
        scale: Scale,
        run: &Run,
        processor_s: f64,
    ) -> anyhow::Result<()> {
        let (program, plan) = (self.program.clone(), plan(experiment));
        let kept = Kept { program, plan, scale, processor_s, run: run.clone() };
        let path = self.path(&experiment.plan().id, run.seed);
        replace(&path, &serde_json::to_string(&kept)?)
    }

    /// Writes the page.
    pub fn write(&self, gallery: &Gallery) -> anyhow::Result<()> {
        for (path, text) in gallery.files() {
            let path = self.root.join(path);
            if let Some(above) = path.parent() {
                fs::create_dir_all(above)
                    .with_context(|| format!("cannot make {}", above.display()))?;
            }
            replace(&path, &text)?;
        }
        Ok(())
    }
}

fn plan(experiment: &Experiment) -> String {
    Digest::of(PLAN, experiment.source().as_bytes()).to_string()
}

/// All of it or nothing: who is interrupted leaves what was there.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let new = path.with_extension("new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_by_the_same_program_plan_scale_and_seed_only() {
        let root = std::env::temp_dir().join(format!("croft-papers-{}", std::process::id()));
        let folder = Folder::open(&root).unwrap();
        let experiment = papers::find("H-E2").unwrap();
        let run = experiment.measure(Scale::from(0.01), Some(5), &mut |_| ()).unwrap();
        folder.keep(experiment, Scale::from(0.01), &run, 2.5).unwrap();
        let find = |scale: f64, seed| folder.find(experiment, Scale::from(scale), Some(seed));
        assert_eq!(find(0.01, 5), Some((run, 2.5)));
        assert!(find(0.02, 5).is_none() && find(0.01, 6).is_none());
        let other = Folder { program: "another".into(), root: root.clone() };
        assert!(other.find(experiment, Scale::from(0.01), Some(5)).is_none());
        fs::write(folder.path("H-E2", Some(5)), "{").unwrap();
        assert!(find(0.01, 5).is_none());
        fs::remove_dir_all(root).unwrap();
    }
}
