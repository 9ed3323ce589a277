//! The folder of a page: what has been run, so that an interrupted run goes on, and what readers get.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use base::{Digest, Domain};
use papers::{Experiment, Gallery, Run, Scale};
use serde::{Deserialize, Serialize};

use super::computer;

const PROGRAM: Domain = Domain::new("program that ran an experiment v1");
const PLAN: Domain = Domain::new("plan of an experiment v1");
/// Of a digest, so many digits are shown.
const DIGITS: usize = 12;

pub struct Folder {
    root: PathBuf,
    /// The digest of this very program: runs of another are run again.
    program: String,
}

/// A run that was kept.
#[derive(Clone, Serialize, Deserialize)]
pub struct Kept {
    /// The digest of the program that ran it.
    program: String,
    /// The digest of what the plan told it.
    plan: String,
    /// What it ran on.
    pub computer: String,
    pub scale: Scale,
    pub processor_s: f64,
    pub run: Run,
}

impl Kept {
    /// Which build of the program ran it.
    pub fn build(&self) -> &str {
        self.program.get(..DIGITS).unwrap_or(&self.program)
    }
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

    /// Which build of the program this is.
    pub fn build(&self) -> &str {
        &self.program[..DIGITS]
    }

    /// A run at each scale and with each seed has a file of its own.
    fn path(&self, id: &str, scale: Scale, seed: Option<u64>) -> PathBuf {
        let seed = seed.map(|seed| format!("-{seed}")).unwrap_or_default();
        let scale =
            if scale.is_full() { "full".into() } else { format!("{}x{}", scale.size, scale.time) };
        self.root.join("runs").join(format!("{id}-{scale}{seed}.json"))
    }

    /// What this program has found with the same plan, scale and seed. What can't be read is run again.
    pub fn find(&self, experiment: &Experiment, scale: Scale, seed: Option<u64>) -> Option<Kept> {
        let kept = read(&self.path(&experiment.plan().id, scale, seed))?;
        let is_same = kept.program == self.program
            && kept.plan == plan(experiment)
            && kept.scale == scale
            && kept.run.seed == seed;
        is_same.then_some(kept)
    }

    /// All runs of an experiment by any build that its plan told the same, in the order of their seeds.
    pub fn all(&self, experiment: &Experiment) -> anyhow::Result<Vec<Kept>> {
        let (id, told) = (experiment.plan().id, plan(experiment));
        let runs = self.root.join("runs");
        let mut all = Vec::new();
        for entry in
            fs::read_dir(&runs).with_context(|| format!("cannot list {}", runs.display()))?
        {
            let path = entry.with_context(|| format!("cannot list {}", runs.display()))?.path();
            let Some(kept) = read(&path).filter(|kept| kept.plan == told) else { continue };
            if path == self.path(&id, kept.scale, kept.run.seed) {
                all.push(kept);
            }
        }
        all.sort_by_key(|kept| kept.run.seed);
        Ok(all)
    }

    /// Keeps a run, for whoever comes back.
    pub fn keep(
        &self,
        experiment: &Experiment,
        scale: Scale,
        run: Run,
        processor_s: f64,
    ) -> anyhow::Result<Kept> {
        let path = self.path(&experiment.plan().id, scale, run.seed);
        let (program, plan) = (self.program.clone(), plan(experiment));
        let computer = computer::describe();
        let kept = Kept { program, plan, computer, scale, processor_s, run };
        replace(&path, &serde_json::to_string(&kept)?)?;
        Ok(kept)
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

/// What a plan tells the code that runs it, and none of what it says to people or expects: that is read anew for each
/// page.
fn plan(experiment: &Experiment) -> String {
    Digest::of(PLAN, experiment.plan().told().as_bytes()).to_string()
}

fn read(path: &Path) -> Option<Kept> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
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
        let [small, larger] = [0.01, 0.02].map(Scale::from);
        let run = experiment.measure(small, Some(5), &mut |_| ()).unwrap();
        folder.keep(experiment, small, run.clone(), 2.5).unwrap();
        let find = |scale, seed| folder.find(experiment, scale, Some(seed)).map(|kept| kept.run);
        assert_eq!(find(small, 5), Some(run.clone()));
        assert!(find(larger, 5).is_none() && find(small, 6).is_none());
        let other = Folder { program: "another".into(), root: root.clone() };
        assert!(other.find(experiment, small, Some(5)).is_none());

        // A page takes what any build has found.
        other.keep(experiment, larger, Run { seed: Some(4), ..run }, 1.0).unwrap();
        let all = folder.all(experiment).unwrap();
        let seeds: Vec<Option<u64>> = all.iter().map(|kept| kept.run.seed).collect();
        assert_eq!(seeds, [Some(4), Some(5)]);
        assert_eq!(all[0].build(), "another");
        assert!(folder.all(papers::find("H-E3").unwrap()).unwrap().is_empty());

        fs::write(folder.path("H-E2", small, Some(5)), "{").unwrap();
        assert!(find(small, 5).is_none());
        assert_eq!(folder.all(experiment).unwrap().len(), 1);
        fs::remove_dir_all(root).unwrap();
    }
}
