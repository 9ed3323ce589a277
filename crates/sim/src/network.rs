//! Links between nodes: slow, lossy, out of order, and now and then cut.

use base::{Duration, Rng};

use crate::{Faults, Node, faults::draw_span};

/// The state of every link. A link has a direction.
#[derive(Debug)]
pub(crate) struct Network {
    nodes: usize,
    /// How long each link takes when nothing is wrong.
    latency: Vec<Duration>,
    /// How many of the present splits cut each link.
    cuts: Vec<u16>,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The link is cut.
    Cut,
    /// It is lost on the way.
    Lost,
    /// It arrives after this time.
    Once(Duration),
    /// It arrives after each of these times.
    Twice(Duration, Duration),
}

/// Links that fail together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// The nodes on one side.
    side: Vec<bool>,
    /// Nothing passes from this side to the other.
    outward: bool,
    /// Nothing passes from the other side to this.
    inward: bool,
}

impl Network {
    pub(crate) fn new(nodes: usize, faults: &Faults, rng: &mut Rng) -> Network {
        let spread = faults.latency_max.saturating_sub(faults.latency_min);
        let latency = (0..nodes * nodes).map(|_| {
            let extra = if spread.is_zero() { spread } else { draw_span(rng, spread) };
            faults.latency_min + extra
        });
        Network { nodes, latency: latency.collect(), cuts: vec![0; nodes * nodes] }
    }

    pub(crate) fn fate(&self, from: Node, to: Node, faults: &Faults, rng: &mut Rng) -> Fate {
        let link = from.index() * self.nodes + to.index();
        if self.cuts[link] > 0 {
            return Fate::Cut;
        }
        if rng.chance(faults.loss) {
            return Fate::Lost;
        }
        let first = self.draw_time(link, faults, rng);
        match rng.chance(faults.twice) {
            true => Fate::Twice(first, self.draw_time(link, faults, rng)),
            false => Fate::Once(first),
        }
    }

    fn draw_time(&self, link: usize, faults: &Faults, rng: &mut Rng) -> Duration {
        let usual = self.latency[link];
        let usual = match faults.jitter {
            0.0 => usual,
            jitter => usual + usual.mul_f64(jitter * rng.unit()),
        };
        match rng.chance(faults.late) {
            true => usual + draw_span(rng, faults.late_max),
            false => usual,
        }
    }

    /// Some nodes on one side, one or both directions.
    pub(crate) fn draw_split(&self, rng: &mut Rng) -> Split {
        let loner = rng.index(self.nodes);
        let is_loner = rng.chance(0.5);
        let side =
            (0..self.nodes).map(|node| if is_loner { node == loner } else { rng.chance(0.5) });
        let side = side.collect();
        let (outward, inward) = *rng.pick(&[(true, true), (true, false), (false, true)]);
        Split { side, outward, inward }
    }

    pub(crate) fn cut(&mut self, split: &Split) {
        self.each_cut(split, |cuts| *cuts += 1);
    }

    pub(crate) fn mend(&mut self, split: &Split) {
        self.each_cut(split, |cuts| *cuts -= 1);
    }

    /// Ends every split at once. Those splits must not be mended again.
    pub(crate) fn mend_all(&mut self) {
        self.cuts.fill(0);
    }

    fn each_cut(&mut self, split: &Split, change: impl Fn(&mut u16)) {
        for from in 0..self.nodes {
            for to in 0..self.nodes {
                let is_outward = split.side[from] && !split.side[to] && split.outward;
                let is_inward = !split.side[from] && split.side[to] && split.inward;
                if is_outward || is_inward {
                    change(&mut self.cuts[from * self.nodes + to]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Node = Node(0);
    const B: Node = Node(1);
    const C: Node = Node(2);

    #[test]
    fn without_faults_a_message_arrives_once_and_in_order() {
        let mut rng = Rng::new(1);
        let network = Network::new(2, &Faults::none(), &mut rng);
        for _ in 0..100 {
            let fate = network.fate(A, B, &Faults::none(), &mut rng);
            assert_eq!(fate, Fate::Once(Duration::from_millis(1)));
        }
    }

    #[test]
    fn messages_are_lost_repeated_and_late_as_often_as_told() {
        let mut rng = Rng::new(2);
        let faults = Faults {
            loss: 0.2,
            twice: 0.1,
            late: 0.05,
            late_max: Duration::from_secs(10),
            ..Faults::none()
        };
        let network = Network::new(2, &faults, &mut rng);
        let (mut lost, mut twice, mut late) = (0, 0, 0);
        for _ in 0..10_000 {
            match network.fate(A, B, &faults, &mut rng) {
                Fate::Lost => lost += 1,
                Fate::Twice(..) => twice += 1,
                Fate::Once(time) => late += u32::from(time > Duration::from_millis(5)),
                Fate::Cut => panic!("nothing is cut"),
            }
        }
        assert!((1_850..2_150).contains(&lost), "{lost}");
        assert!((700..900).contains(&twice), "{twice}");
        assert!((300..420).contains(&late), "{late}");
    }

    #[test]
    fn a_split_cuts_the_directions_it_says_and_heals() {
        let mut rng = Rng::new(3);
        let mut network = Network::new(3, &Faults::none(), &mut rng);
        let side = vec![true, false, false];
        let both = Split { side: side.clone(), outward: true, inward: true };
        let inward = Split { side, outward: false, inward: true };
        let mut is_cut = |network: &Network, from, to| {
            network.fate(from, to, &Faults::none(), &mut rng) == Fate::Cut
        };
        network.cut(&inward);
        assert!(is_cut(&network, B, A) && !is_cut(&network, A, B) && !is_cut(&network, B, C));
        network.cut(&both);
        assert!(is_cut(&network, B, A) && is_cut(&network, A, B) && !is_cut(&network, C, B));
        network.mend(&inward);
        assert!(is_cut(&network, B, A), "the other split goes on");
        network.mend(&both);
        assert!(!is_cut(&network, B, A) && !is_cut(&network, A, B));
    }
}
