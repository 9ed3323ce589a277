//! A model of a file host (figure 8), and servers that ask for more replicas than it can copy.

use base::{Duration, Instant};
use load::{Graph, graphs::host as graph, reservoir::Duty, settings::Host as Settings};

use super::{fitting::Fitting, level::Peak, queues::Intake, sets::Kept};

const TICK: Duration = Duration::from_secs(1);
const TICKS: u64 = 3_600;
/// Requests in a second, and how long their servers wait.
const REQUESTS: u64 = 2;
const PATIENCE: Duration = Duration::from_secs(600);
/// How long a copy takes.
const COPY: Duration = Duration::from_secs(4);

/// Production limits, but for the disk: its replicas are one byte long, so that it fills up in a short run.
fn settings() -> Settings {
    Settings { replica_bytes: 256, ..Settings::default() }
}

struct Host {
    now: Instant,
    requests: Intake<u64>,
    replicas: Kept,
    duty: Duty,
    /// A copy under way, and when it is done.
    copying: Option<(Instant, u64)>,
    asked: u64,
}

/// The model's graph.
pub fn graph() -> Graph {
    graph::graph(&settings())
}

/// The most that was in each place under this load.
pub fn run(without: Option<&'static str>, load: u64) -> Vec<Peak> {
    let mut fitting = Fitting::new(&graph(), without);
    let mut host = Host {
        now: Instant::START,
        requests: fitting.intake(graph::REQUESTS),
        replicas: fitting.kept(graph::REPLICAS),
        duty: Duty::new(settings().duty_percent),
        copying: None,
        asked: 0,
    };
    fitting.finish();
    for tick in 0..TICKS * load {
        host.now = Instant::START + TICK * tick as u32;
        (0..REQUESTS * load).for_each(|_| host.on_request());
        host.go_on();
    }
    vec![host.requests.peak(), host.replicas.peak()]
}

impl Host {
    fn on_request(&mut self) {
        self.asked += 1;
        if let Err(shed) = self.requests.push(self.asked, self.now + PATIENCE) {
            // L52: the server hears that it should use another host.
            shed.rectify(drop);
        }
    }

    fn go_on(&mut self) {
        if let Some((_, file)) = self.copying.take_if(|(done_at, _)| *done_at <= self.now) {
            self.duty.end(self.now);
            self.requests.done();
            // L54: what this releases is ejected. The oldest goes, whatever its rank.
            let _ = self.replicas.put(self.now, file);
        }
        // L55
        let may_copy = self.duty.may_start_at().is_some_and(|at| at <= self.now);
        if may_copy && let Some(file) = self.requests.pop(self.now) {
            self.duty.begin(self.now).expect("its rest is over");
            self.copying = Some((self.now + COPY, file));
        }
    }
}
