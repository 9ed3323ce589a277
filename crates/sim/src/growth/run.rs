//! One seed of the world of a cell that grows, and what must hold in it.

use std::{cell::Cell, rc::Rc};

use base::{Digest, Domain, Duration, Instant, PublicKey, Rng, SecretKey};
use group::{Doubt, Patience, Roll, Seat, Settings, Tip};
use node::Seating;
use overlay::{Decree, Invitation, Issuer, Patrons, Revocation, Secret, Terms};
use wire::{Join, Whereabouts};

use crate::{
    Actor, Broken, Checker, Clock, Faults, Marks, Node, Outbox, Outcome, Violation, World,
};

use super::{
    machine::{Letter, Machine},
    tamper::{Honest, Tamper},
};

const GROUP: Domain = Domain::new("simulated group v1");
/// What the wall clocks of all machines show, in seconds since 1970.
pub(crate) const SECONDS: u64 = 1_000_000;

/// What must have happened in a good number of seeds.
pub(crate) const MARKS: &[&str] = &[
    "a machine joins",
    "a machine is sent away",
    "a machine starts again",
    "a client without a vote is answered",
    "a member takes the state of others",
    "others sit in the group",
    "nothing goes wrong",
];

/// How long faults go on, and machines come.
const FAULTS_SPAN: Duration = Duration::from_secs(240);
/// Within this all is well when faults are over.
const HEALED_MAX: Duration = Duration::from_secs(400);
/// Nobody who has asked waits for longer, and no client when all is well.
const OWED_MAX: Duration = Duration::from_secs(8);
const WAIT_MAX: Duration = Duration::from_secs(20);
/// So many sit in the group in the end.
const SEATS: usize = 4;

/// What all machines know from the first.
pub(crate) struct Site {
    pub(crate) group: Digest,
    pub(crate) authority: PublicKey,
    pub(crate) keys: Vec<PublicKey>,
    joins: Vec<Join>,
    /// The founder alone.
    pub(crate) first: Roll,
    pub(crate) settings: Settings,
    pub(crate) seating: Seating,
    /// Who is sent away in the end.
    victim: Node,
    is_decreed: Cell<bool>,
}

impl Site {
    /// What a machine says of itself.
    pub(crate) fn join(&self, node: Node) -> Join {
        self.joins[node.index()].clone()
    }

    pub(crate) fn is_sent_away(&self, node: Node) -> bool {
        node == self.victim && self.is_decreed.get()
    }
}

/// What a node tells the checker.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// That may not be.
    Wrong(&'static str),
}

pub(crate) type Out<T> = Outbox<Machine<T>>;

impl<T: Tamper> Actor for Machine<T> {
    type Message = Letter;
    type Note = Note;

    fn deliver(&mut self, now: Instant, from: Node, letter: Letter, out: &mut Out<T>) {
        self.deliver(now, from, letter, out);
    }

    fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        self.wake(now, out);
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at()
    }

    fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        self.restart(now, out);
    }
}

/// Whoever asks is answered in time and once, and no honest machine ends.
struct Oracle;

impl<T: Tamper> Checker<Machine<T>> for Oracle {
    fn check(&mut self, world: &World<Machine<T>>, actor: Node) -> Result<(), Broken> {
        let now = world.local(actor);
        if let Some(Note::Wrong(what)) = world.notes().first() {
            return Err(Broken::new("inv-W1", format!("{actor}: {what}")));
        }
        match world.actor(actor).owes_since().filter(|since| now.since(*since) > OWED_MAX) {
            Some(since) => {
                let what = format!("{actor} lets somebody wait since {since} at {now}");
                Err(Broken::new("inv-W2", what))
            }
            None => Ok(()),
        }
    }
}

/// Runs this seed of the world.
pub fn run(seed: u64) -> Outcome {
    run_tampered(seed, &Honest, 0)
}

/// Runs this seed again, and keeps the last things that happened in words.
pub fn explain(seed: u64, lines_max: usize) -> Outcome {
    run_tampered(seed, &Honest, lines_max)
}

pub(crate) fn run_tampered(seed: u64, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let is_calm = rng.chance(0.3);
    let faults = if is_calm { Faults::none() } else { milder(Faults::draw(&mut rng)) };
    let count = 6 + rng.index(2) as u16;
    let slack = Duration::from_millis(100) + faults.latency_max;
    let site = Rc::new(site(count, slack, Node(1 + rng.below(u64::from(count) - 1) as u16)));
    let mut nodes = Vec::new();
    for node in (0..count).map(Node) {
        let clock = Clock::draw(&faults, &mut rng);
        let now = clock.local(Instant::START);
        let join_at = now + Duration::from_millis(rng.below(60_000));
        let machine =
            Machine::new(Rc::clone(&site), node, now, join_at, rng.fork(), tamper.clone());
        nodes.push((machine, clock));
    }
    let mut marks = Marks::new(MARKS);
    marks.pass_if(is_calm, "nothing goes wrong");
    let mut world = World::new(faults, nodes, marks, &mut rng);
    if lines_max > 0 {
        world.keep_trace(lines_max);
    }
    let violation = play(&mut world, &site).err();
    Outcome::of(&world, violation)
}

/// The same with crashes and cuts that leave time to grow.
fn milder(faults: Faults) -> Faults {
    let loss = faults.loss.min(0.1);
    Faults { loss, late_max: faults.late_max.min(Duration::from_secs(5)), ..faults }
}

fn play<T: Tamper>(world: &mut World<Machine<T>>, site: &Site) -> Result<(), Violation> {
    world.run_until(Instant::START + FAULTS_SPAN, &mut Oracle)?;
    world.heal();
    world.run_until(world.now() + HEALED_MAX / 2, &mut Oracle)?;
    let judge = |world: &World<Machine<T>>, is_decreed| {
        judge(world, site, is_decreed).map_err(|broken| Violation { broken, at: world.now() })
    };
    judge(world, false)?;
    let issuer = issuer();
    let decree = Decree::Revoke(Revocation::new(&issuer, site.keys[site.victim.index()], SECONDS));
    let teller = world.nodes().find(|node| *node != site.victim).expect("there are others");
    site.is_decreed.set(true);
    world.tell(teller, |machine, now, out| machine.decree(now, decree, out));
    world.run_until(world.now() + HEALED_MAX / 2, &mut Oracle)?;
    judge(world, true)?;
    // A crash now shows what was kept.
    for node in world.nodes().collect::<Vec<_>>() {
        world.crash(node, Duration::from_secs(1));
    }
    world.run_until(world.now() + HEALED_MAX / 2, &mut Oracle)?;
    judge(world, true)
}

/// All that are to be of the cell are, and agree on it.
fn judge<T: Tamper>(
    world: &World<Machine<T>>,
    site: &Site,
    is_decreed: bool,
) -> Result<(), Broken> {
    let victim = site.keys[site.victim.index()];
    let is_honest = |node: &Node| !is_decreed || *node != site.victim;
    let mut seats: Option<(u64, Vec<Seat>)> = None;
    for node in world.nodes().filter(is_honest) {
        let machine = world.actor(node);
        let Some(server) = machine.server() else {
            return Err(Broken::new("inv-W3", format!("{node} has not joined")));
        };
        let roll = server.roll().expect("it listens to others");
        let known = (roll.epoch, roll.seats.clone());
        if *seats.get_or_insert_with(|| known.clone()) != known {
            let what = format!("{node} knows of {known:?}, and others of {seats:?}");
            return Err(Broken::new("inv-W4", what));
        }
        let is_late = |since: &Instant| world.local(node).since(*since) > WAIT_MAX;
        if let Some(since) = machine.waits_since().filter(is_late) {
            let what = format!("the client of {node} waits since {since}");
            return Err(Broken::new("inv-W5", what));
        }
        if is_decreed && !machine.is_gone(&victim) {
            let what = format!("{node} has to do with a machine that was sent away");
            return Err(Broken::new("inv-W6", what));
        }
    }
    let (_, seats) = seats.expect("there are machines");
    let has_victim = is_decreed && seats.iter().any(|seat| seat.key == victim);
    match seats.len() == SEATS && !has_victim {
        true => Ok(()),
        false => Err(Broken::new("inv-W7", format!("these sit in the group: {seats:?}"))),
    }
}

fn issuer() -> Issuer {
    let root = SecretKey::from_seed([1; 32]);
    Issuer::by(&root, SecretKey::from_seed([2; 32]), 2 * SECONDS)
}

fn site(count: u16, slack: Duration, victim: Node) -> Site {
    let (root, issuer) = (SecretKey::from_seed([1; 32]), issuer());
    let join = |number: u16| {
        let (seed, machine) = ([100 + number as u8; 16], [10 + number as u8; 32]);
        let (expires, patrons) = (2 * SECONDS, Patrons::Any);
        let terms = Terms { count: 1, expires, certificate_expires_max: expires, patrons };
        let invitation = Invitation::new(&issuer, &Secret::new(seed), terms);
        let machine = SecretKey::from_seed(machine);
        let certificate = invitation.expect("it is well made").certify(&machine, expires);
        let certificate = certificate.expect("it is well made");
        Join::new(certificate, Whereabouts::default(), &machine, SECONDS)
    };
    let joins: Vec<Join> = (0..count).map(join).collect();
    let keys: Vec<PublicKey> = joins.iter().map(|join| *join.certificate.machine()).collect();
    let founder = Seat { key: keys[0], incarnation: 0 };
    let usual = Settings::default();
    let patience = Patience {
        propose: usual.patience.propose + slack,
        prevote: usual.patience.prevote + slack,
        precommit: usual.patience.precommit + slack,
        rebroadcast: usual.patience.rebroadcast + 2 * slack,
        ..usual.patience
    };
    let doubt = Doubt { slack, ..usual.doubt };
    Site {
        group: Digest::of(GROUP, b""),
        authority: root.public(),
        first: Roll::from(&Tip::first(vec![founder]).expect("one is a group")),
        keys,
        joins,
        settings: Settings { patience, doubt, checkpoint_every: 16, recent_max: 32, ..usual },
        seating: Seating { away_after: Duration::from_secs(60), ..Seating::default() },
        victim,
        is_decreed: Cell::new(false),
    }
}
