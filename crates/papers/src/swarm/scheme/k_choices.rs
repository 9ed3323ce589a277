//! k-Choices: the product's own policy, with a ring to look at instead of neighbours to ask.

use base::Rng;
use overlay::{Exchange, Joining, Policy, Restless, Step};

use super::{Scheme, stand_first};
use crate::swarm::network::{MachineId, Network, ServerId};

/// The policy, and what each machine remembers.
pub struct KChoices {
    policy: Policy,
    /// By machine.
    restless: Vec<Restless>,
    /// Room for offers, used again and again.
    offers: Vec<(u32, Exchange)>,
    /// Counts of what each class of machines has done; see [`KChoices::on_action`].
    listener: Option<Listener>,
    /// See [`KChoices::counting_moves`].
    counts_moves: bool,
}

/// What a machine has done of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Made a server.
    Create,
    /// Done without one.
    Destroy,
    /// Taken one elsewhere.
    Move,
}

type Listener = Box<dyn FnMut(&Network, MachineId, Action) + Send>;

impl KChoices {
    /// Balances by this policy.
    pub fn new(policy: Policy) -> KChoices {
        KChoices {
            policy,
            restless: Vec::new(),
            offers: Vec::new(),
            listener: None,
            counts_moves: false,
        }
    }

    /// Tells somebody of each action, for tables by class of capacity.
    pub fn on_action(
        mut self,
        listener: impl FnMut(&Network, MachineId, Action) + Send + 'static,
    ) -> KChoices {
        self.listener = Some(Box::new(listener));
        self
    }

    /// K8 to the letter: a machine makes or gives up a server after more *moves* than it has servers. The product
    /// counts checks, whether a move came of them or not.
    pub fn counting_moves(self) -> KChoices {
        KChoices { counts_moves: true, ..self }
    }

    fn tell(&mut self, network: &Network, machine: MachineId, action: Action) {
        if let Some(listener) = &mut self.listener {
            listener(network, machine, action);
        }
    }

    /// What would change hands at each free position of a machine, on the ring as it is without one of its
    /// servers if one is to go.
    fn survey(&mut self, network: &mut Network, machine: MachineId, going: Option<ServerId>) {
        self.offers.clear();
        let hole = going.and_then(|server| {
            let position = network.server(server).position;
            let gap = network.gap(&self.policy, machine, position)?;
            Some((position, network.load(server), gap))
        });
        for index in 0..self.policy.choices {
            let position = network.position(machine, index);
            if network.ring().get(position).is_some() {
                continue;
            }
            let Some(gap) = network.gap(&self.policy, machine, position) else { continue };
            let going = hole.as_ref().map(|(from, load, hole)| (*from, *load, hole));
            self.offers.push((index, self.policy.arrival(position, gap, going)));
        }
    }

    fn going(&self, network: &Network, machine: MachineId, server: ServerId) -> Option<Exchange> {
        let position = network.server(server).position;
        let gap = network.gap(&self.policy, machine, position)?;
        Some(self.policy.departure(position, network.load(server), &gap))
    }

    fn create(&mut self, network: &mut Network, machine: MachineId) {
        self.survey(network, machine, None);
        let standing = network.standing(&self.policy, machine);
        let offers = self.offers.iter().copied();
        let Some(choice) = self.policy.choose_join(standing, offers) else { return };
        let position = network.position(machine, choice.index);
        if network.stand(machine, position, Some(choice.index), choice.load).is_some() {
            network.tally.creates += 1;
            self.tell(network, machine, Action::Create);
        }
    }

    fn destroy(&mut self, network: &mut Network, machine: MachineId) {
        let servers = network.machine(machine).servers.iter();
        let offers = servers.filter_map(|server| {
            Some((network.index(*server)?, self.going(network, machine, *server)?))
        });
        let standing = network.standing(&self.policy, machine);
        let Some(choice) = self.policy.choose_destroy(standing, offers) else { return };
        if let Some(server) = server_at(network, machine, choice.index) {
            network.leave_apart(server, self.policy.seen(network.load(server)));
            network.tally.destroys += 1;
            self.tell(network, machine, Action::Destroy);
        }
    }

    /// Takes a server elsewhere if that gains enough; whether it did.
    fn relocate(&mut self, network: &mut Network, machine: MachineId, server: ServerId) -> bool {
        let Some(going) = self.going(network, machine, server) else { return false };
        self.survey(network, machine, Some(server));
        let standing = network.standing(&self.policy, machine);
        let offers = self.offers.iter().copied();
        let Some(choice) = self.policy.choose_move(standing, &going, offers) else { return false };
        let position = network.position(machine, choice.index);
        network.leave_apart(server, self.policy.seen(network.load(server)));
        let stood = network.stand(machine, position, Some(choice.index), choice.load);
        assert!(stood.is_some(), "a free position was offered");
        network.tally.moves += 1;
        self.tell(network, machine, Action::Move);
        true
    }
}

fn server_at(network: &Network, machine: MachineId, index: u32) -> Option<ServerId> {
    let mut servers = network.machine(machine).servers.iter().copied();
    servers.find(|server| network.index(*server) == Some(index))
}

impl Scheme for KChoices {
    fn join(&mut self, network: &mut Network, machine: MachineId, is_active: bool, _: &mut Rng) {
        if !is_active || self.policy.choices < 2 {
            stand_first(network, machine, 1);
            return;
        }
        let mut joining = Joining::new(&self.policy, network.machine(machine).capacity);
        while let Some(standing) = joining.next() {
            self.survey(network, machine, None);
            let offers = self.offers.iter().copied();
            let Some(choice) = self.policy.choose_join(standing, offers) else { break };
            let position = network.position(machine, choice.index);
            network.stand(machine, position, Some(choice.index), choice.load);
            joining.joined(choice.load.work);
        }
    }

    fn check(&mut self, network: &mut Network, machine: MachineId, _: &mut Rng) {
        let at = machine as usize;
        if self.restless.len() <= at {
            self.restless.resize(at + 1, Restless::default());
        }
        let standing = network.standing(&self.policy, machine);
        let count = network.machine(machine).servers.len() as u32;
        let before = self.restless[at];
        match self.restless[at].check(&self.policy, &standing, count) {
            Step::Rest => {}
            Step::Create => self.create(network, machine),
            Step::Destroy => self.destroy(network, machine),
            Step::Move(pick) => {
                let servers = network.machine(machine).servers.iter();
                let works = servers.filter_map(|s| Some((network.index(*s)?, network.work(*s))));
                let picked = pick.choose(works);
                let server = picked.and_then(|index| server_at(network, machine, index));
                let has_moved =
                    server.is_some_and(|server| self.relocate(network, machine, server));
                if self.counts_moves && !has_moved {
                    self.restless[at] = before;
                }
            }
        }
    }
}
