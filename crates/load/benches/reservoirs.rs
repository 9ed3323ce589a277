//! What a push and a pop cost in each reservoir, meters included, beside bare collections.
//!
//! `cargo bench -p load`. The figures that matter are ratios within one run: queues against a
//! `VecDeque`, and what finds things by key against a `BTreeMap`, which is the least that any of that
//! kind must do. A fair queue is both: it finds each source by key. Each line is a burst of a thousand
//! pushes and then a thousand pops.

use std::collections::{BTreeMap, VecDeque};

use base::{Duration, Instant, Machine};
use divan::{Bencher, black_box};
use load::{
    Spec,
    pager::{Input, Output, Pager, Token},
    reservoir::{Cache, Fair, Marks, Outstanding, Ranks, Releasing, Shedding, Tally, Throttling},
    settings,
};

fn main() {
    divan::main();
}

const BURST: u64 = 1_000;
const SPEC: Spec = Spec { label: "T", name: "test", capacity: 2_000, threshold: 900 };

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// Runs bursts of a thousand, on one reservoir that is warm after the first.
fn burst<R>(
    bencher: Bencher,
    mut reservoir: R,
    mut push: impl FnMut(&mut R, u64),
    mut pop: impl FnMut(&mut R, u64),
) {
    bencher.counter(BURST).bench_local(|| {
        for item in 0..BURST {
            push(&mut reservoir, black_box(item));
        }
        for item in 0..BURST {
            pop(&mut reservoir, black_box(item));
        }
    });
}

mod queues {
    use super::*;

    #[divan::bench]
    fn bare_vec_deque(bencher: Bencher) {
        burst(
            bencher,
            VecDeque::new(),
            |queue, item| queue.push_back(item),
            |queue, _| _ = black_box(queue.pop_front()),
        );
    }

    #[divan::bench]
    fn throttling(bencher: Bencher) {
        burst(
            bencher,
            Throttling::new(SPEC),
            |queue, item| _ = black_box(queue.push(at(item), item)),
            |queue, item| _ = black_box(queue.pop(at(BURST + item))),
        );
    }

    #[divan::bench]
    fn releasing(bencher: Bencher) {
        burst(
            bencher,
            Releasing::new(SPEC),
            |queue, item| _ = black_box(queue.push(item)),
            |queue, _| _ = black_box(queue.pop()),
        );
    }

    #[divan::bench]
    fn releasing_when_full(bencher: Bencher) {
        burst(
            bencher,
            Releasing::new(Spec { capacity: 100, ..SPEC }),
            |queue, item| _ = black_box(queue.push(item)),
            |queue, _| _ = black_box(queue.pop()),
        );
    }

    #[divan::bench]
    fn shedding(bencher: Bencher) {
        burst(
            bencher,
            Shedding::new(SPEC),
            |queue, item| _ = black_box(queue.push(item, at(BURST + item))),
            |queue, item| {
                _ = black_box(queue.pop(at(item)));
                queue.done();
            },
        );
    }

    #[divan::bench]
    fn tally(bencher: Bencher) {
        burst(
            bencher,
            Tally::new(SPEC),
            |tally, item| _ = black_box(tally.enter(at(item), black_box(1))),
            |tally, item| tally.leave(at(BURST + item), black_box(1)),
        );
    }

    #[divan::bench]
    fn fair_among_eight(bencher: Bencher) {
        burst(
            bencher,
            Fair::new(Spec { capacity: 8_000, threshold: 8_000, ..SPEC }),
            |queue, item| _ = black_box(queue.push(at(item), item % 8, item)),
            |queue, item| _ = black_box(queue.pop(at(BURST + item))),
        );
    }
}

mod keyed {
    use super::*;

    /// Keys that do not come in order.
    fn key(item: u64) -> u64 {
        item.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[divan::bench]
    fn bare_b_tree_map(bencher: Bencher) {
        burst(
            bencher,
            BTreeMap::new(),
            |map, item| _ = black_box(map.insert(key(item), item)),
            |map, item| _ = black_box(map.remove(&key(item))),
        );
    }

    #[divan::bench]
    fn outstanding(bencher: Bencher) {
        burst(
            bencher,
            Outstanding::new(SPEC),
            |set, item| _ = black_box(set.insert(at(item), key(item), item)),
            |set, item| _ = black_box(set.remove(at(BURST + item), &key(item))),
        );
    }

    #[divan::bench]
    fn marks(bencher: Bencher) {
        burst(
            bencher,
            Marks::new(SPEC),
            |marks, item| _ = black_box(marks.mark(key(item), item, at(item))),
            |marks, _| _ = black_box(marks.take_due(at(BURST))),
        );
    }

    #[divan::bench]
    fn ranks(bencher: Bencher) {
        burst(
            bencher,
            Ranks::new(SPEC),
            |ranks, item| ranks.put(key(item), item as u32 % 4),
            |ranks, _| _ = black_box(ranks.take(4)),
        );
    }

    #[divan::bench]
    fn cache(bencher: Bencher) {
        burst(
            bencher,
            Cache::new(SPEC),
            |cache, item| cache.put(key(item), item, 1, at(item), |key, _| _ = black_box(key)),
            |cache, item| _ = black_box(cache.remove(&key(item))),
        );
    }
}

mod pager {
    use super::*;

    fn new(settings: settings::Pager) -> Pager<u64, u64> {
        Pager::new(settings).expect("the settings stand together")
    }

    /// A lookup that misses, its load, and its drop.
    #[divan::bench]
    fn misses(bencher: Bencher) {
        let mut pager = new(settings::Pager { clean_max: 1, ..settings::Pager::default() });
        let mut out = Vec::new();
        bencher.counter(BURST).bench_local(|| {
            for key in 0..BURST {
                pager.step(at(1), Input::Lookup { token: Token(key), key }, &mut out);
                pager.step(at(1), Input::Loaded { key, value: key }, &mut out);
                pager.step(at(1), Input::Drop { key }, &mut out);
                black_box(&out);
                out.clear();
            }
        });
    }

    /// A lookup that finds its object clean among a thousand, and its drop.
    #[divan::bench]
    fn hits(bencher: Bencher) {
        let mut pager = new(settings::Pager::default());
        let mut out: Vec<Output<u64, u64>> = Vec::new();
        let mut seconds = 0;
        for key in 0..BURST {
            pager.step(at(0), Input::Lookup { token: Token(key), key }, &mut out);
            pager.step(at(0), Input::Loaded { key, value: key }, &mut out);
            pager.step(at(0), Input::Drop { key }, &mut out);
        }
        bencher.counter(BURST).bench_local(|| {
            seconds += 1;
            let now = Instant::START + Duration::from_secs(seconds);
            for key in 0..BURST {
                pager.step(now, Input::Lookup { token: Token(key), key }, &mut out);
                pager.step(now, Input::Drop { key }, &mut out);
                black_box(&out);
                out.clear();
            }
        });
    }
}
