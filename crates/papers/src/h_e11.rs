//! H-E11: messages and time of a look-up on 1 to 16 groups, beside other schemes (H13).

use locator::home::Kind;

use crate::{
    Failure, Trial,
    hba::{Cell, Levels, Point, Profile, Stop, Trace, bloom, time_per_operation, tree_home, way},
};

const GROUPS: [u32; 5] = [1, 2, 4, 8, 16];

/// How a client gets to a file's group.
#[derive(Clone, Copy, PartialEq)]
enum Scheme {
    /// The product: both levels, the second static.
    Locator,
    /// The paper's HBA.
    Hba,
    /// A pure Bloom array.
    Pba,
    /// A first level alone.
    Recent,
    /// No help: from the root, group by group.
    Walk,
    /// The path's hash says where the file is.
    Modulus,
    /// Everybody has a table of all files.
    Table,
    /// Every directory below the root is with one group, for ever.
    Partition,
}

const SCHEMES: [(&str, Scheme); 8] = [
    ("locator", Scheme::Locator),
    ("hba8", Scheme::Hba),
    ("pba8", Scheme::Pba),
    ("recent", Scheme::Recent),
    ("walk", Scheme::Walk),
    ("modulus", Scheme::Modulus),
    ("table", Scheme::Table),
    ("partition", Scheme::Partition),
];

/// What the schemes cost.
struct Cost {
    messages: f64,
    time_us: f64,
    /// The work of the busiest group beside the mean.
    imbalance: f64,
    bits_per_file: f64,
}

pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let mut profile = Profile::of(trial, "res", trial.size("traces"));
    profile.new_share = 0.0;
    trial.say("generating");
    let trace = Trace::generate(&profile, &mut trial.rng());
    let mut first = None;
    for groups in GROUPS {
        for (name, scheme) in SCHEMES {
            trial.say(&format!("{groups} groups, {name}"));
            let cost = measure(trial, scheme, groups, &trace);
            trial.number(format!("{name}/{groups}/messages"), cost.messages);
            trial.number(format!("{name}/{groups}/time-us"), cost.time_us);
            if groups == 16 {
                trial.number(format!("{name}/imbalance"), cost.imbalance);
                trial.number(format!("{name}/bits-per-file"), cost.bits_per_file);
            }
            if scheme == Scheme::Locator && groups == 1 {
                first = Some(cost.time_us);
            }
            if scheme == Scheme::Locator && groups == 16 {
                let single = first.expect("one group comes first");
                trial.number("locator/speed-up", single / cost.time_us);
            }
        }
    }
    moved(trial, &trace);
    Ok(())
}

fn measure(trial: &Trial, scheme: Scheme, groups: u32, trace: &Trace) -> Cost {
    let (look_us, work_us) = (trial.constant("look_us") as u64, trial.constant("work_us") as u64);
    let point = match scheme {
        Scheme::Locator => Some((Levels::Both, Kind::Fuse)),
        Scheme::Hba => Some((Levels::Both, bloom(8))),
        Scheme::Pba => Some((Levels::All, bloom(8))),
        Scheme::Recent => Some((Levels::Recent, bloom(8))),
        _ => None,
    };
    let recent = trial.constant("recent") as u64;
    let point = point.map(|(levels, kind)| Point { levels, kind, ..Point::hba(groups, recent) });
    let mut cell = point.map(|point| Cell::new(point, trace, 0, tree_home));
    let mut operations = Vec::with_capacity(trace.len());
    for request in trace.iter() {
        let file = request.file;
        let hint = cell.as_mut().map(|cell| cell.request(request, trace.prints[file as usize]));
        let stops = stops(scheme, file, groups, hint.and_then(|hint| hint.group()).map(|g| g.0));
        let last = stops.len() - 1;
        let work = |at| if at == last { work_us } else { look_us };
        let stop = |(at, group): (usize, u32)| Stop { group, work_us: work(at) };
        operations.push(stops.into_iter().enumerate().map(stop).collect::<Vec<Stop>>());
    }
    // The first half warms up.
    let operations = operations.split_off(operations.len() / 2);
    let mut work = vec![0u64; groups as usize];
    let all = operations.iter().flatten();
    all.clone().for_each(|stop| work[stop.group as usize] += stop.work_us);
    let clients = trial.constant("clients") as usize;
    let delay_us = trial.constant("delay_us") as u64;
    let mean = work.iter().sum::<u64>() as f64 / f64::from(groups);
    let bits = match &cell {
        Some(cell) => 8.0 * (cell.array.bytes().0 + cell.array.bytes().1) as f64,
        // H13: 16 bytes for the name and 2 for the group.
        None if scheme == Scheme::Table => 144.0 * trace.prints.len() as f64,
        None => 0.0,
    };
    Cost {
        messages: 2.0 * all.count() as f64 / operations.len() as f64,
        time_us: time_per_operation(groups, clients, delay_us, &operations),
        imbalance: work.iter().copied().max().unwrap_or(0) as f64 / mean.max(1.0),
        bits_per_file: bits / trace.prints.len() as f64,
    }
}

/// The groups that are asked one after the other. The last does the work.
fn stops(scheme: Scheme, file: u32, groups: u32, hint: Option<u32>) -> Vec<u32> {
    let way = way(file, groups);
    let home = way[way.len() - 1];
    match (scheme, hint) {
        (Scheme::Modulus, _) => vec![modulus(file, groups)],
        (Scheme::Partition, _) => vec![partition(file, groups)],
        (Scheme::Table, _) => vec![home],
        (_, Some(group)) if group == home => vec![home],
        // H5, H11: a false hit is one question more than a miss.
        (_, Some(group)) => [vec![group], way].concat(),
        (_, None) => way,
    }
}

fn modulus(file: u32, groups: u32) -> u32 {
    (u64::from(file).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u32 % groups
}

/// As many top directories as a desktop's owner makes, in order of age.
fn partition(file: u32, groups: u32) -> u32 {
    const TOP: u32 = 40;
    let top = (f64::from(file % 997) / 997.0).powi(3);
    (top * f64::from(TOP)) as u32 * groups / TOP
}

/// H1: what changes place by hash when a directory of a hundredth of all files gets another name, and when a
/// group joins sixteen. By filters nothing does.
fn moved(trial: &mut Trial, trace: &Trace) {
    let files = trace.prints.len() as u32;
    let renamed = files / 100;
    let count = |is_moved: &dyn Fn(u32) -> bool, among: u32| {
        (0..among).filter(|&file| is_moved(file)).count() as f64 / f64::from(files)
    };
    // Another name is another hash.
    let by_name = count(&|file| modulus(file, 16) != modulus(file ^ 0x8000_0000, 16), renamed);
    trial.number("modulus/moved-by-rename", by_name);
    let by_join = count(&|file| modulus(file, 16) != modulus(file, 17), files);
    trial.number("modulus/moved-by-join", by_join);
}

#[cfg(test)]
mod tests {
    use crate::registry::tests::check;

    #[test]
    fn a_small_run_is_as_the_plan_says() {
        check("H-E11", 0.1, &[]);
    }
}
