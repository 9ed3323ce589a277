//! One computer of a cell, with everything that runs on it.
//!
//! Its directory:
//! ```text
//! croft.json   what this is, and its format
//! key          what it is known by; nobody else may read it
//! issuer       a key that invites machines and lets them stay, if it has one; nobody else may read it
//! root         the key that the cell is known by, where it was founded, until somebody takes it elsewhere
//! cell         what it knows of its cell: its certificate, the members, the other machines
//! decrees      who was sent away, as issuers have said
//! invited/     where the codes lead that it has made and that have not expired
//! lock         held by whoever runs it
//! life         how often it has been started
//! log/         what the group has decided, and what this machine said to that
//! store/       state of the group, index of contents
//! content/     bytes of files
//! reserve      room that is given up when the disk is full
//! recovery/    what was lost with a session, kept for its owner
//! control      socket for the other commands
//! ```

use std::{
    fs,
    io::{ErrorKind, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use client::{Call, Settings};
use directory::{Actor, Refusal};
use node::{Seating, mailroom::Kind};
use overlay::{Cell, Code, Consent, Patrons, Text};
use rustix::fs::{FlockOperation, flock};

use crate::{
    Content, Failure, Fsck, Keepsakes, Neighbours, Powers, Recoverer, Registrar, Root, Store,
    UserStanding,
    ballast::Ballast,
    cell::{self, Membership, Terms},
    clock::Clock,
    descriptors,
    desk::{self, Desk, Lost},
    discovery::{self, Mdns, Notice},
    group::{self, Group, MachineStanding, Post},
    key,
    mailbox::Mailbox,
    net::{Away, Lookout, Refusals},
    recover,
};

const FORMAT: u32 = 13;
/// The most files and names that the client remembers; the kernel remembers more.
const FACTS_MAX: usize = 200_000;

/// A machine that runs.
pub struct Machine {
    directory: PathBuf,
    desk: Arc<Desk>,
    content: Arc<Content>,
    standing: Arc<Mutex<group::Standing>>,
    lookout: Option<Lookout>,
    cell: String,
    inbox: Arc<Mailbox<Post>>,
    neighbours: Arc<Neighbours>,
    threads: Vec<JoinHandle<()>>,
    /// Held until the end.
    _lock: fs::File,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Identity {
    croft: String,
    format: u32,
}

/// How a machine stands.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Standing {
    /// The name of its cell.
    pub cell: String,
    /// Its client.
    pub client: desk::Standing,
    /// Its group.
    pub group: group::Standing,
    /// The machines of its cell.
    pub machines: Vec<MachineStanding>,
    /// The users of its cell, as far as it knows.
    pub users: Vec<UserStanding>,
    /// How often others were turned away, if it listens.
    pub refused: Option<Refusals>,
    /// What it has of the authority of its cell.
    pub powers: Powers,
}

impl Machine {
    /// Makes a directory the home of a new machine, which is a cell of its own and acts for any user. Others can
    /// join it if it listens somewhere.
    pub fn init(directory: &Path, listen: Option<SocketAddr>) -> Result<(), Failure> {
        Machine::init_for(directory, listen, Patrons::Any, &Root::usual(directory))
    }

    /// The same, for whom the machine acts being said, and where the root key comes to be. Unless it acts for any
    /// user, no machine of the cell ever acts for one who has not agreed.
    pub fn init_for(
        directory: &Path,
        listen: Option<SocketAddr>,
        patrons: Patrons,
        root: &Path,
    ) -> Result<(), Failure> {
        Machine::make_home(directory)?;
        Membership::found(directory, listen, patrons, root)?.save(directory)?;
        Machine::name(directory)
    }

    /// Where a machine would listen that joins by a code from here: the address from which it reaches the
    /// cell, with any port.
    pub fn way_to(code: &str) -> Result<SocketAddr, Failure> {
        let code = Code::read(code).map_err(|refused| Failure::Unfit(refused.to_string()))?;
        cell::way_to(&code)
    }

    /// Makes a directory the home of a new machine, of the cell that a code invites to.
    pub fn join(directory: &Path, code: &str, listen: SocketAddr) -> Result<(), Failure> {
        Machine::join_by(directory, code, None, listen)
    }

    /// The same, if another machine's code leads to the same cell.
    pub fn join_by(
        directory: &Path,
        code: &str,
        other: Option<&str>,
        listen: SocketAddr,
    ) -> Result<(), Failure> {
        let read = |code| Code::read(code).map_err(|refused| Failure::Unfit(refused.to_string()));
        let (code, other) = (read(code)?, other.map(read).transpose()?);
        Machine::make_home(directory)?;
        Membership::join(directory, &code, other.as_ref(), listen)?.save(directory)?;
        Machine::name(directory)
    }

    /// Invites a machine to the cell of the machine that lives in a directory, for so long: a code for
    /// `croft join`. It is to act for any user if this one does.
    pub fn invite(directory: &Path, span: Duration) -> Result<Text, Failure> {
        Machine::invite_for(directory, Terms::one(span))
    }

    /// Invites machines on these terms: a code for all of them.
    pub fn invite_for(directory: &Path, terms: Terms) -> Result<Text, Failure> {
        check_identity(directory)?;
        Membership::read(directory)?.invite(directory, terms)
    }

    /// The word of the user whose key is in a file that the machine that lives in a directory may act for them, for
    /// [`Registrar::agree`].
    pub fn consent(directory: &Path, user: &Path) -> Result<String, Failure> {
        check_identity(directory)?;
        let Membership { authority, certificate, .. } = Membership::read(directory)?;
        let consent = Consent::new(&key::read(user)?, authority, *certificate.machine());
        Ok(key::digits(&base::encode(&consent)))
    }

    fn make_home(directory: &Path) -> Result<(), Failure> {
        let path = directory.join("croft.json");
        if path.exists() {
            let what =
                format!("{} is a machine already; start it with `croft run`", directory.display());
            return Err(Failure::Unfit(what));
        }
        fs::create_dir_all(directory).map_err(Failure::of("can't make", directory))?;
        let mut entries = fs::read_dir(directory).map_err(Failure::of("can't read", directory))?;
        // A key is what is left of joining that came to nothing.
        if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != "key")) {
            let what = format!(
                "{} is not empty; name a new directory, or an empty one",
                directory.display()
            );
            return Err(Failure::Unfit(what));
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(directory, mode).map_err(Failure::of("can't protect", directory))?;
        Ok(())
    }

    /// The last step: from now on a machine lives there.
    fn name(directory: &Path) -> Result<(), Failure> {
        let identity = Identity { croft: "a machine of a Croft cell".into(), format: FORMAT };
        let text = serde_json::to_string_pretty(&identity).expect("it is plain data");
        replace(&directory.join("croft.json"), format!("{text}\n").as_bytes())
    }

    /// Whether a directory is the home of a machine.
    pub fn is_home(directory: &Path) -> bool {
        directory.join("croft.json").exists()
    }

    /// Whether the machine that lives in a directory runs, or is not quite over.
    pub fn is_running(directory: &Path) -> bool {
        directory.join("lock").exists() && lock(directory).is_err()
    }

    /// From its next start on a machine listens there. Without a port it keeps the one that it has, if the rest
    /// of the address is the same, else any that is free.
    pub fn move_to(directory: &Path, listen: SocketAddr) -> Result<(), Failure> {
        check_identity(directory)?;
        let _lock = lock(directory)?;
        let mut membership = Membership::read(directory)?;
        if membership.move_to(listen)? { membership.save(directory) } else { Ok(()) }
    }

    /// Starts the machine that lives in a directory.
    pub fn start(directory: &Path) -> Result<Machine, Failure> {
        Machine::start_with(directory, Seating::default())
    }

    pub(crate) fn start_with(directory: &Path, seating: Seating) -> Result<Machine, Failure> {
        check_identity(directory)?;
        let lock = lock(directory)?;
        let handles_max = descriptors::raise();
        let life = next_life(directory)?;
        let clock = Clock;
        Ballast::free_if_tight(directory)?;
        let store = Arc::new(Store::open(&directory.join("store"))?);
        let content = Arc::new(Content::open(&directory.join("content"), &store)?);
        // What does not fit is said again.
        let limits = node::Limits::planned(::group::Settings::default());
        let inbox = Arc::new(Mailbox::new(limits));
        let (mail, bytes) = (Arc::clone(&inbox), Arc::clone(&content));
        let membership = Membership::read(directory)?.renewed(directory)?;
        let (client, cell) = (membership.client, Cell::of(&membership.authority).to_string());
        let neighbours = Arc::new(Neighbours::default());
        let beside = Arc::clone(&neighbours);
        // What the kernel remembers, others may change.
        let has_memory = membership.listen.is_some();
        let mut group = Group::open(directory, store, bytes, clock, mail, membership, beside)?;
        group.attend(seating);
        let (standing, lookout) = (group.standing(), group.lookout());
        let served = group.served();
        let usual = Settings::of(client);
        let settings = Settings {
            terms: group::terms(),
            // Each life has its own numbers of sessions.
            session: life << 32,
            facts_max: FACTS_MAX,
            free: content.space()?.available_bytes,
            has_memory,
            handles_max: usual.handles_max.min(handles_max.try_into().unwrap_or(usize::MAX)),
            ..usual
        };
        let keepsakes = Keepsakes::of(directory);
        let told = Arc::clone(&inbox);
        let on_lost = Box::new(move |lost: Lost| {
            if lost.refused == Some(Refusal::NotYourUser) {
                told.post(Kind::Word, Post::Introduce);
            }
            keep(&keepsakes, clock, lost);
        });
        let (desk, keeper) = Desk::start(settings, clock, Arc::clone(&inbox), on_lost);
        desk.serve(served);
        neighbours.know_desk(&desk);
        let served = Arc::clone(&desk);
        let server = thread::Builder::new().name("group".into());
        let server = server.spawn(move || group.run(&served));
        let server = server.map_err(Failure::of("can't start a thread for", directory))?;
        Ok(Machine {
            directory: directory.to_path_buf(),
            cell,
            desk,
            content,
            standing,
            lookout,
            inbox,
            neighbours,
            threads: vec![keeper, server],
            _lock: lock,
        })
    }

    /// Lets other machines of the cell find this one on the local network, and looks for them there when they are not
    /// where they were said to be. Not on this computer's own address: nobody else is there.
    pub fn discover(&self) -> Result<(), Failure> {
        let membership = Membership::read(&self.directory)?;
        let listen = membership.listen.filter(|listen| !listen.ip().is_loopback());
        if let (Some(listen), Some(lookout)) = (listen, self.lookout()) {
            let key = key::read(&self.directory.join("key"))?.public();
            let cell = discovery::Cell::of(&membership.authority);
            let notice = Notice { cell, key, addresses: vec![listen] };
            discovery::start(cell, Mdns::new(listen.ip(), Some(notice)), lookout);
        }
        Ok(())
    }

    /// Where it lives.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its client.
    pub fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// The bytes of files on it.
    pub fn content(&self) -> &Arc<Content> {
        &self.content
    }

    /// The name of its cell, as people are told it.
    pub fn cell(&self) -> &str {
        &self.cell
    }

    /// The other machines of its cell.
    pub fn neighbours(&self) -> &Arc<Neighbours> {
        &self.neighbours
    }

    /// Who shows how its network stands, if it listens.
    pub fn lookout(&self) -> Option<Lookout> {
        self.lookout.clone()
    }

    /// Who checks it while it goes on.
    pub fn fsck(&self) -> Fsck {
        Fsck {
            inbox: Arc::clone(&self.inbox),
            desk: Arc::clone(&self.desk),
            content: Arc::clone(&self.content),
            is_shared: self.neighbours.can_be(),
        }
    }

    /// Who brings what issuers and users say to the cell.
    pub fn registrar(&self) -> Registrar {
        Registrar {
            directory: self.directory.clone(),
            inbox: Arc::clone(&self.inbox),
            machines: self.standing().machines,
            neighbours: Arc::clone(&self.neighbours),
            lookout: self.lookout(),
        }
    }

    /// Who lets the group go on from this machine.
    pub fn recoverer(&self) -> Recoverer {
        Recoverer {
            directory: self.directory.clone(),
            inbox: Arc::clone(&self.inbox),
            machines: self.neighbours.keys(),
            lookout: self.lookout(),
            quiet: recover::QUIET,
        }
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        self.standing_without(&Away::default())
    }

    /// How it stands, if these machines have not answered.
    pub fn standing_without(&self, away: &Away) -> Standing {
        let mut group = self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // The group's thread may have had nothing to do since it said so.
        group.quiet_s = group.decided_at.map_or(0, |at| Clock.now().since(at).as_secs());
        let network = self.lookout.as_ref().and_then(Lookout::standing);
        let mut machines = group.machines(network.as_ref(), away);
        if let Some(machine) = machines.iter_mut().find(|machine| machine.is_this) {
            // Whoever has no vote has not read the group's book.
            machine.acts_for = Some(self.desk.acts_for());
        }
        let refused = network.map(|network| network.refused);
        let users = group.users();
        let (cell, powers) = (self.cell.clone(), Powers::of(&self.directory));
        Standing { cell, client: self.desk.standing(), group, machines, users, refused, powers }
    }

    /// Makes everything safe and stops.
    pub fn stop(mut self) -> Result<(), Failure> {
        let synced = self.desk.call(&Actor::ROOT, Call::Sync { handle: None });
        let tidied = self.content.sync().and_then(|()| self.content.tidy());
        if synced.is_ok() {
            self.desk.leave();
        }
        self.end();
        let group = self.standing().group;
        match (group.failure, synced) {
            (Some(failure), _) => Err(Failure::Unfit(failure)),
            (None, Err(failure)) => {
                let what = format!("the last changes could not be pushed: {}", failure.errno());
                Err(Failure::Unfit(what))
            }
            (None, Ok(_)) => tidied,
        }
    }

    fn end(&mut self) {
        self.desk.stop();
        self.inbox.close();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said why.
            _ = thread.join();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

fn check_identity(directory: &Path) -> Result<(), Failure> {
    let path = directory.join("croft.json");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let what = format!(
                "no machine lives in {}; make one with `croft init --dir {0}`",
                directory.display()
            );
            return Err(Failure::Unfit(what));
        }
        read => read.map_err(Failure::of("can't read", &path))?,
    };
    let damaged = |what: String| Failure::Damaged { path: path.clone(), what };
    let identity: Identity = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
    match identity.format {
        FORMAT => Ok(()),
        other => Err(Failure::Unfit(format!(
            "{} has format {other}, and this croft knows format {FORMAT}: use the release that made it",
            directory.display()
        ))),
    }
}

fn lock(directory: &Path) -> Result<fs::File, Failure> {
    let path = directory.join("lock");
    let file = fs::File::options().create(true).append(true).open(&path);
    let file = file.map_err(Failure::of("can't write to", &path))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Failure::Unfit(format!(
            "another croft runs in {}; `croft status --dir {0}` shows it",
            directory.display()
        ))
    })?;
    Ok(file)
}

fn next_life(directory: &Path) -> Result<u64, Failure> {
    let path = directory.join("life");
    let last = match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse::<u64>().map_err(|error| {
            let what = format!("{error}; put in a number that is greater than any before");
            Failure::Damaged { path: path.clone(), what }
        })?,
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(Failure::of("can't read", &path)(error)),
    };
    let life = last + 1;
    replace(&path, format!("{life}\n").as_bytes())?;
    Ok(life)
}

/// Replaces a file: whatever happens, there is the old one or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let draft = path.with_extension("new");
    let write = || {
        let mut file = fs::File::create(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        match path.parent() {
            Some(parent) => fs::File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    };
    write().map_err(Failure::of("can't write", path))
}

/// Keeps what was lost with a session for whoever did it.
fn keep(keepsakes: &Keepsakes, clock: Clock, lost: Lost) {
    let Some(first) = lost.operations.first() else { return };
    let (time, count) = (clock.wall(), lost.operations.len());
    let why = lost.refused.map_or("the session has lapsed".into(), |why| format!("{why:?}"));
    let text: String = lost.operations.iter().map(|operation| format!("{operation:?}\n")).collect();
    let kept = keepsakes.keep(&format!("{time}.operations"), &mut text.as_bytes());
    let place = kept.or_else(|failure| {
        eprintln!("croft: {failure}; look at `croft doctor`");
        keepsakes.note(&format!("{time}: {count} operations ({why}), the first of them {first:?}"))
    });
    match place {
        Ok(path) => eprintln!(
            "croft: {count} operations were not accepted ({why}); {} tells of them",
            path.display()
        ),
        Err(failure) => {
            eprintln!("croft: {count} operations were not accepted ({why}): {failure}");
        }
    }
}

#[cfg(test)]
mod tests;
