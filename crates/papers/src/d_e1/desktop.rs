//! The generative model of a desktop namespace (data of Agrawal et al., FAST 2007).
//!
//! Directories are created one after another, each under a parent drawn with probability
//! proportional to its subdirectories so far plus two. Each directory gets a number of files drawn
//! from P(n) ~ 1/(n + offset)^2, n = 0, 1, … up to a maximum, whatever its depth.
//!
//! The model says nothing of names, and they decide the length of identifiers: old subdirectories
//! have by far the largest subtrees, so it matters that they get low numbers. [`Model::generate`]
//! keeps subdirectories in the order of their creation, in one run that starts at a fair place among
//! the directory's files. [`shuffle`] is the other extreme.
//!
//! A model with fewer directories and the same seed is the same namespace at an earlier time.

use base::Rng;

use super::namespace::{Builder, Namespace};

/// The model's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Directories, with the root.
    pub dirs: usize,
    /// The constant in the distribution of files per directory.
    pub offset: f64,
    /// No directory gets more files than this. It sets the mean, which would diverge without it.
    pub files_max: usize,
    /// Only so many directories, the oldest, have subdirectories: the fewer, the wider they are.
    pub parents_max: usize,
}

impl Model {
    /// The namespace of this seed.
    pub fn generate(&self, rng: &mut Rng) -> Namespace {
        let mut builder = Builder::new();
        attach(self.dirs, self.parents_max, &mut builder, &mut rng.fork());
        let cumulative = self.cumulative();
        let mut files = rng.fork();
        for dir in 0..self.dirs {
            for _ in 0..draw(&cumulative, &mut files) {
                builder.file(dir);
            }
        }
        let mut namespace = builder.finish();
        let mut places = rng.fork();
        namespace.rearrange(|children| {
            // So far the subdirectories stand before the files.
            let files = children.iter().filter(|child| child.is_file()).count();
            children.rotate_right(places.index(files + 1));
        });
        namespace
    }

    /// The running sums of the weights of 0, 1, … files.
    fn cumulative(&self) -> Vec<f64> {
        let mut sum = 0.0;
        let weight = |n: usize| 1.0 / (n as f64 + self.offset) / (n as f64 + self.offset);
        (0..=self.files_max)
            .map(weight)
            .map(|w| {
                sum += w;
                sum
            })
            .collect()
    }
}

/// Adds the directories that follow the root.
fn attach(dirs: usize, parents_max: usize, builder: &mut Builder, rng: &mut Rng) {
    let mut parents = vec![0];
    for dir in 1..dirs.min(parents_max) {
        // Weights of the `dir` directories so far: two for each of them, and one more for each time
        // that one became a parent. So either any of them, or the parent of any but the root.
        let ticket = rng.index(2 * dir + (dir - 1));
        let parent = if ticket < 2 * dir { ticket / 2 } else { parents[ticket - 2 * dir + 1] };
        parents.push(parent);
        builder.dir(parent);
    }
    for _ in parents_max..dirs {
        builder.dir(rng.index(parents_max));
    }
}

/// Gives everything a random name: the children of each directory stand in a fair order.
pub fn shuffle(namespace: &mut Namespace, rng: &mut Rng) {
    namespace.rearrange(|children| rng.shuffle(children));
}

fn draw(cumulative: &[f64], rng: &mut Rng) -> usize {
    let total = cumulative.last().expect("zero files is always possible");
    let ticket = rng.unit() * total;
    cumulative.partition_point(|&sum| sum <= ticket).min(cumulative.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::super::namespace::Order;
    use super::*;

    const MODEL: Model =
        Model { dirs: 20_000, offset: 2.36, files_max: 1_000, parents_max: usize::MAX };

    #[test]
    fn a_seed_is_a_namespace() {
        let [a, b, c] = [1, 1, 2].map(|seed| MODEL.generate(&mut Rng::new(seed)));
        assert_eq!(a, b);
        assert_ne!(a, c);
        assert_eq!(a.dir_count(), 20_000);
    }

    #[test]
    fn files_per_directory_follow_their_distribution() {
        let namespace = MODEL.generate(&mut Rng::new(1));
        let mut counts = vec![0u32; 1_001];
        for dir in 0..namespace.dir_count() {
            let files = namespace.numbered(dir, Order::Name).filter(|(_, c)| c.is_file()).count();
            counts[files] += 1;
        }
        // 1/2.36^2, 1/3.36^2 and 1/4.36^2 of 0.5258, the sum of all weights.
        let shares = [0, 1, 2].map(|n| f64::from(counts[n]) / 20_000.0);
        for (share, expected) in shares.iter().zip([0.3415, 0.1685, 0.1000]) {
            assert!((share - expected).abs() < 0.01, "{shares:?}");
        }
    }

    #[test]
    fn parents_are_drawn_by_their_subdirectories() {
        let namespace = MODEL.generate(&mut Rng::new(1));
        let subdirs =
            |dir| namespace.numbered(dir, Order::Name).filter(|(_, c)| !c.is_file()).count();
        let counts: Vec<usize> = (0..namespace.dir_count()).map(subdirs).collect();
        // With weights d + 2 the share without subdirectories tends to 3/5; it would be 1/2 if all
        // parents were equally likely.
        let leaves = counts.iter().filter(|&&count| count == 0).count() as f64 / 20_000.0;
        assert!((leaves - 0.6).abs() < 0.01, "{leaves}");
    }

    #[test]
    fn subdirectories_stand_together_in_the_order_of_their_creation() {
        let namespace = MODEL.generate(&mut Rng::new(1));
        for dir in 0..namespace.dir_count() {
            let dirs: Vec<(u64, usize)> = namespace
                .numbered(dir, Order::Name)
                .filter_map(|(number, child)| Some((number.get(), child.dir()?)))
                .collect();
            assert!(dirs.windows(2).all(|w| w[0].0 + 1 == w[1].0 && w[0].1 < w[1].1));
        }
    }

    #[test]
    fn fewer_parents_are_wider() {
        let wide = Model { parents_max: 100, ..MODEL }.generate(&mut Rng::new(1));
        let subdirs =
            |dir| wide.numbered(dir, Order::Name).filter(|(_, child)| !child.is_file()).count();
        assert_eq!(wide.dir_count(), 20_000);
        assert!((0..100).all(|dir| subdirs(dir) > 100));
        assert!((100..20_000).all(|dir| subdirs(dir) == 0));
    }

    #[test]
    fn fewer_directories_are_an_earlier_time() {
        let young = Model { dirs: 2_000, ..MODEL }.generate(&mut Rng::new(1));
        let old = MODEL.generate(&mut Rng::new(1));
        let files = |namespace: &Namespace, dir| {
            namespace.numbered(dir, Order::Name).filter(|(_, child)| child.is_file()).count()
        };
        let dirs = |namespace: &Namespace, dir| -> Vec<usize> {
            namespace.numbered(dir, Order::Name).filter_map(|(_, child)| child.dir()).collect()
        };
        for dir in 0..2_000 {
            assert_eq!(files(&young, dir), files(&old, dir));
            assert!(dirs(&old, dir).starts_with(&dirs(&young, dir)));
        }
    }
}
