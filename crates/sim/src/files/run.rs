//! One seed of the file world: faults, then none, then everything pushed and compared.

use std::collections::BTreeSet;

use base::{Duration, Instant, PublicKey, Rng};
use client::Settings as ClientSettings;
use directory::{Actor as User, Command, Quota, Users, message::Request};
use group::Seal;
use lease::{
    Client, Policy, Terms,
    message::{Up, Upward},
};
use node::{Order, Settings};
use vice::{Lie, Vice};

use crate::{Clock, Faults, Marks, Outcome, Violation, World};

use super::{
    actor::Party,
    circle::Circle,
    desk::{Desk, Habit},
    member::Member,
    oracle::Oracle,
    program::{Plot, Program},
    tamper::{Honest, Tamper},
    witness::Space,
};

/// What must have happened in a good number of seeds.
pub(crate) const MARKS: &[&str] = &[
    "a call is cancelled",
    "a client starts again",
    "a listing has more pages",
    "a lock is in the way",
    "a session is lost",
    "a share is used up",
    "a share mode excludes",
    "bytes are told before they are given up",
    "no space is left",
    "operations are lost with their session",
    "records are lost with the power",
    "the group starts again",
    "too many files are open",
    COMPARED,
];

/// And with several members.
pub(crate) const MARKS_OF_SEVERAL: &[&str] = &[
    "a liar is found out",
    "a member lies",
    "a member takes the state of others",
    "a question goes two ways",
];

const COMPARED: &str = "an outcome is what the reference shows";

/// As many full batches a client may have to push; then its programs wait.
const BATCHES_MAX: usize = 32;

/// As many leases a client can do with: one rename far down needs so many at once.
const BUDGET_MIN: usize = 48;

/// How long faults go on.
const FAULTS_SPAN: Duration = Duration::from_secs(60);

/// Runs this seed of the file world.
pub fn run(seed: u64) -> Outcome {
    run_tampered(seed, &Honest, 0)
}

/// Runs this seed again, and keeps the last things that happened in words.
pub fn explain(seed: u64, lines_max: usize) -> Outcome {
    run_tampered(seed, &Honest, lines_max)
}

/// Runs this seed with a group of several members.
pub fn run_replicated(seed: u64) -> Outcome {
    explain_replicated(seed, 0)
}

/// Runs this seed with a group of several members again, and keeps the last things that happened in words.
pub fn explain_replicated(seed: u64, lines_max: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let mut plan = Plan::draw(&mut rng);
    plan.replicate(&mut rng);
    run_plan(&plan, rng, &Honest, lines_max)
}

pub(crate) fn run_tampered(seed: u64, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng);
    run_plan(&plan, rng, tamper, lines_max)
}

fn run_plan(plan: &Plan, mut rng: Rng, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let mut world = plan.build(&mut rng, tamper);
    let mut oracle = Oracle::new(plan.space(), plan.is_faultless && plan.members == 1);
    if lines_max > 0 {
        world.keep_trace(lines_max);
    }
    let played = play(&mut world, &mut oracle, plan);
    let compared = *played.as_ref().unwrap_or(&0);
    let mut outcome = Outcome::of(&world, played.err());
    outcome.marks.pass_many(COMPARED, compared);
    outcome.marks.pass_if(!plan.liars.is_empty(), "a member lies");
    outcome
}

fn play<T: Tamper>(
    world: &mut World<Party<T>>,
    oracle: &mut Oracle,
    plan: &Plan,
) -> Result<u64, Violation> {
    let healed_at = Instant::START + FAULTS_SPAN;
    world.run_until(healed_at, oracle)?;
    world.heal();
    // Work goes on for a while without faults, then everybody finishes.
    let rest_at = healed_at + 2 * plan.terms.session;
    world.run_until(rest_at, oracle)?;
    // Votes take time: who has nothing to say meanwhile may lose a session in which it has nothing to lose.
    if plan.members == 1 {
        oracle.calm();
    }
    for node in world.nodes().skip(1) {
        world.tell(node, |party, _, _| {
            if let Party::Desk(desk) = party {
                desk.rest();
            }
        });
    }
    let sync_at = rest_at + plan.answer_max();
    world.run_until(sync_at, oracle)?;
    for node in world.nodes().skip(1) {
        world.tell(node, |party, now, _| {
            if let Party::Desk(desk) = party {
                desk.sync(now);
            }
        });
    }
    let end_at = sync_at + plan.answer_max();
    world.run_until(end_at, oracle)?;
    oracle.judge_end(world).map_err(|broken| Violation { broken, at: end_at })
}

/// What a seed's world is like.
struct Plan {
    faults: Faults,
    terms: Terms,
    policy: Policy,
    /// For each desk, what runs there and for whom.
    desks: Vec<Vec<(Plot, User)>>,
    habit: Habit,
    sync_max: Duration,
    is_faultless: bool,
    files_max: u64,
    /// For so many bytes each desk has room.
    room_max: u64,
    /// What a user may have.
    share: Quota,
    limits: Limits,
    /// How many members the group has.
    members: usize,
    /// How each of the last members lies, and how often when it could.
    liars: Vec<(BTreeSet<Lie>, f64)>,
}

/// How little a client is content with.
#[derive(Clone, Copy)]
struct Limits {
    push_after: Duration,
    batch_max: usize,
    pending_max: usize,
    budget: usize,
    facts_max: usize,
    handles_max: usize,
    calls_max: usize,
}

impl Limits {
    fn draw(rng: &mut Rng) -> Limits {
        let usual = ClientSettings::of(Client(1));
        let push_after = Duration::from_millis(*rng.pick(&[20, 1_000, 3_000]));
        let batch_max = *rng.pick(&[1, 8, 1_000]);
        let mut few = |few: &[usize], many: usize| match rng.chance(0.3) {
            true => *rng.pick(few),
            false => many,
        };
        Limits {
            push_after,
            batch_max,
            pending_max: few(&[1, 3, 10], BATCHES_MAX * batch_max),
            budget: few(&[BUDGET_MIN, 2 * BUDGET_MIN], usual.budget),
            facts_max: few(&[8, 40], usual.facts_max),
            handles_max: few(&[1, 2], usual.handles_max),
            calls_max: few(&[2, 4], usual.calls_max),
        }
    }
}

impl Plan {
    fn draw(rng: &mut Rng) -> Plan {
        let is_faultless = rng.chance(0.15);
        let faults = if is_faultless { Faults::none() } else { Faults::draw(rng) };
        let session = Duration::from_secs(5 + rng.below(16));
        let terms = Terms {
            session,
            lease: if rng.chance(0.2) { session * 2 } else { Duration::from_secs(7_200) },
            repeat: Duration::from_millis(300 + rng.below(1_000)),
            slack: Duration::from_millis(*rng.pick(&[0, 50, 500])),
            drift_ppm: 1_000,
        };
        let theme = *rng.pick(&Plot::ALL);
        let count = 1 + rng.index(4);
        let desks = (0..count).map(|_| {
            let programs = 1 + rng.index(2);
            (0..programs).map(|_| draw_program(theme, rng)).collect()
        });
        let desks = desks.collect();
        let pace = Duration::from_millis(*rng.pick(&[5, 50, 200]));
        let impatience = *rng.pick(&[0.0, 0.0, 0.05, 0.3]);
        let habit = Habit { pace, impatience };
        let sync_max = Duration::from_millis(*rng.pick(&[1, 10, 100]));
        let limits = Limits::draw(rng);
        let policy = Policy {
            is_generous: rng.chance(0.5),
            budget: if rng.chance(0.5) { limits.budget } else { Policy::default().budget },
            ..Policy::default()
        };
        let usual = Settings::default();
        let mut scarce = |few: &[u64], many: u64| match rng.chance(0.2) {
            true => *rng.pick(few),
            false => many,
        };
        let files_max = scarce(&[4, 12, 40], usual.files_max);
        let room_max = scarce(&[20, 100, 500], usual.room_max);
        let share = Quota {
            files: scarce(&[2, 6, 20], usual.share.files),
            bytes: scarce(&[15, 70, 300], usual.share.bytes),
        };
        Plan {
            faults,
            terms,
            policy,
            desks,
            habit,
            sync_max,
            is_faultless,
            files_max,
            room_max,
            share,
            limits,
            members: 1,
            liars: Vec::new(),
        }
    }

    /// Gives the group several members, each with a clock of its own.
    fn replicate(&mut self, rng: &mut Rng) {
        self.members = *rng.pick(&[4, 4, 4, 7]);
        let liars = if rng.chance(0.5) { 0 } else { 1 + rng.index((self.members - 1) / 3) };
        self.liars = (0..liars).map(|_| (draw_lies(rng), *rng.pick(&[0.05, 0.3, 1.0]))).collect();
        // An honest leader's time arrives late by as much as a message may take.
        self.terms.slack = Duration::from_millis(100) + self.faults.latency_max + self.sync_max;
        self.terms.session += 4 * self.terms.slack;
        self.terms.lease = self.terms.lease.max(self.terms.session);
    }

    /// What there is room for in the tree.
    fn space(&self) -> Space {
        let Plan { files_max, room_max, share, .. } = *self;
        let bytes_max = room_max * self.desks.len() as u64;
        Space { files_max, bytes_max, share, is_shared: self.desks.len() > 1 }
    }

    fn build<T: Tamper>(&self, rng: &mut Rng, tamper: &T) -> World<Party<T>> {
        let settings = Settings {
            terms: self.terms,
            policy: self.policy,
            files_max: self.files_max,
            room_max: self.room_max,
            share: self.share,
            admits_anybody: true,
            ..Settings::default()
        };
        let Plan { terms, sync_max, .. } = self;
        let circle = Circle::new(self.members, self.desks.len(), terms.slack, *sync_max);
        let mut members = circle.first.members().list().to_vec().into_iter();
        let member = |seat, rng: &mut Rng| {
            let (circle, tamper) = (circle.clone(), tamper.clone());
            let place = circle.first.members().list().iter().rev().position(|other| *other == seat);
            let vice = place.and_then(|place| self.liars.get(place)).map(|(lies, zeal)| {
                Vice::new(lies.clone(), *zeal, terms.slack, circle.group, invented, rng)
                    .at_leisure(LEISURE)
                    .picking_by(author)
            });
            let settings = settings.clone();
            let member = Member::new(settings, circle, seat, *sync_max, vice, rng.fork(), tamper);
            (Party::Member(Box::new(member)), Clock::draw(&self.faults, rng))
        };
        let mut nodes: Vec<_> = members.next().map(|seat| member(seat, rng)).into_iter().collect();
        let mut number = 0;
        for (index, desk) in self.desks.iter().enumerate() {
            let programs = desk.iter().map(|(plot, user)| {
                number += 1;
                Program::new(*plot, user.clone(), number)
            });
            let programs = programs.collect();
            let Limits { push_after, batch_max, pending_max, .. } = self.limits;
            let Limits { budget, facts_max, handles_max, calls_max, .. } = self.limits;
            let client = Client(index as u32 + 1);
            let ear =
                (self.members > 1).then(|| (circle.clone(), circle.ear(client, self.terms.repeat)));
            let settings = ClientSettings {
                terms: self.terms,
                push_after,
                batch_max,
                pending_max,
                budget,
                facts_max,
                handles_max,
                calls_max,
                has_memory: index % 2 == 1,
                ..ClientSettings::of(client)
            };
            let desk = Desk::new(settings, programs, self.habit, ear, rng.fork(), tamper.clone());
            nodes.push((Party::Desk(Box::new(desk)), Clock::draw(&self.faults, rng)));
        }
        for seat in members {
            nodes.push(member(seat, rng));
        }
        let mut marks = Marks::new(MARKS);
        if self.members > 1 {
            marks.merge(&Marks::new(MARKS_OF_SEVERAL));
        }
        World::new(self.faults, nodes, marks, rng)
    }

    /// A call may be behind those of all other programs, each of which may need several rounds; who does
    /// not answer delays it by a session.
    fn answer_max(&self) -> Duration {
        let programs: usize = self.desks.iter().map(Vec::len).sum();
        let turn = 12 * self.faults.latency_max + 8 * self.sync_max + Duration::from_millis(100);
        let turns = 16 * programs + BATCHES_MAX;
        let turn = turn * if self.members > 1 { 3 } else { 1 };
        3 * self.terms.session + 8 * self.terms.repeat + turns as u32 * turn
    }
}

/// How late a slow leader says what is still in time, mostly.
const LEISURE: Duration = Duration::from_millis(150);

/// Some ways to lie. That a member is two is for the world of groups.
fn draw_lies(rng: &mut Rng) -> BTreeSet<Lie> {
    let ways = Lie::ALL.into_iter().filter(|lie| *lie != Lie::Twins);
    let mut lies: BTreeSet<Lie> = ways.clone().filter(|_| rng.chance(0.3)).collect();
    lies.insert(*rng.pick(&ways.collect::<Vec<_>>()));
    lies
}

/// Whose command this is.
fn author(command: &[u8]) -> Option<u64> {
    match Order::of(command) {
        Ok(Order::Do { command: Command::Heard { client, .. }, .. }) => Some(u64::from(client.0)),
        _ => None,
    }
}

/// A command that nobody wants, or that nobody may.
fn invented(rng: &mut Rng) -> Vec<u8> {
    let client = Client(1 + rng.below(8) as u32);
    let command = match rng.chance(0.5) {
        true => Command::Admit { client, users: Users::Any },
        false => {
            let lease = Upward { session: 1, stamp: Instant::START, body: Up::Renew };
            Command::Heard { client, request: Request { lease, ask: None } }
        }
    };
    let by = rng.chance(0.5).then(|| (PublicKey::from_bytes([0xcc; 32]), Seal([7; 64])));
    base::encode(&Order::Do { command, by })
}

/// Mostly what the seed is about, sometimes anything, for one of a few people.
fn draw_program(theme: Plot, rng: &mut Rng) -> (Plot, User) {
    let plot = if rng.chance(0.7) { theme } else { *rng.pick(&Plot::ALL) };
    let user = match rng.below(4) {
        0 => User { uid: 1_000, gid: 100, groups: vec![101] },
        1 => User { uid: 1_001, gid: 101, groups: vec![] },
        _ => User::ROOT,
    };
    (plot, user)
}
