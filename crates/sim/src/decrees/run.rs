//! One seed of the world of decrees: some are decided among faults, and when those are over everybody knows.

use std::rc::Rc;

use base::{Duration, Instant, PublicKey, Rng, SecretKey};
use overlay::{Decree, Issuer, IssuerRevocation, Revocation};

use crate::{Broken, Checker, Clock, Faults, Marks, Node, Outcome, Violation, World};

use super::{
    party::{Cast, Party, SECONDS},
    tamper::{Honest, Tamper},
};

/// What must have happened in a good number of seeds.
pub(crate) const MARKS: &[&str] = &[
    "news are passed on without a vote",
    "a member hears it from elsewhere",
    "the group refuses what a spent issuer says",
    "a greeting finds what one lacks",
    "a range is compared in parts",
    "the liar hears something",
    "whoever was a member first lies",
    "a machine is away until the end",
    "nothing goes wrong",
];

/// How long faults go on: longer than anybody is called who does not answer.
const FAULTS_SPAN: Duration = Duration::from_secs(1_200);
/// Within this all know that are there, if nothing goes wrong.
const PUSH_MAX: Duration = Duration::from_secs(10);
/// Within this all know when faults are over: some greetings, of which each meets one by chance.
const HEALED_MAX: Duration = Duration::from_secs(600);

/// Runs this seed of the world of decrees.
pub fn run(seed: u64) -> Outcome {
    run_tampered(seed, &Honest, 0)
}

/// Runs this seed again, and keeps the last things that happened in words.
pub fn explain(seed: u64, lines_max: usize) -> Outcome {
    run_tampered(seed, &Honest, lines_max)
}

pub(crate) fn run_tampered(seed: u64, tamper: &impl Tamper, lines_max: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng);
    let mut world = plan.build(&mut rng, tamper);
    if lines_max > 0 {
        world.keep_trace(lines_max);
    }
    let violation = play(&mut world, &plan, &mut rng).err();
    Outcome::of(&world, violation)
}

fn play<T: Tamper>(
    world: &mut World<Party<T>>,
    plan: &Plan,
    rng: &mut Rng,
) -> Result<(), Violation> {
    let mut judge = Judge { cast: Rc::clone(&plan.cast), allowed: plan.gone.clone() };
    world.run_until(Instant::from_secs(60), &mut judge)?;
    if let Some(away) = plan.away {
        world.crash(away, FAULTS_SPAN);
    }
    for decree in &plan.decrees {
        let by = Node(rng.below(plan.cast.members as u64) as u16);
        for member in (0..plan.cast.members as u16).map(Node) {
            // One has decided it for sure; the others may hear of it from elsewhere.
            let is_there = world.is_up(member) && !world.actor(member).is_liar();
            if is_there && (member == by || plan.is_calm || rng.chance(0.5)) {
                world.tell(member, |party, now, out| party.decide(now, decree.clone(), out));
            }
        }
        let next = world.now() + Duration::from_millis(rng.below(2_000));
        world.run_until(next, &mut judge)?;
    }
    // Somebody who is honest has decided everything, as a group that has a quorum has.
    let first = world
        .nodes()
        .take(plan.cast.members)
        .find(|node| !world.actor(*node).is_liar() && plan.away != Some(*node));
    let first = first.expect("the liar is one");
    for decree in &plan.decrees {
        world.tell(first, |party, now, out| party.decide(now, decree.clone(), out));
    }
    if plan.is_calm {
        world.run_until(world.now() + PUSH_MAX, &mut judge)?;
        judge.all_know(world, plan.away)?;
    }
    world.run_until(Instant::START + FAULTS_SPAN, &mut judge)?;
    world.heal();
    world.run_until(world.now() + HEALED_MAX, &mut judge)?;
    judge.all_know(world, None)
}

/// What a seed's world is like.
struct Plan {
    cast: Rc<Cast>,
    faults: Faults,
    is_calm: bool,
    /// The machine that lies.
    liar: Node,
    away: Option<Node>,
    decrees: Vec<Decree>,
    /// Whom they are about.
    gone: Vec<PublicKey>,
}

impl Plan {
    fn draw(rng: &mut Rng) -> Plan {
        let key = |number: u64| {
            let mut seed = [7; 32];
            seed[..8].copy_from_slice(&number.to_le_bytes());
            SecretKey::from_seed(seed)
        };
        let root = key(1_000_000);
        let (issuer, spent) = (Issuer::by(&root, key(1_000_001), 2 * SECONDS), key(1_000_002));
        let members = *rng.pick(&[1, 4, 4, 7]);
        let count = members + 1 + rng.index(6);
        let keys: Vec<PublicKey> = (0..count as u64).map(|number| key(number).public()).collect();
        // With one member that one is honest. Of several the first has made all others members.
        let liar = match *rng.pick(&[0, 1, 1, 2, 2, 2]) {
            0 if members > 1 => 0,
            1 if members > 1 => rng.index(members),
            _ => count - 1,
        };
        let mut gone = Vec::new();
        if liar >= members {
            gone.push(keys[liar]);
        }
        // Machines that have gone long before, now and then so many that they are compared in parts.
        let others = if rng.chance(0.15) { 100 + rng.below(60) } else { rng.below(3) };
        gone.extend((0..others).map(|number| key(2_000_000 + number).public()));
        let revoke = |by: &Issuer, key: &PublicKey| Decree::Revoke(Revocation::new(by, *key, 5));
        let mut decrees: Vec<Decree> = gone.iter().map(|key| revoke(&issuer, key)).collect();
        let end = IssuerRevocation::new(&root, spent.public(), 5);
        decrees.insert(0, Decree::RevokeIssuer(end));
        let victim = &keys[0];
        let stolen = Issuer::by(&root, spent.clone(), SECONDS / 2);
        let stranger = Issuer::by(&key(3_000_000), key(3_000_001), 2 * SECONDS);
        let forged = vec![revoke(&stranger, victim), revoke(&stolen, victim)];
        let is_calm = rng.chance(0.3);
        let faults = if is_calm { Faults::none() } else { Faults::draw(rng) };
        let away = rng.chance(0.6).then(|| Node(rng.index(count) as u16));
        let away = away.filter(|node| node.index() != liar && (members > 1 || node.index() > 0));
        let cast = Cast { root: root.public(), keys, members, forged, spent: spent.public() };
        let liar = Node(liar as u16);
        Plan { cast: Rc::new(cast), faults, is_calm, liar, away, decrees, gone }
    }

    fn build<T: Tamper>(&self, rng: &mut Rng, tamper: &T) -> World<Party<T>> {
        let nodes = (0..self.cast.keys.len() as u16).map(Node).map(|node| {
            let is_liar = node == self.liar;
            let party = Party::new(node, &self.cast, is_liar, rng.fork(), tamper.clone());
            (party, Clock::draw(&self.faults, rng))
        });
        let nodes = nodes.collect();
        let mut marks = Marks::new(MARKS);
        marks.pass_if(self.away.is_some(), "a machine is away until the end");
        marks.pass_if(self.is_calm, "nothing goes wrong");
        marks.pass_if(self.liar == Node(0), "whoever was a member first lies");
        World::new(self.faults, nodes, marks, rng)
    }
}

/// Nobody obeys what no issuer has said who may, and in the end all that are honest know everything.
struct Judge {
    cast: Rc<Cast>,
    /// Whom there are decrees about.
    allowed: Vec<PublicKey>,
}

impl Judge {
    fn all_know<T: Tamper>(
        &self,
        world: &World<Party<T>>,
        except: Option<Node>,
    ) -> Result<(), Violation> {
        for node in world.nodes().filter(|node| Some(*node) != except) {
            let party = world.actor(node);
            let is_gone = self.allowed.contains(&self.cast.key(node));
            let lacking = self.allowed.iter().find(|key| !party.is_revoked(key));
            if let (false, false, Some(key)) = (party.is_liar(), is_gone, lacking) {
                let what = format!("{node} has not heard that {key:?} was sent away");
                return Err(Violation { broken: Broken::new("inv-D1", what), at: world.now() });
            }
        }
        Ok(())
    }
}

impl<T: Tamper> Checker<Party<T>> for Judge {
    fn check(&mut self, world: &World<Party<T>>, actor: Node) -> Result<(), Broken> {
        let party = world.actor(actor);
        let wronged =
            self.cast.keys.iter().find(|key| party.is_revoked(key) && !self.allowed.contains(key));
        match wronged.filter(|_| !party.is_liar()) {
            Some(key) => {
                let what = format!("{actor} believes that {key:?} was sent away");
                Err(Broken::new("inv-D2", what))
            }
            None => Ok(()),
        }
    }
}
