//! One seed of the group world: faults, then none, then everybody answered and silence.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use base::{Duration, Instant, Rng};
use group::{Doubt, Patience, Settings};
use vice::{Lie, Vice};

use crate::{Broken, Clock, Faults, Kind, Marks, Node, Outcome, Violation, World};

use super::{
    actor::Party,
    customer::{Customer, Habit},
    leading::Leading,
    ledger::{Ledger, Shared, liars_max},
    member::{Hardware, Member, Site},
    notary::{Safe, group},
    oracle::Oracle,
    tally::{Order, Tally},
    tamper::{Honest, Tamper},
};

/// What must have happened in a good number of seeds.
pub(crate) const MARKS: &[&str] = &[
    "a customer is shown how the members changed",
    "a customer learns who sits there or leads",
    "a customer says it again",
    "a disk is lost",
    "a member that has drifted notices it",
    "a member starts again",
    "a newcomer finds that it was misled",
    "a rescue leaks while a quorum is well",
    "a state is taken from others",
    "an old disk is noticed",
    "an old disk is restored",
    "records are lost with the power",
    "somebody looks up who may sit there",
    "somebody lies",
    BELIEVED,
    DECIDED,
    GREW,
    OUTGROWN,
];

const BELIEVED: &str = "an answer is believed";
const DECIDED: &str = "a height is decided";
const OUTGROWN: &str = "whoever was alone at first lies, and is not alone any more";
const GREW: &str = "one becomes four, seven and four again";

/// So long after the faults have ended, or after it was asked for, everything is answered (B5).
const PROGRESS_MAX: Duration = Duration::from_secs(10);

/// Runs this seed of the group world.
pub fn run(seed: u64) -> Outcome {
    run_tampered(seed, &Honest, 0)
}

/// Runs this seed again, and keeps the last things that happened in words.
pub fn explain(seed: u64, lines_max: usize) -> Outcome {
    run_tampered(seed, &Honest, lines_max)
}

/// Runs this seed of a short world in which one of four always lies.
pub fn run_twins(seed: u64) -> Outcome {
    run_twins_tampered(seed, &Honest, 0)
}

/// Runs this seed again, and keeps the last things that happened in words.
pub fn explain_twins(seed: u64, lines_max: usize) -> Outcome {
    run_twins_tampered(seed, &Honest, lines_max)
}

pub(crate) fn run_tampered(seed: u64, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng);
    play(&plan, &mut rng, tamper, lines_max)
}

pub(crate) fn run_twins_tampered(seed: u64, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw_twins(&mut rng);
    play(&plan, &mut rng, tamper, lines_max)
}

pub(crate) fn play(plan: &Plan, rng: &mut Rng, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let (mut world, mut oracle) = plan.build(rng, tamper);
    if lines_max > 0 {
        world.keep_trace(lines_max);
    }
    let played = perform(&mut world, &mut oracle, plan);
    let mut outcome = Outcome::of(&world, played.err());
    outcome.marks.pass_many(BELIEVED, oracle.believed);
    outcome.marks.pass_many(DECIDED, oracle.height());
    outcome.marks.pass_if(!plan.liars.is_empty(), "somebody lies");
    outcome.marks.pass_if(plan.circles.len() > 2, GREW);
    if plan.is_timed {
        outcome.longest = oracle.leading.longest().clone();
    }
    outcome.marks.pass_if(oracle.has_outgrown_a_liar(), OUTGROWN);
    outcome
}

fn perform<T: Tamper>(
    world: &mut World<Party<T>>,
    oracle: &mut Oracle,
    plan: &Plan,
) -> Result<(), Violation> {
    let healed_at = Instant::START + plan.span;
    for circle in 1..plan.circles.len() as u32 {
        let change_at = Instant::START + plan.span * circle / plan.circles.len() as u32;
        world.run_until(change_at, oracle)?;
        oracle.want_next();
    }
    world.run_until(healed_at, oracle)?;
    world.heal();
    oracle.on_healed(healed_at);
    let open = open_orders(world);
    // Work goes on for a while without faults, then nobody asks for more.
    let rest_at = healed_at + plan.span / 8;
    world.run_until(rest_at, oracle)?;
    each_customer(world, |customer, _| customer.rest());
    world.run_until(healed_at + PROGRESS_MAX, oracle)?;
    let mut left = open_orders(world);
    left.retain(|order| open.contains(order));
    judge_open(world, &left)?;
    world.run_until(rest_at + PROGRESS_MAX, oracle)?;
    judge_open(world, &open_orders(world))?;
    // Who is behind learns it from the next decision at the latest.
    each_customer(world, |customer, now| {
        customer.resume(now);
        customer.rest_after_this();
    });
    let end_at = rest_at + 2 * PROGRESS_MAX;
    world.run_until(end_at - PROGRESS_MAX / 2, oracle)?;
    // Liars may have something decided at any moment; what was decided by now is known to all at the end.
    let height = oracle.height();
    let is_settled = oracle.is_settled();
    world.run_until(end_at, oracle)?;
    if !is_settled {
        return Ok(());
    }
    oracle.judge_end(world, height).map_err(|broken| Violation { broken, at: end_at })?;
    if plan.liars.is_empty() {
        // What was late before the faults ended may still be on its way.
        world.run_until(end_at + plan.faults.late_max, oracle)?;
        let said = world.counts()[Kind::Deliver];
        let silent_at = world.now() + PROGRESS_MAX;
        world.run_until(silent_at, oracle)?;
        let more = world.counts()[Kind::Deliver] - said;
        if more > 0 {
            let broken = Broken::new("silence", format!("{more} messages with nothing to do"));
            return Err(Violation { broken, at: silent_at });
        }
    }
    Ok(())
}

/// The orders that are not answered yet, by customer and number.
fn open_orders<T: Tamper>(world: &World<Party<T>>) -> BTreeSet<(Node, u64)> {
    let customers = world.nodes().filter_map(|node| Some((node, world.actor(node).customer()?)));
    let waiting = customers.filter(|(_, customer)| customer.is_waiting());
    waiting.map(|(node, customer)| (node, customer.number())).collect()
}

/// None of these should be open any more.
fn judge_open<T: Tamper>(
    world: &World<Party<T>>,
    open: &BTreeSet<(Node, u64)>,
) -> Result<(), Violation> {
    let Some((node, number)) = open.first() else { return Ok(()) };
    let broken = Broken::new("inv-B5", format!("{node} still waits for its order {number}"));
    Err(Violation { broken, at: world.now() })
}

fn each_customer<T: Tamper>(world: &mut World<Party<T>>, what: impl Fn(&mut Customer<T>, Instant)) {
    for node in world.nodes() {
        world.tell(node, |party, now, _| {
            if let Party::Customer(customer) = party {
                what(customer, now);
            }
        });
    }
}

/// What a seed's world is like.
pub(crate) struct Plan {
    pub(crate) faults: Faults,
    pub(crate) settings: Settings,
    /// How many machines there are.
    pub(crate) count: usize,
    /// Which of them are to sit in the group, one circle after another.
    pub(crate) circles: Vec<BTreeSet<Node>>,
    pub(crate) liars: BTreeMap<Node, (BTreeSet<Lie>, f64)>,
    /// An honest member whose state goes astray once.
    pub(crate) drifter: Option<Node>,
    pub(crate) habits: Vec<Habit>,
    pub(crate) hardware: Hardware,
    pub(crate) is_real: bool,
    /// Whether it is a fault if one leads, or somebody waits, for too long.
    pub(crate) is_timed: bool,
    /// Whether liars have the authority's word that the group goes on from one alone.
    pub(crate) leaks: bool,
    /// How long faults go on.
    pub(crate) span: Duration,
}

impl Plan {
    fn draw(rng: &mut Rng) -> Plan {
        let faults = if rng.chance(0.1) { Faults::none() } else { Faults::draw(rng) };
        let circles = draw_circles(rng);
        let count = circles.iter().map(BTreeSet::len).max().unwrap_or(0);
        let is_real = rng.chance(0.015);
        let liars = if rng.chance(0.35) { 0 } else { 1 + rng.index(liars_max(count)) };
        let liars = draw_liars(&circles, liars, rng);
        // While a founder that is two helps nobody to a quorum, whoever thinks that none is left is right.
        let founder = Plan::founder(&circles).and_then(|founder| liars.get(&founder));
        let is_founder_two = founder.is_some_and(|(lies, _)| lies.contains(&Lie::Twins));
        let leaks = !liars.is_empty() && !is_founder_two && rng.chance(0.3);
        let settings = draw_settings(rng);
        let pace = Duration::from_millis(*rng.pick(&[50, 300, 2_000]));
        let patience = Duration::from_millis(300 + rng.below(1_000));
        let customers = 1 + rng.index(4);
        let habits = vec![Habit { pace, patience }; customers];
        let hardware = Hardware {
            sync_max: Duration::from_millis(*rng.pick(&[1, 5, 50])),
            loss: *rng.pick(&[0.0, 0.3, 0.6]),
            rollback: *rng.pick(&[0.0, 0.5, 1.0]),
            backups: *rng.pick(&[0.02, 0.3]),
        };
        // Machines of a group crash more often than anybody would like.
        let crash_gap = faults.crash_gap / 8;
        let faults = Faults { crash_gap, ..faults };
        let (faults, settings) = match leaks {
            // Nobody is cut off for so long that it could think that no quorum is left.
            true => {
                let most = Duration::from_secs(4);
                let (split_max, pause_max) =
                    (most.min(faults.split_max), most.min(faults.pause_max));
                let faults = Faults { split_max, pause_max, crash_gap: crash_gap * 8, ..faults };
                (faults, Settings { hesitate: Duration::from_secs(15), ..settings })
            }
            false => (faults, settings),
        };
        let span = Duration::from_secs(if is_real { 8 } else { 40 });
        let drifter = draw_drifter(&circles, &liars, &faults, rng);
        let is_timed = false;
        Plan {
            faults,
            settings,
            count,
            circles,
            liars,
            drifter,
            habits,
            hardware,
            is_real,
            is_timed,
            leaks,
            span,
        }
    }

    fn draw_twins(rng: &mut Rng) -> Plan {
        let patience = Patience {
            propose: Duration::from_millis(30),
            prevote: Duration::from_millis(20),
            precommit: Duration::from_millis(20),
            rebroadcast: Duration::from_millis(60),
            growth: Duration::from_millis(20),
            most: Duration::from_millis(500),
        };
        let settings = Settings {
            patience,
            repeat: Duration::from_millis(100),
            checkpoint_every: 3,
            recent_max: 6,
            ..draw_settings(rng)
        };
        let lies = match rng.chance(0.5) {
            true => BTreeSet::from([Lie::Twins]),
            false => BTreeSet::from([Lie::Twins, *rng.pick(&Lie::ALL)]),
        };
        // Or whoever was alone at first is two, from the first moment on.
        let is_founded = rng.chance(0.3);
        let liar = Node(if is_founded { 0 } else { rng.below(4) as u16 });
        let circles = if is_founded { vec![nodes(0..1), nodes(0..4)] } else { vec![nodes(0..4)] };
        let faults = Faults {
            latency_max: Duration::from_millis(10),
            late_max: Duration::from_millis(500),
            split_gap: Duration::from_millis(20 + rng.below(300)),
            split_max: Duration::from_millis(50 + rng.below(300)),
            pause_gap: Duration::ZERO,
            crash_gap: Duration::from_millis(if rng.chance(0.5) { 0 } else { 300 }),
            pause_max: Duration::from_millis(100),
            ..Faults::draw(rng)
        };
        let (pace, patience) = (Duration::from_millis(30), Duration::from_millis(80));
        Plan {
            faults,
            settings,
            count: 4,
            circles,
            liars: BTreeMap::from([(liar, (lies, *rng.pick(&[0.3, 1.0])))]),
            drifter: None,
            habits: vec![Habit { pace, patience }; 2],
            hardware: Hardware {
                sync_max: Duration::from_millis(2),
                loss: 0.0,
                rollback: 0.0,
                backups: 0.0,
            },
            is_real: false,
            is_timed: false,
            leaks: false,
            span: Duration::from_millis(800),
        }
    }

    /// Who is alone at first, if somebody is.
    fn founder(circles: &[BTreeSet<Node>]) -> Option<Node> {
        circles[0].first().copied().filter(|_| circles[0].len() == 1)
    }

    /// Whether that one is two.
    fn is_founder_two(&self) -> bool {
        let founder = Plan::founder(&self.circles);
        let lies = founder.and_then(|founder| self.liars.get(&founder));
        lies.is_some_and(|(lies, _)| lies.contains(&Lie::Twins))
    }

    pub(crate) fn build<T: Tamper>(&self, rng: &mut Rng, tamper: &T) -> (World<Party<T>>, Oracle) {
        let safe = Safe::new(self.count, self.is_real, rng);
        let keys = (0..self.count).map(|n| safe.key(n)).collect();
        let state = base::encode(&Tally::default()).into();
        // Who drifts is at fault as well.
        let liars = self.liars.keys().copied().chain(self.drifter).collect();
        let ledger: Shared =
            Ledger::new(self.circles.clone(), keys, state, liars, self.is_founder_two());
        let first = tamper.first(ledger.borrow().tip.clone());
        ledger.borrow_mut().tip = first.clone();
        let customers = (0..self.habits.len()).map(|n| ((self.count + n) as u16, rng.next_u64()));
        let secrets: Rc<BTreeMap<u16, u64>> = Rc::new(customers.collect());
        let site = Site {
            settings: self.settings.clone(),
            first,
            safe: Rc::clone(&safe),
            ledger: Rc::clone(&ledger),
            hardware: self.hardware,
            secrets: Rc::clone(&secrets),
            drifter: self.drifter,
            leaks: self.leaks,
        };
        let slack = self.settings.doubt.slack;
        let mut nodes = Vec::new();
        for index in 0..self.count {
            let clock = Clock::draw(&self.faults, rng);
            let node = Node(index as u16);
            let vice = self.liars.get(&node);
            let vice = vice.map(|(lies, zeal)| {
                let vice = Vice::new(lies.clone(), *zeal, slack, group(), Order::invented, rng);
                vice.at_leisure(self.leisure()).picking_by(Order::author)
            });
            let now = clock.local(Instant::START);
            let member = Member::new(node, site.clone(), vice, rng.fork(), now, tamper.clone());
            nodes.push((Party::Member(Box::new(member)), clock));
        }
        for (index, habit) in self.habits.iter().enumerate() {
            let node = Node((self.count + index) as u16);
            let clock = Clock::draw(&self.faults, rng);
            let start = clock.local(Instant::START);
            let (safe, ledger) = (Rc::clone(&safe), Rc::clone(&ledger));
            let secret = secrets.get(&node.0).copied().unwrap_or_default();
            let fork = rng.fork();
            let customer =
                Customer::new(node, secret, *habit, safe, ledger, fork, start, tamper.clone());
            nodes.push((Party::Customer(Box::new(customer)), clock));
        }
        let world = World::new(self.faults, nodes, Marks::new(MARKS), rng);
        let Faults { crash_gap, pause_gap, .. } = self.faults;
        let is_steady = crash_gap.is_zero() && pause_gap.is_zero();
        let leading = Leading::judged(self.is_timed);
        (world, Oracle::new(ledger, slack, is_steady, secrets, leading))
    }

    /// How late a leader may be so that its proposals are still in time: the others wait for them from when they
    /// know what is wanted, which somebody alone tells them late.
    fn leisure(&self) -> Duration {
        let told = match self.habits[..] {
            [Habit { patience, .. }] => patience,
            _ => Duration::ZERO,
        };
        let on_the_way = 3 * self.faults.latency_max + 2 * self.hardware.sync_max;
        (told + self.settings.patience.propose).saturating_sub(on_the_way)
    }
}

pub(crate) fn nodes(numbers: std::ops::Range<u16>) -> BTreeSet<Node> {
    numbers.map(Node).collect()
}

/// Four machines or seven; or one that becomes four, seven, and some four of these.
fn draw_circles(rng: &mut Rng) -> Vec<BTreeSet<Node>> {
    match *rng.pick(&[4, 4, 4, 4, 4, 7, 7, 1, 1, 1, 1]) {
        1 => {
            let mut last: Vec<Node> = nodes(0..7).into_iter().collect();
            rng.shuffle(&mut last);
            last.truncate(4);
            vec![nodes(0..1), nodes(0..4), nodes(0..7), last.into_iter().collect()]
        }
        count => vec![nodes(0..count)],
    }
}

/// So many at the most: no circle has more liars than it bears. But who is alone at first may lie, as one of those who
/// are there later.
fn draw_liars(
    circles: &[BTreeSet<Node>],
    count: usize,
    rng: &mut Rng,
) -> BTreeMap<Node, (BTreeSet<Lie>, f64)> {
    let all: BTreeSet<Node> = circles.iter().flatten().copied().collect();
    let mut order: Vec<Node> = all.into_iter().collect();
    rng.shuffle(&mut order);
    let founder = Plan::founder(circles);
    if founder.is_some() && rng.chance(0.8) {
        order.sort_by_key(|node| founder != Some(*node));
    }
    let mut liars = BTreeSet::new();
    for node in order {
        let may_lie = circles
            .iter()
            .filter(|circle| circle.len() > 1 && circle.contains(&node))
            .all(|circle| circle.intersection(&liars).count() < liars_max(circle.len()));
        if may_lie && liars.len() < count {
            liars.insert(node);
        }
    }
    let liars = liars.into_iter().map(|node| {
        let mut lies: BTreeSet<Lie> = (0..=rng.index(4)).map(|_| *rng.pick(&Lie::ALL)).collect();
        if founder == Some(node) {
            for (lie, often) in [(Lie::Forge, 0.5), (Lie::Twins, 0.3)] {
                if rng.chance(often) {
                    lies.insert(lie);
                }
            }
        }
        (node, (lies, *rng.pick(&[0.05, 0.3, 1.0])))
    });
    liars.collect()
}

/// Now and then an honest one, if as many may be at fault: it never starts again, or it would be as good as new.
fn draw_drifter(
    circles: &[BTreeSet<Node>],
    liars: &BTreeMap<Node, (BTreeSet<Lie>, f64)>,
    faults: &Faults,
    rng: &mut Rng,
) -> Option<Node> {
    let [circle] = circles else { return None };
    let is_room = liars.len() < liars_max(circle.len()) && faults.crash_gap.is_zero();
    let honest: Vec<Node> =
        circle.iter().filter(|node| !liars.contains_key(node)).copied().collect();
    let drifter = *rng.pick(&honest);
    (is_room && rng.chance(0.5)).then_some(drifter)
}

fn draw_settings(rng: &mut Rng) -> Settings {
    let patience = Patience {
        propose: Duration::from_millis(100 + rng.below(200)),
        prevote: Duration::from_millis(50 + rng.below(100)),
        precommit: Duration::from_millis(50 + rng.below(100)),
        rebroadcast: Duration::from_millis(200 + rng.below(300)),
        growth: Duration::from_millis(20 + rng.below(80)),
        most: Duration::from_millis(1_000),
    };
    let checkpoint_every = *rng.pick(&[2, 5, 20, 50]);
    Settings {
        patience,
        doubt: Doubt::default(),
        repeat: Duration::from_millis(200 + rng.below(300)),
        batch_count_max: *rng.pick(&[7, 20, 100]),
        batch_bytes_max: 64 << 10,
        pending_count_max: *rng.pick(&[8, 64, 1_000]),
        pending_bytes_max: 1 << 20,
        recent_max: 2 * checkpoint_every as usize,
        recent_bytes_max: 1 << 20,
        checkpoint_every,
        state_bytes_max: 1 << 20,
        ..Settings::default()
    }
}
