//! The machine that holds the namespace: it applies commands in the order in which they are logged.
//!
//! A command goes through stages: the grantor hears what is said of leases; what lost sessions left
//! behind is cleared away; the batch or question is dealt with; grants get their values. Each stage may
//! find that records are not at hand. Then the command rests where it is, nothing of it is to be seen,
//! and the same command goes on from there once they are. So nothing that comes out depends on what
//! happens to be at hand.

mod answer;
mod check;
mod checkpoint;
mod look;
mod lost;
mod outline;
mod secret;

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher as _},
};

use base::{Digest, Domain, Duration, FileId, Instant, Machine};
use borsh::{BorshDeserialize, BorshSerialize};
use lease::{
    Client, Grantor, Name, Policy, Terms, grantor,
    message::{Down, Up},
};
use overlay::Users;

use crate::{
    charge::Quota,
    digest::Folded,
    ledger::{Account, Holder, Ledger},
    message::{Answer, Request, Response},
    record::{Access, Content, Entry, File, Key, Numbering, Record, Sort, Times},
    records::{Absent, Records},
    session::{Member, SERIALS_PASSED, Session},
    values,
    work::Traces,
};

pub use look::Standing;

const PURPOSE: Domain = Domain::new("directory state v2");
/// The inode number of the root.
pub(crate) const ROOT_SERIAL: u64 = 1;

/// How a directory is run. All members of a group have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long promises last.
    pub terms: Terms,
    /// How generous the grantor is.
    pub policy: Policy,
    /// The most files in the tree, but for the root.
    pub files_max: u64,
    /// The most bytes that one machine may claim to have room for.
    pub room_max: u64,
    /// What a user may have of whom nobody has said anything else: at most that, and always less than all.
    pub share: Quota,
    /// Whether a client that was never admitted may act for anybody. For tests, and for cells where
    /// every machine is trusted with that.
    pub admits_anybody: bool,
    /// Whether changes are kept for a store, which takes them by [`Directory::changes`].
    pub is_stored: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            terms: Terms::default(),
            policy: Policy::default(),
            files_max: 1 << 40,
            room_max: 1 << 50,
            share: Quota::MAX,
            admits_anybody: false,
            is_stored: false,
        }
    }
}

/// What a group agrees to do next.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Command {
    /// A machine may act as this client, for these users.
    Admit {
        /// The client; not [`Client::GROUP`].
        client: Client,
        /// For whom. What is beyond its bounds admits nobody.
        users: Users,
    },
    /// A client said something.
    Heard {
        /// Who.
        client: Client,
        /// What.
        request: Request,
    },
    /// Time has passed.
    Tick,
    /// Decisions may be lost, and nobody knows what was promised in them: so no promise holds. All sessions are
    /// over, and inode numbers that may have been given out are given to nobody else.
    Void,
    /// Somebody may have so much from now on, or as much as anybody if nothing is said. What they have already stays.
    Share {
        /// Who.
        holder: Holder,
        /// How much.
        share: Option<Quota>,
    },
}

/// The namespace of one group.
pub struct Directory {
    settings: Settings,
    records: Records,
    grantor: Grantor,
    /// Bounded by how many machines were admitted.
    members: BTreeMap<Client, Member>,
    /// Who has used what, and what is set aside for whom.
    ledger: Ledger,
    /// The least inode number that nobody has been given.
    serial_next: u64,
    /// Files without a name, still open somewhere. Bounded by the files that there may be.
    orphans: BTreeSet<FileId>,
    /// Those among them that a lost session may have had open; see `lost`.
    suspects: BTreeMap<FileId, lost::Suspicion>,
    /// When to look at them next, and how long to wait after that.
    sweep: Option<(Instant, Duration)>,
    /// The suspect that was looked at last, if those after it have still to be.
    swept: Option<FileId>,
    /// The agreed time of the last command.
    now: Instant,
    progress: Option<Progress>,
}

/// A command that has begun.
struct Progress {
    now: Instant,
    /// As it was handed in: the same command comes with the same.
    handed: Instant,
    stage: Stage,
    /// What is to be said, in order.
    said: Vec<(Client, Response)>,
    /// Lost sessions whose locks have still to be removed.
    lost: BTreeSet<Client>,
    /// The operations of a batch that are done.
    operations: usize,
    /// What the client says besides has to be dealt with.
    is_asked: bool,
    traces: Traces,
    /// Whether to look at the suspects, some at a time.
    is_sweeping: bool,
    /// Suspects to look at in any case: something of them was given back. At most `lost::SWEEP_MAX`.
    touched: BTreeSet<FileId>,
    /// Whether there are new ones.
    has_suspects: bool,
    /// Files without a name that go.
    gone: Vec<FileId>,
}

/// What a command has still to do. It must not matter to what comes out where it had to stop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Hear,
    Clear,
    Ask,
    ClearAgain,
    Sweep,
    Reap,
    Say,
}

impl Directory {
    /// A tree with nothing but a root, which belongs to the superuser.
    pub fn new(settings: Settings, now: Instant) -> Directory {
        let mut records = Records::new(settings.is_stored);
        // Nobody has created it, so nobody numbers its children unasked.
        let numbering = Numbering {
            names: 0,
            next: 1,
            creator: Client::GROUP.0,
            creator_next: Numbering::BORN,
        };
        let root = File {
            serial: ROOT_SERIAL,
            sort: Sort::Directory,
            access: Access { mode: 0o755, uid: 0, gid: 0 },
            times: Times::default(),
            content: Content::default(),
            links: 2,
            parent: FileId::ROOT,
            numbering,
            rare: None,
        };
        records.set_file(&FileId::ROOT, Some(root));
        records.settle();
        Directory {
            records,
            grantor: Grantor::new(settings.terms, settings.policy),
            members: BTreeMap::new(),
            ledger: Ledger::default(),
            serial_next: ROOT_SERIAL + 1,
            orphans: BTreeSet::new(),
            suspects: BTreeMap::new(),
            sweep: None,
            swept: None,
            now,
            progress: None,
            settings,
        }
    }

    /// Applies a command at an agreed time, which never runs backwards.
    ///
    /// If records are absent nothing is said. They have to be supplied, and then the same command
    /// applied again at the same time, before anything else is asked of the directory.
    ///
    /// # Panics
    ///
    /// If it is applied again at another time: then it is another command.
    pub fn apply(
        &mut self,
        now: Instant,
        command: &Command,
        out: &mut Vec<(Client, Response)>,
    ) -> Result<(), Absent> {
        let mut progress = match self.progress.take() {
            Some(progress) => {
                assert_eq!(progress.handed, now, "the last command is not done yet");
                progress
            }
            None => self.begin(now),
        };
        match self.go_on(command, &mut progress) {
            Ok(()) => {
                self.records.settle();
                out.append(&mut progress.said);
                Ok(())
            }
            Err(absent) => {
                self.progress = Some(progress);
                Err(absent.tidy())
            }
        }
    }

    fn begin(&mut self, now: Instant) -> Progress {
        self.now = self.now.max(now);
        Progress {
            now: self.now,
            handed: now,
            stage: Stage::Hear,
            said: Vec::new(),
            lost: BTreeSet::new(),
            operations: 0,
            is_asked: false,
            traces: Traces::default(),
            is_sweeping: false,
            touched: BTreeSet::new(),
            has_suspects: false,
            gone: Vec::new(),
        }
    }

    fn on_admit(&mut self, client: Client, users: &Users, progress: &mut Progress) {
        if client == Client::GROUP || !users.is_bounded() {
            return;
        }
        let member = self.members.entry(client).or_insert_with(|| Member::new(users.clone()));
        if member.users != *users {
            member.users = users.clone();
            self.show_anew(client, progress);
        }
    }

    fn on_heard(
        &mut self,
        client: Client,
        request: &Request,
        progress: &mut Progress,
    ) -> Result<(), Absent> {
        if self.settings.admits_anybody && !self.members.contains_key(&client) {
            self.on_admit(client, &Users::Any, progress);
        }
        if !self.members.contains_key(&client) {
            return Ok(());
        }
        let favour = self.favour(client, request)?;
        let mut said = Vec::new();
        let input = (client, request.lease.clone());
        self.grantor.step_with(progress.now, input, favour, &mut said);
        self.say(progress, said);
        let number = request.lease.session;
        if self.grantor.is_in_session(client, number) {
            let member = self.members.get_mut(&client).expect("it was admitted");
            if !(member.session.is_live && member.session.number == number) {
                for (uid, escrow) in std::mem::take(&mut member.session.escrow) {
                    self.ledger.free_up(client, uid, escrow);
                }
                member.session = Session { is_live: true, ..Session::new(number) };
            }
            progress.is_asked = request.ask.is_some();
        }
        if let Up::Return { returns, .. } = &request.lease.body {
            self.note_touched(returns, progress);
        }
        Ok(())
    }

    fn on_tick(&mut self, progress: &mut Progress) {
        let mut said = Vec::new();
        self.grantor.tick(progress.now, &mut said);
        self.say(progress, said);
        progress.is_sweeping |= self.sweep.is_some_and(|(at, _)| at <= progress.now);
    }

    fn on_void(&mut self, progress: &mut Progress) {
        let live = self.members.iter().filter(|(_, member)| member.session.is_live);
        let live: Vec<Client> = live.map(|(client, _)| *client).collect();
        let mut said = Vec::new();
        for client in live {
            self.grantor.expel(progress.now, client, &mut said);
        }
        self.say(progress, said);
        self.serial_next = self.serial_next.saturating_add(SERIALS_PASSED);
    }

    /// Goes through the stages of a command, from where it stopped for want of records.
    fn go_on(&mut self, command: &Command, progress: &mut Progress) -> Result<(), Absent> {
        loop {
            progress.stage = match progress.stage {
                Stage::Hear => {
                    match command {
                        Command::Admit { client, users } => {
                            self.on_admit(*client, users, progress);
                        }
                        Command::Heard { client, request } => {
                            self.on_heard(*client, request, progress)?;
                        }
                        Command::Share { holder, share } => {
                            // What is beyond the bound is not set, and nobody is told that it is.
                            _ = self.ledger.set_share(*holder, *share);
                        }
                        Command::Tick => self.on_tick(progress),
                        Command::Void => self.on_void(progress),
                    }
                    Stage::Clear
                }
                Stage::Clear => {
                    self.clear_away(progress)?;
                    Stage::Ask
                }
                Stage::Ask => {
                    if let Command::Heard { client, request } = command
                        && progress.is_asked
                    {
                        self.on_ask(*client, request, progress)?;
                    }
                    Stage::ClearAgain
                }
                Stage::ClearAgain => {
                    self.clear_away(progress)?;
                    let is_idle = !progress.is_sweeping && progress.touched.is_empty();
                    if is_idle { Stage::Say } else { Stage::Sweep }
                }
                Stage::Sweep => {
                    self.sweep(progress);
                    Stage::Reap
                }
                Stage::Reap => {
                    self.reap_all(progress)?;
                    // Asking whoever knew of them may have shown that more are lost.
                    Stage::ClearAgain
                }
                Stage::Say => return self.add_values(progress),
            }
        }
    }

    /// Takes down what the grantor said, and notes which sessions are lost.
    fn say(&mut self, progress: &mut Progress, said: Vec<grantor::Output>) {
        for (client, lease) in said {
            if client == Client::GROUP {
                continue;
            }
            if lease.body == Down::Lost {
                self.on_lost(client, lease.session, progress);
            }
            progress
                .said
                .push((client, Response { lease, values: Vec::new(), applied: 0, answer: None }));
        }
    }

    /// Answers the client, along with what it is told of its leases.
    fn answer(&self, progress: &mut Progress, client: Client, answer: Answer) {
        let last = progress.said.iter_mut().rev().find(|(to, _)| *to == client);
        match last {
            Some((_, response))
                if response.lease.body == Down::Renewed && response.answer.is_none() =>
            {
                response.answer = Some(answer);
            }
            _ => {
                let Some(lease) = self.grantor.renewed(progress.now, client) else { return };
                let response =
                    Response { lease, values: Vec::new(), applied: 0, answer: Some(answer) };
                progress.said.push((client, response));
            }
        }
    }

    fn add_values(&self, progress: &mut Progress) -> Result<(), Absent> {
        let mut absent = Absent::default();
        for (client, response) in &mut progress.said {
            let Some(member) = self.members.get(client) else { continue };
            response.applied = member.session.batch;
            let Down::Granted { grants, .. } = &response.lease.body else { continue };
            match values::of_grants(&self.records, (*client, &member.users), grants) {
                Ok(values) => response.values = values,
                Err(more) => absent.join(more),
            }
        }
        if absent.is_empty() { Ok(()) } else { Err(absent) }
    }

    /// When a tick would do something.
    pub fn wake_at(&self) -> Option<Instant> {
        let sweep = self.sweep.map(|(at, _)| at);
        self.grantor.wake_at().into_iter().chain(sweep).min()
    }

    /// Takes what the store has under these keys. What is at hand already stays as it is.
    pub fn supply(&mut self, records: Vec<(Key, Option<Record>)>) {
        self.records.supply(records);
    }

    /// Takes everything that the store has. What is at hand already stays as it is.
    pub fn supply_all(&mut self, records: Vec<(Key, Record)>) {
        self.records.supply_all(records);
    }

    /// Takes the names in a directory that the store has after one, in order and without gaps, up to the
    /// last of these, or all.
    pub fn supply_page(
        &mut self,
        directory: &FileId,
        after: Option<&Name>,
        names: Vec<(Name, Entry)>,
        is_all: bool,
    ) {
        self.records.supply_page(directory, after, names, is_all);
    }

    /// Lets go of what is under these keys, as far as the store has it.
    ///
    /// # Panics
    ///
    /// If there is no store: see [`Settings::is_stored`].
    pub fn release(&mut self, keys: &[Key]) {
        self.records.release(keys);
    }

    /// What has changed since this was last asked, if it is kept: see [`Settings::is_stored`].
    pub fn changes(&mut self) -> Vec<(Key, Option<Record>)> {
        match self.progress {
            Some(_) => Vec::new(),
            None => self.records.changes(),
        }
    }

    /// The file with an inode number, if it came to be since the changes were last asked for: whoever stores them
    /// knows the others.
    pub fn newborn(&self, serial: u64) -> Option<&FileId> {
        self.records.newborn(serial)
    }

    /// A digest of everything that members must agree on, between commands. Takes as long as there are
    /// leases and sessions; records are summed up as they change.
    pub fn digest(&self) -> Digest {
        let mut folded = Folded::new(PURPOSE);
        self.records.sum().hash(&mut folded);
        self.grantor.hash(&mut folded);
        let rest = base::encode(&(
            &self.members,
            &self.ledger,
            self.serial_next,
            &self.orphans,
            &self.suspects,
            self.sweep.map(|(at, every)| (at, every.as_nanos() as u64)),
            &self.swept,
            self.now,
        ));
        folded.write(&rest);
        folded.digest()
    }

    /// Who may have how much, and has: everybody together first, then each user who has anything or a share, then
    /// each machine.
    pub fn accounts(&self) -> Vec<(Holder, Account)> {
        self.ledger.accounts(&self.settings)
    }

    /// How much is kept in memory, each bounded as its name's field says.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            records: self.records.len(),
            changes: self.records.change_count(),
            clients: self.members.len(),
            ranges: self.members.values().map(|member| member.session.ranges.len()).sum(),
            locked: self.members.values().map(|member| member.locked.len()).sum(),
            orphans: self.orphans.len(),
            leases: self.grantor.lease_count(),
            waiting: self.grantor.waiting_count(),
        }
    }
}

/// How much a directory keeps in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Records at hand: as many as the shell lets it have.
    pub records: usize,
    /// Records that have changed and were not handed out to be stored: as many as the shell lets be.
    pub changes: usize,
    /// Clients: as many as were admitted.
    pub clients: usize,
    /// Directories for which clients have numbers: `RANGES_MAX` for each client.
    pub ranges: usize,
    /// Files with locks, for each client: as many as there are files.
    pub locked: usize,
    /// Files without a name: as many as there are files.
    pub orphans: usize,
    /// Leases: twice the policy's budget for each client.
    pub leases: usize,
    /// Requests for leases: the policy's budget for each client.
    pub waiting: usize,
}

#[cfg(test)]
mod tests;
