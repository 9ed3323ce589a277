//! Machines, their servers on the ring, and what each server remembers of others.
//!
//! Numbers of servers are never used twice, so a finger to one that is gone can be told from a good one, and
//! how it went: who leaves in order tells those who point at it, who dies does not (K17).

use std::num::NonZeroU32;

use base::{Digest, Domain, Rng};
use overlay::{
    BEYOND_MAX, Beyond, Fingers, Gap, Link, Load, Neighbour, Policy, Position, Refresh, Refresher,
    Ring, Standing, Work, aim, levels,
};

use super::tally::{Tally, quantile};

const NUMBER: Domain = Domain::new("number of a simulated machine v1");

/// A server, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerId(NonZeroU32);

impl ServerId {
    fn at(self) -> usize {
        self.0.get() as usize
    }
}

/// A machine, for ever.
pub type MachineId = u32;

/// Whether a server can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It stands.
    Here,
    /// It left in order, so whoever pointed at it knows.
    Left,
    /// It died, and nobody was told.
    Died,
}

/// What a server on the way of a query has to know: one line of a cache, and that is what its alignment is for.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Server {
    /// Where it stands.
    pub position: Position,
    /// Where its predecessor stands.
    pub before: Position,
    successor_position: Position,
    successor: ServerId,
    /// Messages of others in this second that went on to the successor.
    passed: u32,
    /// Whom it remembers.
    pub fingers: Fingers<ServerId>,
}

/// What whoever sends to a server has to know, apart from the rest and small, so that those of all servers stay
/// close to the processor: most queries to a network that has too much to do end at a look here.
#[derive(Clone, Copy, Debug)]
struct Door {
    machine: MachineId,
    /// Messages in this second.
    done: u32,
    state: State,
}

/// What only balancing needs of a server.
#[derive(Clone, Debug)]
struct Ledger {
    /// Which of its machine's positions; nothing where a scheme lets machines choose any.
    index: Option<u32>,
    work: Work,
    refresher: Refresher,
}

/// What a machine can still do in this second.
#[derive(Clone, Copy, Debug)]
struct Meter {
    used: u32,
    capacity: u32,
}

/// Where the queries of a machine that is there begin.
#[derive(Clone, Copy, Debug)]
struct Origin {
    machine: MachineId,
    /// How many servers it has.
    count: u32,
    /// The first of them, if there is one.
    first: Option<ServerId>,
}

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What it can do in a second.
    pub capacity: f64,
    /// What all of its servers do, smoothed.
    pub work: f64,
    /// Its servers; none once it is gone.
    pub servers: Vec<ServerId>,
    /// When it came.
    pub born: u32,
    /// Its positions as far as anybody has asked for them.
    positions: Vec<Position>,
    number: Digest,
    /// Where it stands among those that are there.
    place: Option<usize>,
}

/// What a network is run with.
#[derive(Clone, Copy, Debug)]
pub struct Wiring {
    /// λ of smoothed work.
    pub weight: f64,
    /// When fingers are looked up anew.
    pub refresh: Refresh,
    /// The mean time between two look-ups of one finger, in seconds.
    pub refresh_s: f64,
}

impl Default for Wiring {
    fn default() -> Wiring {
        let weight = Policy::default().weight;
        Wiring { weight, refresh: Refresh::Redrawn, refresh_s: 30.0 }
    }
}

/// All of it.
pub struct Network {
    wiring: Wiring,
    seed: u64,
    /// Draws the timers of fingers.
    timers: Rng,
    servers: Vec<Server>,
    doors: Vec<Door>,
    ledgers: Vec<Ledger>,
    machines: Vec<Machine>,
    meters: Vec<Meter>,
    alive: Vec<MachineId>,
    /// In the order of `alive`.
    origins: Vec<Origin>,
    ring: Ring<ServerId>,
    /// The second.
    pub now: u32,
    /// What was counted since the last look.
    pub tally: Tally,
}

impl Network {
    /// An empty network.
    pub fn new(wiring: Wiring, seed: u64) -> Network {
        let none = ServerId(NonZeroU32::MIN);
        let nobody = Server {
            position: Position(0),
            before: Position(0),
            successor_position: Position(0),
            successor: none,
            passed: 0,
            fingers: Fingers::default(),
        };
        let refresher = Refresher::new(wiring.refresh, wiring.refresh_s);
        Network {
            wiring,
            seed,
            timers: Rng::new(seed).fork(),
            // Number 0 is nobody's, so that a finger and its absence fit into four bytes.
            servers: vec![nobody],
            doors: vec![Door { machine: 0, done: 0, state: State::Died }],
            ledgers: vec![Ledger { index: None, work: Work::default(), refresher }],
            machines: Vec::new(),
            meters: Vec::new(),
            alive: Vec::new(),
            origins: Vec::new(),
            ring: Ring::new(),
            now: 0,
            tally: Tally::default(),
        }
    }

    /// Machines that are there, in no order that means anything.
    pub fn alive(&self) -> &[MachineId] {
        &self.alive
    }

    /// Who stands where.
    pub fn ring(&self) -> &Ring<ServerId> {
        &self.ring
    }

    /// A machine.
    pub fn machine(&self, machine: MachineId) -> &Machine {
        &self.machines[machine as usize]
    }

    /// A server.
    pub fn server(&self, server: ServerId) -> &Server {
        &self.servers[server.at()]
    }

    pub(super) fn server_mut(&mut self, server: ServerId) -> &mut Server {
        &mut self.servers[server.at()]
    }

    /// Whose a server is, or was.
    pub fn owner(&self, server: ServerId) -> MachineId {
        self.doors[server.at()].machine
    }

    /// Whether a server can be reached.
    pub fn state(&self, server: ServerId) -> State {
        self.doors[server.at()].state
    }

    /// The server at which a query of a machine at random begins: any of its own, fairly.
    pub(super) fn draw_origin(&self, rng: &mut Rng) -> Option<ServerId> {
        let Origin { machine, count, first } =
            *self.origins.get(rng.index(self.origins.len().max(1)))?;
        if count > 1 { Some(*rng.pick(&self.machine(machine).servers)) } else { first }
    }

    /// Notes where the queries of a machine begin now.
    fn note_origin(&mut self, machine: MachineId) {
        let Machine { place, servers, .. } = &self.machines[machine as usize];
        if let Some(place) = *place {
            let (count, first) = (servers.len() as u32, servers.first().copied());
            self.origins[place] = Origin { machine, count, first };
        }
    }

    /// The smoothed work of a server.
    pub fn work(&self, server: ServerId) -> f64 {
        self.load(server).work
    }

    /// The same, with what of it goes on to the successor.
    pub fn load(&self, server: ServerId) -> Load {
        self.ledgers[server.at()].work.get()
    }

    /// Which of its machine's positions a server stands at.
    pub fn index(&self, server: ServerId) -> Option<u32> {
        self.ledgers[server.at()].index
    }

    /// A machine's work against its capacity.
    pub fn utilisation(&self, machine: MachineId) -> f64 {
        let machine = self.machine(machine);
        machine.work / machine.capacity
    }

    /// The utilisation that this part of machines do not exceed.
    pub fn utilisation_quantile(&self, part: f64) -> f64 {
        let all = self.alive.iter().map(|machine| self.utilisation(*machine));
        quantile(&mut all.collect::<Vec<_>>(), part)
    }

    /// Whether a machine has done all that it can in this second.
    pub fn is_spent(&self, machine: MachineId) -> bool {
        let meter = self.meters[machine as usize];
        meter.used >= meter.capacity
    }

    /// What a machine does, wants and can.
    pub fn standing(&self, policy: &Policy, machine: MachineId) -> Standing {
        let machine = self.machine(machine);
        policy.standing(machine.work, machine.capacity)
    }

    /// The part of the ring that a server is responsible for, as a part of the whole.
    pub fn share(&self, server: ServerId) -> f64 {
        let server = self.server(server);
        server.before.way(server.position) / 2f64.powi(64)
    }

    /// The position of a machine at this index, by its number.
    pub fn position(&mut self, machine: MachineId, index: u32) -> Position {
        let machine = &mut self.machines[machine as usize];
        while machine.positions.len() <= index as usize {
            let next = machine.positions.len() as u32;
            machine.positions.push(Position::of(&machine.number, next));
        }
        machine.positions[index as usize]
    }

    /// A machine comes, without servers.
    pub fn arrive(&mut self, capacity: f64) -> MachineId {
        let id = self.machines.len() as MachineId;
        let bytes = [self.seed.to_le_bytes(), u64::from(id).to_le_bytes()].concat();
        self.machines.push(Machine {
            capacity,
            work: 0.0,
            servers: Vec::new(),
            born: self.now,
            positions: Vec::new(),
            number: Digest::of(NUMBER, &bytes),
            place: Some(self.alive.len()),
        });
        self.meters.push(Meter { used: 0, capacity: capacity.max(1.0) as u32 });
        self.alive.push(id);
        self.origins.push(Origin { machine: id, count: 0, first: None });
        id
    }

    /// A machine dies, and its servers with it, without a word. How many they were.
    pub fn die(&mut self, machine: MachineId) -> usize {
        let servers = self.machines[machine as usize].servers.clone();
        servers.iter().for_each(|server| self.take_away(*server, State::Died));
        if let Some(place) = self.machines[machine as usize].place.take() {
            self.alive.swap_remove(place);
            self.origins.swap_remove(place);
            if let Some(moved) = self.alive.get(place) {
                self.machines[*moved as usize].place = Some(place);
            }
        }
        servers.len()
    }

    /// Puts a server of a machine on a position, if that is free. The work that is expected with it goes with
    /// it: from its successor what lies in its part of the ring, from its predecessor what it will pass on.
    pub fn stand(
        &mut self,
        machine: MachineId,
        position: Position,
        index: Option<u32>,
        load: Load,
    ) -> Option<ServerId> {
        let id = ServerId(NonZeroU32::new(self.servers.len() as u32)?);
        if !self.ring.insert(position, id) {
            return None;
        }
        let (before, predecessor) = self.ring.before(position)?;
        let (successor_position, successor) = self.ring.after(position)?;
        let mut fingers = Fingers::default();
        fingers.resize(levels(position, successor_position));
        self.servers.push(Server {
            position,
            before,
            successor_position,
            successor,
            passed: 0,
            fingers,
        });
        self.doors.push(Door { machine, done: 0, state: State::Here });
        let refresher = Refresher::new(self.wiring.refresh, self.wiring.refresh_s);
        self.ledgers.push(Ledger { index, work: Work::default(), refresher });
        self.machines[machine as usize].servers.push(id);
        self.note_origin(machine);
        self.link(predecessor, id);
        self.link(id, successor);
        let work = load.in_part().min(self.work(successor)).max(0.0);
        self.shift_work(successor, -work);
        self.shift_work(id, work);
        let passed = load.passed.min(self.load(predecessor).passed).max(0.0);
        self.shift_passed(predecessor, -passed);
        self.shift_passed(id, passed);
        Some(id)
    }

    /// Takes a server off the ring in order: its successor is told of all of its work, and whoever points at it
    /// is told that it goes (K17).
    pub fn leave(&mut self, server: ServerId) {
        self.leave_apart(server, Load::of(self.work(server)));
    }

    /// The same where the predecessor is told of what was passed on, and the successor of the rest.
    pub fn leave_apart(&mut self, server: ServerId, load: Load) {
        let position = self.server(server).position;
        self.take_away(server, State::Left);
        let Some((_, successor)) = self.ring.at_or_after(position) else { return };
        self.shift_work(successor, load.in_part());
        if let Some((_, predecessor)) = self.ring.before(position) {
            self.shift_passed(predecessor, load.passed);
        }
        let levels = levels(position, self.server(successor).position);
        for level in 0..levels {
            let pointing = Position(position.0.wrapping_sub(1 << (63 - level)));
            if let Some((_, told)) = self.ring.before(pointing) {
                self.charge(told);
                self.tally.maintenance += 1;
            }
        }
    }

    fn take_away(&mut self, server: ServerId, state: State) {
        let gone = &mut self.servers[server.at()];
        let position = gone.position;
        gone.fingers = Fingers::default();
        let door = &mut self.doors[server.at()];
        assert_eq!(door.state, State::Here, "nobody goes twice");
        door.state = state;
        let id = door.machine;
        self.ring.remove(position);
        let work = self.work(server);
        let machine = &mut self.machines[id as usize];
        machine.servers.retain(|other| *other != server);
        machine.work -= work;
        self.note_origin(id);
        let neighbours = (self.ring.before(position), self.ring.at_or_after(position));
        if let (Some((_, before)), Some((_, after))) = neighbours {
            self.link(before, after);
        }
    }

    /// These two are neighbours now.
    fn link(&mut self, before: ServerId, after: ServerId) {
        let (from, to) = (self.server(before).position, self.server(after).position);
        self.servers[after.at()].before = from;
        let server = &mut self.servers[before.at()];
        (server.successor_position, server.successor) = (to, after);
        server.fingers.resize(levels(from, to));
    }

    /// Moves expected work onto a server, or off it.
    pub fn shift_work(&mut self, server: ServerId, more: f64) {
        self.shift(server, Load::of(more));
    }

    /// The same of work that the server passes on.
    fn shift_passed(&mut self, server: ServerId, more: f64) {
        self.shift(server, Load { work: more, passed: more });
    }

    fn shift(&mut self, server: ServerId, more: Load) {
        let known = &mut self.ledgers[server.at()].work;
        let Load { work, passed } = known.get();
        *known = Work::anticipated(Load { work: work + more.work, passed: passed + more.passed });
        let machine = self.owner(server);
        self.machines[machine as usize].work += more.work;
    }

    /// Gives a server to another machine, where it is.
    pub fn hand_over(&mut self, server: ServerId, to: MachineId) {
        let work = self.work(server);
        let from = std::mem::replace(&mut self.doors[server.at()].machine, to);
        let giver = &mut self.machines[from as usize];
        giver.servers.retain(|other| *other != server);
        giver.work -= work;
        let taker = &mut self.machines[to as usize];
        taker.servers.push(server);
        taker.work += work;
        self.note_origin(from);
        self.note_origin(to);
    }

    /// Uses a server once. Whether its machine can still do it.
    pub(crate) fn charge(&mut self, server: ServerId) -> bool {
        let door = &mut self.doors[server.at()];
        door.done += 1;
        let meter = &mut self.meters[door.machine as usize];
        meter.used += 1;
        meter.used <= meter.capacity
    }

    /// Notes that a server passes on to its successor what somebody else sent it.
    pub(super) fn pass(&mut self, server: ServerId) {
        self.servers[server.at()].passed += 1;
    }

    /// What its machine has used of this second, read ahead of need: the processor has it at hand then.
    pub(super) fn glance(&self, server: ServerId) -> u32 {
        self.meters[self.owner(server) as usize].used
    }

    pub(super) fn successor(&self, server: ServerId) -> Link<ServerId> {
        let server = self.server(server);
        Link { position: server.successor_position, server: server.successor }
    }

    /// The neighbours of a position as its machine's asker is told, and those beyond them if it stands there;
    /// nothing if somebody else does.
    pub fn gap(&self, policy: &Policy, asker: MachineId, position: Position) -> Option<Gap> {
        let standing = self.ring.get(position);
        if standing.is_some_and(|server| self.owner(server) != asker) {
            return None;
        }
        let (_, before) = self.ring.before(position)?;
        let (_, after) = self.ring.after(position)?;
        let neighbour = |id: ServerId, is_before: bool| {
            let server = self.server(id);
            let beyond = if is_before { server.before } else { server.successor_position };
            let owner = self.owner(id);
            let standing = (owner != asker).then(|| self.standing(policy, owner));
            Neighbour { position: server.position, beyond, load: self.load(id), standing }
        };
        let [mut beyond_before, mut beyond_after] = [[None; BEYOND_MAX]; 2];
        if standing.is_some() {
            let last = |id| Some(self.ring.before(self.server(id).position)?.1);
            beyond_before = self.beyond(policy, asker, before, last);
            beyond_after = self.beyond(policy, asker, after, |id| Some(self.server(id).successor));
        }
        let (before, after) = (neighbour(before, true), neighbour(after, false));
        Some(Gap { before, after, beyond_before, beyond_after })
    }

    /// What the servers after this one tell, by whoever is the next of each, up to one of the asker's own.
    fn beyond(
        &self,
        policy: &Policy,
        asker: MachineId,
        from: ServerId,
        next: impl Fn(ServerId) -> Option<ServerId>,
    ) -> Beyond {
        let (mut all, mut at) = ([None; BEYOND_MAX], from);
        for told in &mut all {
            let Some(further) = next(at).filter(|id| self.owner(*id) != asker) else { break };
            *told = Some((self.work(further), self.standing(policy, self.owner(further))));
            at = further;
        }
        all
    }

    /// Looks up every finger of every server, at no cost: a network that has been standing for long.
    pub fn settle(&mut self) {
        let all: Vec<ServerId> = self.ring.iter().map(|(_, server)| server).collect();
        for server in all {
            for level in 0..self.server(server).fingers.levels() {
                let link = self.look_up(server, level);
                let note = self.note();
                self.servers[server.at()].fingers.set(level, link, note);
            }
        }
    }

    /// What is noted of a finger that was looked up just now.
    fn note(&mut self) -> u32 {
        let Wiring { refresh, refresh_s, .. } = self.wiring;
        refresh.note(self.now, refresh_s, &mut self.timers)
    }

    /// A message went well along a finger.
    pub(super) fn used(&mut self, server: ServerId, level: usize) {
        let Wiring { refresh, refresh_s, .. } = self.wiring;
        let fingers = &mut self.servers[server.at()].fingers;
        refresh.used(fingers, level, self.now, refresh_s, &mut self.timers);
    }

    fn look_up(&self, server: ServerId, level: usize) -> Option<Link<ServerId>> {
        let found = self.ring.at_or_after(aim(self.server(server).position, level));
        found.map(|(position, server)| Link { position, server })
    }

    /// One second of keeping fingers true (K17, K19).
    pub(super) fn refresh(&mut self, rng: &mut Rng) {
        for at in 0..self.alive.len() {
            let machine = self.alive[at] as usize;
            for which in 0..self.machines[machine].servers.len() {
                let server = self.machines[machine].servers[which];
                while self.refresh_one(server, rng) && self.wiring.refresh.is_timed() {}
            }
        }
    }

    /// Looks up a finger that is due, if there is one.
    fn refresh_one(&mut self, server: ServerId, rng: &mut Rng) -> bool {
        let refresher = self.ledgers[server.at()].refresher;
        let fingers = &self.servers[server.at()].fingers;
        let Some(level) = refresher.due(fingers, self.now, rng) else { return false };
        let old = fingers.get(level);
        let link = self.look_up(server, level);
        let is_dead = old.is_some_and(|old| self.state(old.server) == State::Died);
        self.tally.refreshes += 1;
        self.tally.refreshed_dead += u64::from(is_dead);
        self.ledgers[server.at()].refresher.found(is_dead);
        let note = self.note();
        self.servers[server.at()].fingers.set(level, link, note);
        if let Some(link) = link {
            self.charge(link.server);
            self.tally.maintenance += 1;
        }
        true
    }

    /// The second ends: what was done in it becomes part of what is expected.
    pub(crate) fn end_second(&mut self) {
        for at in 0..self.alive.len() {
            let id = self.alive[at] as usize;
            let machine = &mut self.machines[id];
            let Meter { used, capacity } = self.meters[id];
            // What a machine can't do it drops unread, and of that as large a part was to be passed on.
            let dropped = (f64::from(used) / f64::from(capacity)).max(1.0);
            let mut total = 0.0;
            for server in &machine.servers {
                let done = f64::from(std::mem::take(&mut self.doors[server.at()].done));
                let passed = f64::from(std::mem::take(&mut self.servers[server.at()].passed));
                let load = Load { work: done, passed: (dropped * passed).min(done) };
                let work = &mut self.ledgers[server.at()].work;
                work.observe(load, self.wiring.weight);
                total += work.get().work;
            }
            machine.work = total;
            self.meters[id].used = 0;
        }
        self.now += 1;
    }

    /// The part of all fingers that point at the dead.
    pub fn stale_fingers(&self) -> f64 {
        let (mut all, mut dead) = (0u64, 0u64);
        for (_, server) in self.ring.iter() {
            let fingers = &self.server(server).fingers;
            for link in (0..fingers.levels()).filter_map(|level| fingers.get(level)) {
                all += 1;
                dead += u64::from(self.state(link.server) == State::Died);
            }
        }
        dead as f64 / all.max(1) as f64
    }
}
