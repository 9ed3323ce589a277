//! `croft init`, `run`, `mount`, `umount` and `status`: a machine's life.

use std::{
    collections::BTreeMap,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use host::{Control, Machine};
use mount::{Mount, Options, Tree};
use serde::{Deserialize, Serialize};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// Where a machine lives.
#[derive(clap::Args)]
pub struct Home {
    /// The machine's directory; the superuser's is /var/lib/croft if none is named, anybody else's
    /// ~/.local/share/croft
    #[arg(
        long = "dir",
        value_name = "DIR",
        env = "CROFT_DIR",
        hide_env_values = true,
        default_value_os_t = default_home(),
        hide_default_value = true
    )]
    pub directory: PathBuf,
}

#[derive(clap::Args)]
pub struct InitArgs {
    #[command(flatten)]
    home: Home,
}

#[derive(clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub home: Home,
    /// Mount the tree here once it runs; may be given more than once
    #[arg(long, value_name = "PATH")]
    pub mount: Vec<PathBuf>,
    /// Stop when the process that started this one ends
    #[arg(long, hide = true)]
    pub with_parent: bool,
    /// For tests: die without a word in the midst of this call, counted from the start
    #[arg(long, value_name = "N", hide = true)]
    pub die_at: Option<u64>,
}

#[derive(clap::Args)]
pub struct MountArgs {
    /// An empty directory
    path: PathBuf,
    #[command(flatten)]
    home: Home,
}

#[derive(clap::Args)]
pub struct UmountArgs {
    /// Where it is mounted
    path: PathBuf,
    #[command(flatten)]
    home: Home,
}

#[derive(clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    home: Home,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What other commands ask of a machine that runs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Question {
    Status,
    Mount(PathBuf),
    Umount(PathBuf),
}

/// What they are told: a value, or what is wrong.
type Answer = Result<serde_json::Value, String>;

/// What goes on in a machine that runs.
struct Running {
    machine: Machine,
    mounts: BTreeMap<PathBuf, (Arc<Tree>, Mount)>,
}

/// How often the machine is tidied up.
const TIDY: Duration = Duration::from_secs(1);

fn default_home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match home.filter(|_| !rustix::process::geteuid().is_root()) {
        Some(home) => home.join(".local/share/croft"),
        None => PathBuf::from("/var/lib/croft"),
    }
}

pub fn init(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let directory = &args.home.directory;
    Machine::init(directory)?;
    writeln!(stderr(), "made a cell of one machine in {}", directory.display())?;
    writeln!(stderr(), "start it with: croft run --dir {}", directory.display())?;
    Ok(ExitCode::SUCCESS)
}

pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    if args.with_parent {
        let signal = Some(rustix::process::Signal::TERM);
        rustix::process::set_parent_process_death_signal(signal)?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let machine = Machine::start(&args.home.directory)?;
    machine.desk().die_at(args.die_at);
    let running = Arc::new(Mutex::new(Running { machine, mounts: BTreeMap::new() }));
    for path in &args.mount {
        lock(&running).mount(path)?;
    }
    let asked = Arc::clone(&running);
    let control = Control::listen(&args.home.directory, move |line| answer(&asked, line))?;
    writeln!(stdout(), "ready")?;
    let (stop, stopped) = mpsc::channel::<()>();
    let tidied = Arc::clone(&running);
    let tidier = thread::spawn(move || {
        while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(TIDY) {
            lock(&tidied).tidy();
        }
    });
    signals.forever().next();
    drop((stop, control));
    _ = tidier.join();
    let running = Arc::into_inner(running).context("somebody still uses the machine")?;
    running.into_inner().unwrap_or_else(PoisonError::into_inner).stop()?;
    Ok(ExitCode::SUCCESS)
}

pub fn mount(args: &MountArgs) -> anyhow::Result<ExitCode> {
    let path = std::path::absolute(&args.path)?;
    ask(&args.home.directory, &Question::Mount(path))?;
    Ok(ExitCode::SUCCESS)
}

pub fn umount(args: &UmountArgs) -> anyhow::Result<ExitCode> {
    let path = std::path::absolute(&args.path)?;
    ask(&args.home.directory, &Question::Umount(path))?;
    Ok(ExitCode::SUCCESS)
}

pub fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let status = ask(&args.home.directory, &Question::Status)?;
    let mut out = stdout().lock();
    if args.json {
        writeln!(out, "{status}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let client = &status["client"];
    let group = &status["group"];
    writeln!(out, "machine     {}", args.home.directory.display())?;
    writeln!(out, "mounted     {}", list(&status["mounts"]))?;
    writeln!(out, "not pushed  {} operations", client["pending"])?;
    writeln!(out, "leases      {} held, {} granted", client["leases"], group["leases"])?;
    writeln!(out, "remembered  {} files and names", client["facts"])?;
    writeln!(out, "group       of one; decision {} is safe", group["height"])?;
    writeln!(
        out,
        "store       decision {}, {} records at hand, {} bytes of log",
        group["stored"], group["records"], group["log_bytes"]
    )?;
    match group["failure"].as_str() {
        Some(failure) => {
            writeln!(out, "stopped     {failure}")?;
            Ok(ExitCode::FAILURE)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

fn list(paths: &serde_json::Value) -> String {
    let paths: Vec<&str> =
        paths.as_array().into_iter().flatten().filter_map(|path| path.as_str()).collect();
    if paths.is_empty() { "nowhere".into() } else { paths.join(", ") }
}

fn ask(directory: &Path, question: &Question) -> anyhow::Result<serde_json::Value> {
    match host::ask::<Question, Answer>(directory, question)? {
        Ok(value) => Ok(value),
        Err(what) => bail!(what),
    }
}

fn answer(running: &Mutex<Running>, line: &str) -> String {
    let answer: Answer = match serde_json::from_str(line) {
        Err(error) => Err(format!("a question that makes no sense: {error}")),
        Ok(Question::Status) => Ok(lock(running).status()),
        Ok(Question::Mount(path)) => told(lock(running).mount(&path)),
        Ok(Question::Umount(path)) => told(lock(running).umount(&path)),
    };
    serde_json::to_string(&answer).expect("answers are plain data")
}

fn told(outcome: anyhow::Result<()>) -> Answer {
    outcome.map(|()| serde_json::Value::Null).map_err(|error| format!("{error:#}"))
}

fn lock(running: &Mutex<Running>) -> std::sync::MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    fn mount(&mut self, path: &Path) -> anyhow::Result<()> {
        if self.mounts.contains_key(path) {
            bail!("it is mounted at {} already", path.display());
        }
        if let Some(mounted) = self.mounts.keys().next() {
            bail!(
                "it is mounted at {}; one mount at a time (bind it elsewhere with `mount --bind`)",
                mounted.display()
            );
        }
        let machine = &self.machine;
        let (desk, content) = (Arc::clone(machine.desk()), Arc::clone(machine.content()));
        let tree = Arc::new(Tree::new(desk, content, mount::Settings::default()));
        let mount = Mount::start(Arc::clone(&tree), path, &Options::default())
            .with_context(|| format!("can't mount at {}", path.display()))?;
        self.mounts.insert(path.to_path_buf(), (tree, mount));
        Ok(())
    }

    fn umount(&mut self, path: &Path) -> anyhow::Result<()> {
        let Some((_, mount)) = self.mounts.get_mut(path) else {
            bail!("nothing of this machine is mounted at {}", path.display());
        };
        mount.unmount().with_context(|| format!("can't unmount {}", path.display()))?;
        self.mounts.remove(path);
        Ok(())
    }

    fn tidy(&mut self) {
        for (tree, _) in self.mounts.values() {
            tree.tidy();
        }
        if let Err(failure) = self.machine.content().tidy() {
            // Nobody is left to tell if this fails.
            _ = writeln!(stderr(), "croft: {failure}");
        }
    }

    fn status(&self) -> serde_json::Value {
        let standing = self.machine.standing();
        let mounts: Vec<&PathBuf> = self.mounts.keys().collect();
        serde_json::json!({
            "client": standing.client,
            "group": standing.group,
            "mounts": mounts,
        })
    }

    fn stop(mut self) -> anyhow::Result<()> {
        for (path, (_, mount)) in &mut self.mounts {
            if let Err(error) = mount.unmount() {
                // It goes all the same, from under whoever uses it.
                _ = writeln!(stderr(), "croft: {} is in use: {error}", path.display());
            }
        }
        self.mounts.clear();
        self.machine.stop()?;
        Ok(())
    }
}
