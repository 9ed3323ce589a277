//! `croft run`, `mount`, `umount` and `status`: a machine's life.

use std::{
    collections::BTreeMap,
    io::{Write, stderr, stdout},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use host::{Away, Control, Machine};
use mount::{
    Mount, Options, Tree,
    front::{Caller, Changes, ROOT},
};
use serde::{Deserialize, Serialize};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{quota, status, user, words};

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
pub struct RunArgs {
    #[command(flatten)]
    pub home: Home,
    /// Mount the tree here once it runs
    #[arg(long, value_name = "PATH")]
    pub mount: Option<PathBuf>,
    /// Where other machines reach this one from now on, if it has moved: an IP, or IP:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = words::listen)]
    pub listen: Option<SocketAddr>,
    /// Do not look for machines of the cell on the local network, and do not let them find this one there
    #[arg(long)]
    pub no_discovery: bool,
    /// Stop when the process that started this one ends
    #[arg(long, hide = true)]
    pub with_parent: bool,
    /// For tests: die without a word in the midst of this call, counted from the start
    #[arg(long, value_name = "N", hide = true)]
    pub die_at: Option<u64>,
    /// For tests: the kernel leaves every byte to the machine
    #[arg(long, hide = true)]
    pub no_passthrough: bool,
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
    /// From where, and whether also from under whoever uses it: the machine is about to stop.
    Umount(PathBuf, bool),
    /// Whether to mend what does no harm.
    Fsck(bool),
    Revoke(String),
    /// What the root key says of an issuer.
    RevokeIssuer(String),
    /// Where an issuer's key is, if not with a machine.
    Renew(Option<PathBuf>),
    /// Whether a loss is accepted, and what the root key says.
    Recover(bool, Option<String>),
    Obey,
    User(user::Question),
    Quota(quota::Question),
}

/// What they are told: a value, or what is wrong.
type Answer = Result<serde_json::Value, String>;

/// What goes on in a machine that runs. Nobody holds its lock while waiting for a mount.
struct Running {
    machine: Machine,
    options: Options,
    /// At most one so far.
    mounts: BTreeMap<PathBuf, Mounted>,
    /// Where it is to be mounted, until somebody has it unmounted.
    mount_wanted: Option<PathBuf>,
    /// It is about to end, and nobody waits for anything else any more.
    is_stopping: bool,
}

struct Mounted {
    tree: Arc<Tree>,
    /// None while somebody waits for its end.
    mount: Option<Mount>,
    /// It is unmounted and could not be made safe, and somebody was told.
    is_told: bool,
}

/// How often the machine is tidied up.
const TIDY: Duration = Duration::from_secs(1);
/// How long a status waits for machines that are not connected.
const CALL_MAX: Duration = Duration::from_secs(2);
/// How often it is looked whether a mount has ended.
const LOOK: Duration = Duration::from_millis(5);
/// How long a stop waits for a mount that nobody uses.
const STOP_MAX: Duration = Duration::from_secs(2);
/// How long a machine still serves others whose parent has died with its own.
const LINGER: Duration = Duration::from_secs(5);
/// Signals that come together are one: a terminal and a program may both tell us.
const TOGETHER: Duration = Duration::from_millis(500);

fn default_home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match home.filter(|_| !rustix::process::geteuid().is_root()) {
        Some(home) => home.join(".local/share/croft"),
        None => PathBuf::from("/var/lib/croft"),
    }
}

pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    if args.with_parent {
        let signal = Some(rustix::process::Signal::TERM);
        rustix::process::set_parent_process_death_signal(signal)?;
    }
    let parent = rustix::process::getppid();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let home = std::path::absolute(&args.home.directory)?;
    let mount = args.mount.as_deref().map(std::path::absolute).transpose()?;
    // Where it was started from may be gone, or be a mount that somebody wants to end.
    std::env::set_current_dir("/")?;
    if let Some(listen) = args.listen {
        Machine::move_to(&home, listen)?;
    }
    let machine = Machine::start(&home)?;
    if !args.no_discovery {
        machine.discover()?;
    }
    machine.desk().die_at(args.die_at);
    let usual = Options::default();
    let has_passthrough = usual.has_passthrough && !args.no_passthrough;
    let options = Options { has_passthrough, ..usual };
    let (mounts, mount_wanted, is_stopping) = (BTreeMap::new(), None, false);
    let running = Running { machine, options, mounts, mount_wanted, is_stopping };
    let running = Arc::new(Mutex::new(running));
    if let Some(path) = &mount {
        lock(&running).mount(path)?;
    }
    let asked = Arc::clone(&running);
    let control = Control::listen(&home, move |line| answer(&asked, line))?;
    writeln!(stdout(), "ready")?;
    let (stop, stopped) = mpsc::channel::<()>();
    let tidied = Arc::clone(&running);
    let tidier = thread::spawn(move || {
        while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(TIDY) {
            tidy(&tidied);
        }
    });
    signals.forever().next();
    let first = Instant::now();
    thread::spawn(move || {
        for _ in signals.forever() {
            if first.elapsed() > TOGETHER {
                _ = writeln!(stderr(), "croft: told again to stop; what is not safe is lost");
                std::process::exit(1);
            }
        }
    });
    {
        let mut running = lock(&running);
        running.is_stopping = true;
        running.machine.desk().hurry();
    }
    drop((stop, control));
    _ = tidier.join();
    let running = Arc::into_inner(running).context("somebody still uses the machine")?;
    let mut running = running.into_inner().unwrap_or_else(PoisonError::into_inner);
    let unmounted = running.unmount_all();
    if args.with_parent && rustix::process::getppid() != parent {
        // Others are told at the same moment, and can push what was done there only as long as we are here.
        thread::sleep(LINGER);
    }
    running.machine.stop()?;
    unmounted?;
    Ok(ExitCode::SUCCESS)
}

pub fn mount(args: &MountArgs) -> anyhow::Result<ExitCode> {
    let path = std::path::absolute(&args.path)?;
    ask(&args.home.directory, &Question::Mount(path))?;
    Ok(ExitCode::SUCCESS)
}

pub fn umount(args: &UmountArgs) -> anyhow::Result<ExitCode> {
    let path = std::path::absolute(&args.path)?;
    unmount_at(&args.home.directory, &path, false)?;
    Ok(ExitCode::SUCCESS)
}

/// Has the tree of a machine that runs unmounted; if it is about to stop, also from under whoever uses it.
pub fn unmount_at(directory: &Path, path: &Path, is_forced: bool) -> anyhow::Result<()> {
    ask(directory, &Question::Umount(path.into(), is_forced)).map(drop)
}

pub fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let status = look(&args.home.directory)?;
    let mut out = stdout().lock();
    match args.json {
        true => writeln!(out, "{status}")?,
        false => write!(out, "{}", status::text(&args.home.directory, &status))?,
    }
    Ok(if status::is_well(&status) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Has a machine of the cell sent away.
pub fn revoke_at(directory: &Path, digits: &str) -> anyhow::Result<serde_json::Value> {
    ask(directory, &Question::Revoke(digits.to_owned()))
}

/// Has the group go on from a machine that runs.
pub fn recover_at(
    directory: &Path,
    is_accepted: bool,
    rescue: Option<String>,
) -> anyhow::Result<serde_json::Value> {
    ask(directory, &Question::Recover(is_accepted, rescue))
}

/// Has a machine that runs follow a recovery that it has heard of.
pub fn obey_at(directory: &Path) -> anyhow::Result<()> {
    ask(directory, &Question::Obey).map(drop)
}

/// Has the group take nothing more from an issuer, as the root key says.
pub fn revoke_issuer_at(directory: &Path, decree: String) -> anyhow::Result<()> {
    ask(directory, &Question::RevokeIssuer(decree)).map(drop)
}

/// Has the certificate of a machine that runs renewed.
pub fn renew_at(directory: &Path, issuer: Option<PathBuf>) -> anyhow::Result<serde_json::Value> {
    ask(directory, &Question::Renew(issuer))
}

/// Has something done about users by a machine that runs.
pub fn ask_user(directory: &Path, question: user::Question) -> anyhow::Result<serde_json::Value> {
    ask(directory, &Question::User(question))
}

/// Has a machine that runs say who may have how much, or set it.
pub fn ask_quota(directory: &Path, question: quota::Question) -> anyhow::Result<serde_json::Value> {
    ask(directory, &Question::Quota(question))
}

/// What a machine that runs says of itself.
pub fn look(directory: &Path) -> anyhow::Result<serde_json::Value> {
    ask(directory, &Question::Status)
}

/// Has a machine that runs checked, and perhaps mended.
pub fn check(directory: &Path, is_mending: bool) -> anyhow::Result<serde_json::Value> {
    ask(directory, &Question::Fsck(is_mending))
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
        Ok(Question::Status) => Ok(status_now(running)),
        Ok(Question::Mount(path)) => {
            forget_ended(running);
            told(lock(running).mount(&path))
        }
        Ok(Question::Umount(path, is_forced)) => told(unmount(running, &path, is_forced)),
        Ok(Question::Fsck(is_mending)) => fsck_now(running, is_mending),
        Ok(Question::Revoke(digits)) => revoke(running, &digits),
        Ok(Question::RevokeIssuer(decree)) => {
            let registrar = lock(running).machine.registrar();
            told(registrar.revoke_issuer(&decree).map_err(Into::into))
        }
        Ok(Question::Renew(issuer)) => {
            let registrar = lock(running).machine.registrar();
            let expires = registrar.renew(issuer.as_deref());
            expires.map(Into::into).map_err(|failure| failure.to_string())
        }
        Ok(Question::User(question)) => {
            let registrar = lock(running).machine.registrar();
            user::answer(&registrar, question)
        }
        Ok(Question::Quota(question)) => {
            let registrar = lock(running).machine.registrar();
            quota::answer(&registrar, question)
        }
        Ok(Question::Recover(is_accepted, rescue)) => {
            recover(running, is_accepted, rescue.as_deref())
        }
        Ok(Question::Obey) => {
            let recoverer = lock(running).machine.recoverer();
            told(recoverer.obey().map_err(Into::into))
        }
    };
    serde_json::to_string(&answer).expect("answers are plain data")
}

/// The group takes a moment to decide it, for which nobody else has to wait.
fn revoke(running: &Mutex<Running>, digits: &str) -> Answer {
    let registrar = lock(running).machine.registrar();
    let revoked = registrar.revoke(digits).map_err(|failure| failure.to_string())?;
    Ok(serde_json::json!(revoked))
}

/// Who else is there takes a moment to find out, for which nobody else has to wait.
fn recover(running: &Mutex<Running>, is_accepted: bool, rescue: Option<&str>) -> Answer {
    let recoverer = lock(running).machine.recoverer();
    let recovered = recoverer.recover(is_accepted, rescue);
    Ok(serde_json::json!(recovered.map_err(|failure| failure.to_string())?))
}

/// Who is there takes a moment to find out, for which nobody else has to wait.
fn status_now(running: &Mutex<Running>) -> serde_json::Value {
    let lookout = lock(running).machine.lookout();
    let away = lookout.map(|lookout| lookout.call(CALL_MAX)).unwrap_or_default();
    lock(running).status(&away)
}

/// The machine goes on meanwhile, and so do mounts.
fn fsck_now(running: &Mutex<Running>, is_mending: bool) -> Answer {
    let fsck = lock(running).machine.fsck();
    let report = fsck.run(is_mending).map_err(|failure| failure.to_string())?;
    serde_json::to_value(report).map_err(|error| error.to_string())
}

fn told(outcome: anyhow::Result<()>) -> Answer {
    outcome.map(|()| serde_json::Value::Null).map_err(|error| format!("{error:#}"))
}

fn lock(running: &Mutex<Running>) -> std::sync::MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a mount out, so that it can be waited for without keeping others from anything.
fn take_out(running: &Mutex<Running>, path: &Path) -> anyhow::Result<Mount> {
    let mut running = lock(running);
    let Some(mounted) = running.mounts.get_mut(path) else {
        bail!("nothing of this machine is mounted at {}", path.display());
    };
    mounted.mount.take().with_context(|| format!("{} is being unmounted", path.display()))
}

/// Forgets a mount that has come to its end, or puts it back.
fn put_back(running: &Mutex<Running>, path: &Path, mount: Mount, is_done: bool) {
    let mut running = lock(running);
    if is_done {
        running.mounts.remove(path);
    } else if let Some(mounted) = running.mounts.get_mut(path) {
        mounted.mount = Some(mount);
    }
}

fn unmount(running: &Mutex<Running>, path: &Path, is_forced: bool) -> anyhow::Result<()> {
    let mut mount = take_out(running, path)?;
    let outcome = match is_forced {
        true => mount.detach().map_err(Into::into),
        false => end(running, &mut mount),
    };
    put_back(running, path, mount, outcome.is_ok());
    if outcome.is_ok() {
        lock(running).mount_wanted = None;
    }
    outcome.with_context(|| format!("can't unmount {}", path.display()))
}

fn end(running: &Mutex<Running>, mount: &mut Mount) -> anyhow::Result<()> {
    mount.leave()?;
    // It may be seen elsewhere too, and go on there for as long as it likes.
    while !mount.is_over() {
        if lock(running).is_stopping {
            bail!("the machine stops");
        }
        thread::sleep(LOOK);
    }
    Ok(mount.wait()?)
}

/// Makes safe and forgets what somebody else has unmounted.
fn forget_ended(running: &Mutex<Running>) {
    let is_over = |mounted: &Mounted| mounted.mount.as_ref().is_some_and(Mount::is_over);
    let ended: Vec<PathBuf> = {
        let running = lock(running);
        let ended = running.mounts.iter().filter(|(_, mounted)| is_over(mounted));
        ended.map(|(path, _)| path.clone()).collect()
    };
    for path in ended {
        let Ok(mut mount) = take_out(running, &path) else { continue };
        let outcome = mount.wait();
        put_back(running, &path, mount, outcome.is_ok());
        if let (Err(error), Some(mounted)) = (outcome, lock(running).mounts.get_mut(&path))
            && !std::mem::replace(&mut mounted.is_told, true)
        {
            _ = writeln!(
                stderr(),
                "croft: not all that was written at {} is safe ({error}); trying again",
                path.display()
            );
        }
    }
}

fn tidy(running: &Mutex<Running>) {
    forget_ended(running);
    let (trees, content): (Vec<Arc<Tree>>, _) = {
        let running = lock(running);
        let trees = running.mounts.values().map(|mounted| Arc::clone(&mounted.tree));
        (trees.collect(), Arc::clone(running.machine.content()))
    };
    trees.iter().for_each(|tree| tree.tidy());
    if let Err(failure) = content.tidy() {
        // Nobody is left to tell if this fails.
        _ = writeln!(stderr(), "croft: {failure}");
    }
}

impl Running {
    fn mount(&mut self, path: &Path) -> anyhow::Result<()> {
        if let Some(mounted) = self.mounts.get(path) {
            match mounted.mount {
                Some(_) => bail!("it is mounted at {} already", path.display()),
                None => bail!("{} is being unmounted; try again later", path.display()),
            }
        }
        if let Some(mounted) = self.mounts.keys().next() {
            bail!(
                "it is mounted at {}; one mount at a time (bind it elsewhere with `mount --bind`)",
                mounted.display()
            );
        }
        if path.is_file() {
            bail!("can't mount at {}: it is a file; name an empty directory", path.display());
        }
        if let Err(error) = path.symlink_metadata()
            && error.kind() == std::io::ErrorKind::NotFound
        {
            let path = path.display();
            bail!("can't mount at {path}: {error}; make the directory first: mkdir -p {path}");
        }
        let tree = Arc::new(Tree::new(&self.machine, mount::Settings::default()));
        own_root(&tree).context("can't take the tree over")?;
        let mount = Mount::start(Arc::clone(&tree), path, &self.options)
            .with_context(|| format!("can't mount at {}", path.display()))?;
        let mounted = Mounted { tree, mount: Some(mount), is_told: false };
        self.mounts.insert(path.to_path_buf(), mounted);
        self.mount_wanted = Some(path.to_path_buf());
        Ok(())
    }

    fn status(&self, away: &Away) -> serde_json::Value {
        let standing = self.machine.standing_without(away);
        let mounts: Vec<&PathBuf> = self.mounts.keys().collect();
        let room = self.mounts.values().next().and_then(|mounted| mounted.tree.statfs(0).ok());
        let room_bytes = room.map(|room| room.blocks_available * u64::from(room.block_size));
        let kept = host::Keepsakes::of(self.machine.directory()).kept();
        serde_json::json!({
            "cell": standing.cell,
            "client": standing.client,
            "group": standing.group,
            "machines": standing.machines,
            "users": standing.users,
            "refused": standing.refused,
            "powers": standing.powers,
            "mounts": mounts,
            "mount_wanted": self.mount_wanted,
            "room_bytes": room_bytes,
            "recovery_files": kept.files,
            "recovery_full": kept.is_full,
        })
    }

    fn unmount_all(&mut self) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        for (path, mounted) in std::mem::take(&mut self.mounts) {
            let Some(mut mount) = mounted.mount else { continue };
            match mount.leave() {
                Ok(()) => wait_for_end(&mount),
                // It goes all the same, from under whoever uses it.
                Err(error) => {
                    _ = writeln!(stderr(), "croft: {} is in use: {error}", path.display());
                }
            }
            let what = || format!("not all that was written at {} is safe", path.display());
            outcome = outcome.and(mount.detach().with_context(what));
        }
        outcome
    }
}

/// The root of a new tree is the superuser's. Where an ordinary user mounts, nobody else can use it, and so
/// it is that user's; unless the superuser is not acted for, who would have to give it away.
fn own_root(tree: &Tree) -> std::io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if uid.is_root() || tree.getattr(ROOT)?.uid != 0 || !tree.may_be(0) {
        return Ok(());
    }
    let changes =
        Changes { uid: Some(uid.as_raw()), gid: Some(gid.as_raw()), ..Changes::default() };
    tree.setattr(ROOT, &changes, &Caller { uid: 0, gid: 0, pid: 0 })?;
    Ok(())
}

/// What nobody uses ends at once, unless it is seen elsewhere too.
fn wait_for_end(mount: &Mount) {
    let start = Instant::now();
    while !mount.is_over() && start.elapsed() < STOP_MAX {
        thread::sleep(LOOK);
    }
}
