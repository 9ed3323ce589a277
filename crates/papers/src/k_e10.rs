//! Which machines make servers, do without them and take them elsewhere (table III, figure 19).

#![expect(
    clippy::disallowed_types,
    reason = "whoever listens to a scheme is owned by it, so what was heard is shared; one thread uses it"
)]

use std::sync::{Arc, Mutex};

use overlay::Policy;

use crate::{
    Failure, Trial,
    swarm::{
        course::Course,
        crew,
        network::{MachineId, Network},
        population::{CLASSES, Life},
        scheme::{Action, KChoices},
    },
};

/// Of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    machines: u32,
    /// Seconds that its machines were there, together.
    seconds: f64,
    creates: u32,
    destroys: u32,
    moves: u32,
}

impl Activity {
    /// Servers made, done without and taken elsewhere by one machine in a thousand seconds.
    fn rates(&self) -> [f64; 3] {
        [self.creates, self.destroys, self.moves]
            .map(|count| 1_000.0 * f64::from(count) / self.seconds.max(1.0))
    }
}

/// After what a machine out of balance makes or gives up a server.
#[derive(Clone, Copy, Debug)]
enum Counting {
    /// After more moves than it has servers, as K8 says.
    Moves,
    /// After more checks, as the product does.
    Checks,
}

type Table = [(f64, Activity); CLASSES.len()];

/// Measures the table.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let course = Course::classes(trial, trial.constant("life_s"));
    let choices = trial.constant("choices") as u32;
    let policy = Policy { choices, gain_min: trial.constant("gain_min"), ..Policy::paper() };
    let stay_min = (trial.constant("stay_min") * f64::from(course.seconds)) as u32;
    // An ablation: machines have to have more to do before they rest.
    let wanting = Policy { lower: trial.constant("lower_wanting"), ..policy };
    let runs = [
        ("uniform", 0.0, policy, Counting::Moves),
        ("zipf-1.2", 1.2, policy, Counting::Moves),
        ("wanting/zipf-1.2", 1.2, wanting, Counting::Moves),
        ("checks/uniform", 0.0, policy, Counting::Checks),
        ("checks/zipf-1.2", 1.2, policy, Counting::Checks),
    ];
    let tables = crew::all(trial, &runs, |(name, skew, policy, counting), progress| {
        progress.say(format!("{name} begins"));
        table(course.with_skew(*skew), *policy, *counting, stay_min)
    });
    for ((skew, ..), table) in runs.iter().zip(tables) {
        for (class, activity) in &table {
            let rates = activity.rates();
            trial.number(format!("{skew}/{class}/machines"), f64::from(activity.machines));
            for (what, rate) in ["create", "delete", "rechoose"].iter().zip(rates) {
                trial.number(format!("{skew}/{class}/{what}"), rate);
            }
        }
        let totals = table.map(|(_, activity)| activity.rates().iter().sum::<f64>());
        let column = |which: usize| table.map(|(_, activity)| activity.rates()[which]);
        let is_least =
            |values: [f64; 4], at: usize| values.iter().all(|other| values[at] <= *other);
        let is_most = |values: [f64; 4], at: usize| values.iter().all(|other| values[at] >= *other);
        trial.truth(format!("{skew}/class-100-rests-most"), is_least(totals, 2));
        trial.truth(format!("{skew}/class-1000-creates-most"), is_most(column(0), 3));
        trial.truth(format!("{skew}/class-1000-deletes-least"), is_least(column(1), 3));
        trial.truth(format!("{skew}/class-1-rechooses-most"), is_most(column(2), 0));
    }
    Ok(())
}

fn table(course: Course, policy: Policy, counting: Counting, stay_min: u32) -> Table {
    let heard: Arc<Mutex<Vec<(MachineId, u32, Action)>>> = Arc::default();
    let sink = Arc::clone(&heard);
    let listener = move |network: &Network, machine: MachineId, action: Action| {
        sink.lock().expect("nobody panics with it").push((machine, network.now, action));
    };
    let scheme = KChoices::new(policy).on_action(listener);
    let scheme = match counting {
        Counting::Moves => scheme.counting_moves(),
        Counting::Checks => scheme,
    };
    let mut world = course.begin(Box::new(scheme));
    world.run(course.seconds);

    let half = course.seconds / 2;
    let lives = course.lives();
    let end = |life: &Life| life.to.min(course.seconds);
    let counts = |life: &Life| end(life) > half && end(life) - life.from >= stay_min;
    let mut table = CLASSES.map(|(class, _)| (class, Activity::default()));
    for life in lives.iter().filter(|life| counts(life)) {
        let activity = of_class(&mut table, life.capacity);
        activity.machines += 1;
        activity.seconds += f64::from(end(life) - life.from.max(half));
    }
    let heard = heard.lock().expect("nobody panics with it");
    for (machine, _, action) in heard.iter().filter(|(_, when, _)| *when >= half) {
        let life = &lives[*machine as usize];
        if counts(life) {
            let activity = of_class(&mut table, life.capacity);
            match action {
                Action::Create => activity.creates += 1,
                Action::Destroy => activity.destroys += 1,
                Action::Move => activity.moves += 1,
            }
        }
    }
    table
}

fn of_class(table: &mut Table, capacity: f64) -> &mut Activity {
    let found = table.iter_mut().find(|(class, _)| *class == capacity);
    &mut found.expect("there are four classes").1
}

#[cfg(test)]
mod tests {
    use crate::find;

    #[test]
    fn a_small_table_has_the_shape_that_the_plan_says_but_that_the_largest_rest() {
        let report = find("K-E10").unwrap().run(0.05, &mut |_| ()).unwrap();
        let rests = ["class-1000-creates-most", "class-100-rests-most"];
        let names = report.differing();
        assert!(names.iter().all(|name| rests.iter().any(|rest| name.ends_with(rest))), "{report}");
    }
}
