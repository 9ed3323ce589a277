//! k-Choices against every scheme under which positions can be verified, over several networks, and what becomes
//! of the place that is asked for most.

use overlay::{Balance, Policy, Position};

use crate::{
    Failure, Trial,
    swarm::{
        course::{Course, SAMPLE},
        crew::{self, Progress},
        network::{MachineId, Network, ServerId},
        scheme::Contender,
        tally::{Tally, spread},
    },
};

/// κ of the product, and of the paper's figure 13.
const CHOICES: [u32; 2] = [8, 16];
/// Schemes under which a machine can still prove that it may stand where it stands.
const VERIFIABLE: [Contender; 3] = [Contender::None, Contender::LogN, Contender::Proportion];

/// One scheme in one network.
struct Heat {
    /// Counted from 1.
    network: usize,
    name: String,
    course: Course,
    contender: Contender,
}

/// What came out in the second half.
struct Outcome {
    success: f64,
    /// In the order of [`SPOTS`].
    hot: [Hot; 2],
}

/// Where the first place is: on the server that is responsible for it, and on the one before it, through which
/// nearly all who ask for it come.
#[derive(Clone, Copy)]
enum Spot {
    First,
    BeforeFirst,
}

/// The names of spots in rows, in their order.
const SPOTS: [(&str, Spot); 2] = [("first", Spot::First), ("before-first", Spot::BeforeFirst)];

/// How often, of all looks, the machine of a spot had too much to do.
#[derive(Default)]
struct Hot {
    looks: u32,
    overloaded: u32,
    /// Of these: a machine that can do all of it has a position from which the work would be its own.
    able_between: u32,
    /// Of these: k-Choices takes the server elsewhere at the next check.
    may_go: u32,
    /// Of these: neither.
    stuck: u32,
    /// Of those that are stuck: what the next machine can do against what this one can.
    next_to_own: Vec<f64>,
}

/// Measures both.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let trace = Course::trace(trial).with_skew(trial.constant("skew"));
    let mut rng = trial.rng();
    let mut heats = Vec::new();
    let networks = trial.constant("networks") as usize;
    for network in 1..=networks {
        let course = trace.with_seed(rng.next_u64());
        let heat = |name: String, contender| Heat { network, name, course, contender };
        heats.extend(VERIFIABLE.map(|contender| heat(contender.name().into(), contender)));
        heats.extend(CHOICES.map(|k| heat(format!("farsighted-{k}"), Contender::farsighted(k))));
        heats.extend(CHOICES.map(|k| heat(format!("active-{k}"), Contender::active(k))));
    }
    let outcomes = crew::all(trial, &heats, measure);
    for (heat, Outcome { success, hot }) in heats.iter().zip(&outcomes) {
        let name = format!("network-{}/{}", heat.network, heat.name);
        trial.number(format!("{name}/success"), *success);
        for ((spot, _), hot) in SPOTS.iter().zip(hot) {
            trial.number(format!("{name}/{spot}-overloaded"), part(hot.overloaded, hot.looks));
        }
    }
    let per_network = heats.len() / networks.max(1);
    let policies = &heats[VERIFIABLE.len()..per_network];
    for (at, Heat { name, .. }) in (VERIFIABLE.len()..).zip(policies) {
        let leads = outcomes.chunks(per_network).map(|network| {
            let verifiable = network[..VERIFIABLE.len()].iter();
            network[at].success - verifiable.map(|outcome| outcome.success).fold(0.0, f64::max)
        });
        let leads: Vec<f64> = leads.collect();
        let ahead = leads.iter().filter(|lead| **lead > 0.0).count();
        trial.number(format!("{name}/networks-ahead"), ahead as f64);
        trial.number(format!("{name}/lead"), spread(&leads).0);
        trial.truth(format!("{name}/ahead-in-every-network"), ahead == networks);
        trial.truth(format!("{name}/ahead-in-most-networks"), 2 * ahead > networks);
        trial.truth(format!("{name}/ahead-in-the-mean"), spread(&leads).0 > 0.0);
        for (spot, (spot_name, _)) in SPOTS.iter().enumerate() {
            let all = outcomes.chunks(per_network).map(|all| &all[at].hot[spot]);
            note(trial, &format!("{name}/{spot_name}"), &all.collect::<Vec<_>>());
        }
    }
    Ok(())
}

/// Tells of one spot in all networks.
fn note(trial: &mut Trial, name: &str, all: &[&Hot]) {
    let sum = |count: fn(&Hot) -> u32| all.iter().map(|hot| count(hot)).sum::<u32>();
    let overloaded = sum(|hot| hot.overloaded);
    trial.number(format!("{name}/overloaded"), part(overloaded, sum(|hot| hot.looks)));
    let of_these = |count| part(sum(count), overloaded);
    trial.number(format!("{name}/of-these-able-between"), of_these(|hot| hot.able_between));
    trial.number(format!("{name}/of-these-may-go"), of_these(|hot| hot.may_go));
    trial.number(format!("{name}/of-these-stuck"), of_these(|hot| hot.stuck));
    let ratios: Vec<f64> = all.iter().flat_map(|hot| hot.next_to_own.iter().copied()).collect();
    trial.number(format!("{name}/stuck/next-to-own-capacity"), spread(&ratios).0);
}

fn part(count: u32, of: u32) -> f64 {
    f64::from(count) / f64::from(of.max(1))
}

fn measure(heat: &Heat, progress: &Progress) -> Outcome {
    let Heat { network, name, course, contender } = heat;
    progress.say(format!("network {network}: {name} begins"));
    let policy = match contender {
        Contender::KChoices(policy) => *policy,
        _ => Policy::default(),
    };
    let mut world = course.begin(contender.scheme(course.machines));
    world.run(course.seconds / 2);
    let (mut total, mut hot) = (Tally::default(), <[Hot; 2]>::default());
    for _ in 0..(course.seconds / 2 / SAMPLE).max(1) {
        total += world.run(SAMPLE);
        if let Some(first) = world.popularity.places().first() {
            for (hot, (_, spot)) in hot.iter_mut().zip(SPOTS) {
                hot.look(&mut world.network, &policy, *first, spot);
            }
        }
    }
    progress.say(format!("network {network}: {name}: {:.3} of queries answered", total.success()));
    Outcome { success: total.success(), hot }
}

impl Hot {
    fn look(&mut self, network: &mut Network, policy: &Policy, place: Position, spot: Spot) {
        self.looks += 1;
        let found = match spot {
            Spot::First => network.ring().at_or_after(place),
            Spot::BeforeFirst => network.ring().before(place),
        };
        let Some((position, server)) = found else { return };
        // Whoever stands between these has the work of the spot.
        let between = match spot {
            Spot::First => (place, position),
            Spot::BeforeFirst => (position.on(1), place),
        };
        let owner = network.owner(server);
        let standing = network.standing(policy, owner);
        if policy.balance(&standing) != Balance::Over {
            return;
        }
        self.overloaded += 1;
        let is_able_between = is_able_between(network, policy, between, server);
        let may_go = may_go(network, policy, owner, server);
        self.able_between += u32::from(is_able_between);
        self.may_go += u32::from(may_go);
        if !is_able_between && !may_go {
            self.stuck += 1;
            let next = network.ring().after(network.server(server).position);
            if let Some((_, next)) = next {
                let next = network.machine(network.owner(next)).capacity;
                self.next_to_own.push(next / standing.capacity);
            }
        }
    }
}

/// Whether a machine that could do all of a server's work beside its own has a position from the first of these
/// points on and before the second.
fn is_able_between(
    network: &mut Network,
    policy: &Policy,
    (from, to): (Position, Position),
    server: ServerId,
) -> bool {
    let (reach, work, owner) = (from.to(to), network.work(server), network.owner(server));
    (0..network.alive().len()).any(|at| {
        let machine = network.alive()[at];
        let standing = network.standing(policy, machine).with(work);
        machine != owner
            && standing.utilisation() <= policy.upper
            && (0..policy.choices).any(|index| from.to(network.position(machine, index)) < reach)
    })
}

/// Whether k-Choices would take this server elsewhere.
fn may_go(network: &mut Network, policy: &Policy, owner: MachineId, server: ServerId) -> bool {
    let (position, load) = (network.server(server).position, network.load(server));
    let Some(hole) = network.gap(policy, owner, position) else { return false };
    let going = policy.departure(position, load, &hole);
    let mut offers = Vec::new();
    for index in 0..policy.choices {
        let free = network.position(owner, index);
        if network.ring().get(free).is_none()
            && let Some(gap) = network.gap(policy, owner, free)
        {
            let going = Some((position, load, &hole));
            offers.push((index, policy.arrival(free, gap, going)));
        }
    }
    policy.choose_move(network.standing(policy, owner), &going, offers).is_some()
}

#[cfg(test)]
mod tests {
    use overlay::Load;

    use super::*;
    use crate::{find, swarm::network::Wiring};

    #[test]
    fn a_small_run_measures_every_network_and_is_the_same_each_time() {
        let run = || find("K-E19").unwrap().run(0.02, &mut |_| ()).unwrap();
        let report = run();
        assert!(report.rows.iter().all(|row| row.ours.is_some()), "{report}");
        assert_eq!(report.to_json(), run().to_json());
    }

    /// A machine with four times what it can do, the next one right behind it, and one without work everywhere
    /// else.
    fn network(next_capacity: f64) -> (Network, ServerId) {
        let mut network = Network::new(Wiring::default(), 1);
        let [full, next, idle] = [100.0, next_capacity, 10.0].map(|c| network.arrive(c));
        let here = network.position(full, 0);
        let nothing = Load::default();
        let server = network.stand(full, here, Some(0), nothing).unwrap();
        network.stand(next, here.on(1), Option::None, nothing).unwrap();
        network.stand(idle, Position(here.0.wrapping_sub(1)), Option::None, nothing).unwrap();
        network.shift_work(server, 400.0);
        (network, server)
    }

    #[test]
    fn who_has_too_much_may_go_only_if_the_next_can_do_more() {
        let policy = Policy::default();
        for (capacity, expected) in [(50.0, false), (10_000.0, true)] {
            let (mut network, server) = network(capacity);
            let owner = network.owner(server);
            assert_eq!(may_go(&mut network, &policy, owner, server), expected, "{capacity}");
        }
    }

    #[test]
    fn who_could_do_it_helps_only_with_a_position_in_between() {
        let policy = Policy::default();
        let (mut network, server) = network(10_000.0);
        let here = network.server(server).position;
        let nearest = (0..8).map(|index| network.position(1, index).to(here)).min().unwrap();
        for (reach, expected) in [(nearest / 2, false), (nearest + 1, true)] {
            let place = Position(here.0.wrapping_sub(reach));
            assert_eq!(is_able_between(&mut network, &policy, (place, here), server), expected);
        }
    }
}
