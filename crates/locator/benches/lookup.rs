//! What it costs to find the group of a path among 100 groups and 10 million paths, and the room it takes.
//!
//! `cargo bench -p locator`. The figures that matter are ratios within one run. `table` is the baseline: a
//! hash table that knows the group of each print, with one slot to look at in nearly all cases; nobody
//! could keep it, at 27 bytes a file on each machine. All hash the path first. `recent` are paths that the
//! first level knows, `all` paths that only the second does, `absent` paths that nobody has. The name of a
//! line tells the room: what the second level takes, and what the formula of its filter says.

use std::{cell::OnceCell, fmt, rc::Rc};

use base::{Instant, Machine, Rng};
use divan::{Bencher, black_box, counter::ItemsCount};
use locator::{
    Array, Bounds, Found, Group, Home, Print, Salt, Sizing,
    home::{Input, Kind, Output, Settings, Threshold},
};

fn main() {
    divan::main();
}

const GROUPS: u64 = 100;
const FILES: u64 = 10_000_000;
/// Paths of the first level, of each group.
const RECENT: u64 = 1_600;
const PROBES: usize = 100_000;

/// About as long as paths are.
fn path(number: u64) -> String {
    let (a, b, c) = (number % 97, number / 97 % 1_009, number / 97 / 1_009);
    format!("/projects/{a:02}/sources/{b:04}/module-{c:04}/file-{number:08}.rs")
}

fn home(number: u64) -> u32 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 % GROUPS as u32
}

/// Paths to look for, chosen by chance from these numbers.
fn probes(range: std::ops::Range<u64>) -> Vec<String> {
    let mut rng = Rng::new(1);
    let number = |rng: &mut Rng| range.start + rng.below(range.end - range.start);
    (0..PROBES).map(|_| path(number(&mut rng))).collect()
}

/// Where each path is, by its print: open addressing, six of ten slots taken.
struct Table {
    salt: Salt,
    slots: Vec<(u64, u32)>,
}

impl Table {
    fn new() -> Table {
        let mut table = Table { salt: Salt::new([1; 16]), slots: vec![(0, u32::MAX); 1 << 24] };
        for number in 0..FILES {
            let word = table.word(&path(number));
            let at = table.slot(word);
            table.slots[at] = (word, home(number));
        }
        table
    }

    fn word(&self, path: &str) -> u64 {
        Print::of(&self.salt, path.as_bytes()).words().0
    }

    fn slot(&self, word: u64) -> usize {
        let mut at = (word >> 40) as usize;
        while self.slots[at].1 != u32::MAX && self.slots[at].0 != word {
            at = (at + 1) % self.slots.len();
        }
        at
    }

    fn look_up(&self, path: &str) -> u32 {
        self.slots[self.slot(self.word(path))].1
    }
}

struct World {
    salt: Salt,
    array: Array,
    /// Bytes that the filter's formula says.
    formula: f64,
}

impl World {
    fn new(kind: Kind) -> World {
        let salt = Salt::new([1; 16]);
        let mut prints: Vec<Vec<Print>> = (0..GROUPS).map(|_| Vec::new()).collect();
        for number in 0..FILES {
            let print = Print::of(&salt, path(number).as_bytes());
            prints[home(number) as usize].push(print);
        }
        let mut array = Array::new(Bounds::default());
        let (recent, threshold) = (Sizing::fixed(RECENT), Threshold(0));
        let settings = Settings { kind, recent, threshold, ..Settings::default() };
        for (number, prints) in (0..).zip(prints) {
            let group = Group(number);
            array.join(group);
            let mut out = Vec::new();
            let used: Vec<Print> = prints[..RECENT as usize].to_vec();
            let mut home = Home::new(settings, prints, 0, &mut out);
            for print in used {
                home.step(Instant::START, Input::Used { print, found: Found::Walk }, &mut out);
            }
            for output in out {
                let (Output::Publish(update) | Output::Answer(update)) = output;
                array.hear(group, &update).expect("it is honest");
            }
        }
        let bits = match kind {
            Kind::Bloom { bits_per_file } => f64::from(bits_per_file),
            // 8 (0.77 + 0.305 ln 600,000 / ln n) at n files a group, and 16 bits for one in 32.
            Kind::Fuse => {
                let files = FILES as f64 / GROUPS as f64;
                8.0 * (0.77 + 0.305 * 600_000f64.ln() / files.ln()) + 0.5
            }
        };
        World { salt, array, formula: bits * FILES as f64 / 8.0 }
    }
}

thread_local! {
    static TABLE: OnceCell<Rc<Table>> = const { OnceCell::new() };
    static FUSE: OnceCell<Rc<World>> = const { OnceCell::new() };
    static BLOOM: OnceCell<Rc<World>> = const { OnceCell::new() };
}

#[derive(Clone, Copy)]
enum Level {
    Fuse,
    Bloom,
}

impl Level {
    fn world(self) -> Rc<World> {
        let (cell, kind) = match self {
            Level::Fuse => (&FUSE, Kind::Fuse),
            Level::Bloom => (&BLOOM, Kind::Bloom { bits_per_file: 8 }),
        };
        cell.with(|cell| cell.get_or_init(|| Rc::new(World::new(kind))).clone())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world();
        let name = match self {
            Level::Fuse => "fuse",
            Level::Bloom => "bloom",
        };
        let (_, bytes) = world.array.bytes();
        let (ours, formula) = (bytes as f64 / 1e6, world.formula / 1e6);
        write!(f, "{name} {ours:.1} MB (formula {formula:.1})")
    }
}

const LEVELS: [Level; 2] = [Level::Fuse, Level::Bloom];

fn bench(bencher: Bencher, paths: &[String], look_up: impl Fn(&str) -> u64) {
    bencher
        .counter(ItemsCount::new(PROBES))
        .bench_local(|| paths.iter().map(|path| look_up(black_box(path))).sum::<u64>());
}

/// The path is made to depend on the answer before, so that no two look-ups run at once.
fn bench_one_by_one(bencher: Bencher, paths: &[String], look_up: impl Fn(&str) -> u64) {
    bencher.counter(ItemsCount::new(PROBES)).bench_local(|| {
        let next = |sum: u64, at: usize| sum + look_up(&paths[at ^ (sum >> 63) as usize]);
        (0..PROBES).fold(0, next)
    });
}

fn in_world(world: &World) -> impl Fn(&str) -> u64 {
    |path| {
        let print = Print::of(&world.salt, path.as_bytes());
        world.array.look_up(print).group().map_or(u64::from(u32::MAX), |group| group.0.into())
    }
}

fn table() -> Rc<Table> {
    TABLE.with(|cell| cell.get_or_init(|| Rc::new(Table::new())).clone())
}

#[divan::bench]
fn table_all(bencher: Bencher) {
    let table = table();
    bench(bencher, &probes(0..FILES), |path| table.look_up(path).into());
}

#[divan::bench(args = LEVELS)]
fn all(bencher: Bencher, level: Level) {
    bench(bencher, &probes(0..FILES), in_world(&level.world()));
}

#[divan::bench]
fn table_all_one_by_one(bencher: Bencher) {
    let table = table();
    bench_one_by_one(bencher, &probes(0..FILES), |path| table.look_up(path).into());
}

#[divan::bench(args = LEVELS)]
fn all_one_by_one(bencher: Bencher, level: Level) {
    bench_one_by_one(bencher, &probes(0..FILES), in_world(&level.world()));
}

#[divan::bench(args = LEVELS)]
fn recent(bencher: Bencher, level: Level) {
    bench(bencher, &probes(0..GROUPS * RECENT / 2), in_world(&level.world()));
}

#[divan::bench(args = LEVELS)]
fn absent(bencher: Bencher, level: Level) {
    bench(bencher, &probes(FILES..2 * FILES), in_world(&level.world()));
}
