//! A world with a flood, and what must hold in it.

use std::rc::Rc;

use base::{Digest, Domain, Duration, Instant, PublicKey, Rng, SecretKey};
use group::{Settings, Tip};
use node::Seating;
use overlay::{Invitation, Issuer, Patrons, Secret, Terms};
use wire::{Join, Whereabouts};

use super::{
    flooder::Flooder,
    machine::{Letter, Machine},
    tamper::{Honest, Tamper},
};
use crate::{Actor, Broken, Checker, Clock, Faults, Marks, Node, Outbox, Outcome, World};

/// So many sit in the group.
pub(crate) const MEMBERS: u16 = 4;
/// After these and one that is honest and has no vote come those that flood.
const FLOODERS: u16 = MEMBERS + 1;
/// One floods, or many do.
const MANY: u16 = 6;

/// How long it goes on.
const SPAN: Duration = Duration::from_secs(6);
/// Whoever is not heard for so long loses its seat.
const AWAY_AFTER: Duration = Duration::from_secs(2);
/// What somebody wants is decided after so long at the most (inv-R4).
const PATIENCE: Duration = Duration::from_secs(1);
/// A frame may have so many bytes of decisions beyond what was left of the allowance.
const ANSWER_MAX: u64 = (1 << 20) + (64 << 10);

pub(crate) const DECIDED: &str = "what somebody wants is decided";
pub(crate) const MARKS: &[&str] = &[DECIDED, "many flood", "somebody floods with everything"];

const GROUP: Domain = Domain::new("flooded group v1");

/// What all machines of a world know.
pub(crate) struct Site {
    pub(crate) group: Digest,
    pub(crate) authority: PublicKey,
    pub(crate) keys: Vec<PublicKey>,
    /// What each says to join.
    pub(crate) joins: Vec<Rc<[u8]>>,
    pub(crate) first: Tip,
    pub(crate) settings: Settings,
    pub(crate) seating: Seating,
}

/// Who is at a node.
pub(crate) enum Party<T> {
    Machine(Box<Machine<T>>),
    Flooder(Box<Flooder>),
}

/// What a node tells the checker.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// Somebody has what it wanted.
    Served { node: Node, took: Duration },
}

pub(crate) type Out<T> = Outbox<Party<T>>;

impl<T: Tamper> Actor for Party<T> {
    type Message = Letter;
    type Note = Note;

    fn deliver(&mut self, now: Instant, from: Node, letter: Letter, out: &mut Out<T>) {
        if let Party::Machine(machine) = self {
            machine.deliver(now, from, letter, out);
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        match self {
            Party::Machine(machine) => machine.wake(now, out),
            Party::Flooder(flooder) => flooder.wake(now, out),
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        match self {
            Party::Machine(machine) => machine.wake_at(),
            Party::Flooder(flooder) => flooder.wake_at(),
        }
    }

    fn restart(&mut self, _: Instant, _: &mut Out<T>) {
        unreachable!("nobody crashes in this world");
    }
}

/// What must hold: what honest machines want is decided soon, those who sit in the group go on sitting there, and
/// whoever has no vote is told no more than it may be.
struct Oracle {
    settings: Settings,
}

impl<T: Tamper> Checker<Party<T>> for Oracle {
    fn check(&mut self, world: &World<Party<T>>, actor: Node) -> Result<(), Broken> {
        let Party::Machine(machine) = world.actor(actor) else { return Ok(()) };
        let now = world.local(actor);
        for Note::Served { node, took } in world.notes() {
            if *took > PATIENCE {
                return Err(Broken::new("inv-R4", format!("{node} has waited {took:?}")));
            }
        }
        if let Some(since) = machine.waits_since().filter(|since| now.since(*since) > PATIENCE) {
            return Err(Broken::new("inv-R4", format!("{actor} waits since {since}")));
        }
        let tip = machine.member.replica().tip();
        if tip.epoch > 1 || tip.plan.is_some() {
            let what = format!("{actor} knows of others: {:?}, to be {:?}", tip.seats, tip.plan);
            return Err(Broken::new("inv-R5", what));
        }
        let told = machine.told.range(Node(FLOODERS)..).map(|(_, bytes)| *bytes).max();
        let told = told.unwrap_or_default() as u64;
        let allowance = self.settings.told_others;
        let seconds = world.now().since(Instant::START).as_secs() + 1;
        if told > allowance.burst + allowance.per_second * seconds + ANSWER_MAX {
            let what = format!("{actor} has told whoever has no vote {told} bytes");
            return Err(Broken::new("inv-R6", what));
        }
        Ok(())
    }
}

/// Runs this seed of the flooded world.
pub fn run(seed: u64) -> Outcome {
    run_tampered(seed, &Honest, 0)
}

/// Runs this seed again, and keeps the last things that happened in words.
pub fn explain(seed: u64, lines_max: usize) -> Outcome {
    run_tampered(seed, &Honest, lines_max)
}

pub(crate) fn run_tampered(seed: u64, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let count = *rng.pick(&[1, MANY]);
    let site = Rc::new(site(FLOODERS + count));
    let mut nodes = Vec::new();
    for node in (0..FLOODERS).map(Node) {
        let pace = Duration::from_millis(*rng.pick(&[2, 20, 200]));
        let pace = (node.0 < MEMBERS).then_some(pace);
        let clock = Clock::draw(&Faults::none(), &mut rng);
        let now = clock.local(Instant::START);
        let machine = Machine::new(Rc::clone(&site), node, pace, now, tamper.clone());
        nodes.push((Party::Machine(Box::new(machine)), clock));
    }
    let mut marks = Marks::new(MARKS);
    marks.pass_if(count > 1, "many flood");
    for node in (FLOODERS..FLOODERS + count).map(Node) {
        let clock = Clock::draw(&Faults::none(), &mut rng);
        let start = clock.local(Instant::START) + Duration::from_secs(1);
        let flooder = Flooder::new(Rc::clone(&site), node, start, rng.fork());
        marks.pass_if(!flooder.is_bent(), "somebody floods with everything");
        nodes.push((Party::Flooder(Box::new(flooder)), clock));
    }
    let mut world = World::new(Faults::none(), nodes, marks, &mut rng);
    if lines_max > 0 {
        world.keep_trace(lines_max);
    }
    let mut oracle = Oracle { settings: site.settings.clone() };
    let ended = world.run_until(Instant::START + SPAN, &mut oracle);
    Outcome::of(&world, ended.err())
}

fn site(count: u16) -> Site {
    let root = SecretKey::from_seed([1; 32]);
    let issuer = Issuer::by(&root, SecretKey::from_seed([2; 32]), 1_000);
    let join = |number: u16| {
        let (seed, machine) = ([100 + number as u8; 16], [10 + number as u8; 32]);
        let terms =
            Terms { count: 1, expires: 900, certificate_expires_max: 900, patrons: Patrons::Any };
        let invitation =
            Invitation::new(&issuer, &Secret::new(seed), terms).expect("it is well made");
        let machine = SecretKey::from_seed(machine);
        let certificate = invitation.certify(&machine, 900).expect("it is well made");
        Join::new(certificate, Whereabouts::default(), &machine, 10)
    };
    let joins: Vec<Join> = (0..count).map(join).collect();
    let keys: Vec<PublicKey> = joins.iter().map(|join| *join.certificate.machine()).collect();
    Site {
        group: Digest::of(GROUP, b""),
        authority: root.public(),
        first: Site::first(&keys[..usize::from(MEMBERS)]),
        keys,
        joins: joins.iter().map(|join| base::encode(join).into()).collect(),
        settings: Settings { checkpoint_every: 64, recent_max: 128, ..Settings::default() },
        seating: Seating { away_after: AWAY_AFTER, ..Seating::default() },
    }
}
