//! Two clients save two files in one directory, as an editor does.

use base::FileId;
use client::Call;
use directory::{Act, Birth, operation::Over};
use lease::{Field, Policy, Rule};

use crate::{
    Failure, Trial,
    office::{Office, Tally, name},
};

/// Those who edit; a third has made the directory.
const EDITORS: usize = 2;

/// Runs both variants at two lengths.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let saves = trial.size("saves");
    let saves_more = saves * trial.constant("longer") as u64;
    let fields = Policy::of_the_paper();
    let files = Policy { rule: Rule::Files, ..fields };
    let generous = Policy::default();
    for (variant, policy) in [("fields", fields), ("files", files), ("generous", generous)] {
        trial.say(variant);
        let few = edit(policy, saves);
        let many = edit(policy, saves_more);
        trial.number(format!("{variant}/leases"), few as f64);
        trial.number(format!("{variant}/leases-longer"), many as f64);
        trial.number(format!("{variant}/per-save"), few as f64 / saves as f64);
        trial.truth(format!("{variant}/is-constant"), few == many);
    }
    Ok(())
}

/// The leases on names, or on whole files where names are not leased on their own, that it takes.
fn edit(policy: Policy, saves: u64) -> u64 {
    let counted = |field: &Field| {
        matches!(field, Field::Child(_) | Field::Children | Field::Whole | Field::Tree)
    };
    let mut office = Office::new(EDITORS + 1, policy, counted);
    let act = Act::Mkdir {
        directory: FileId::ROOT,
        name: name("common"),
        mode: 0o755,
        birth: Birth::default(),
    };
    let directory = office.make("common", act);
    office.tally = Tally::default();
    for save in 0..saves as usize {
        let editor = 1 + save % EDITORS;
        self::save(&mut office, editor, &directory, save < EDITORS);
    }
    office.tally.fields
}

/// Create, delete, rename (section 8.3.3).
fn save(office: &mut Office, client: usize, directory: &FileId, is_first: bool) {
    let (text, swap) = (name(&format!("text{client}")), name(&format!("#text{client}#")));
    let create = Act::Create {
        directory: directory.clone(),
        name: swap.clone(),
        mode: 0o644,
        birth: Birth::default(),
    };
    let delete = Act::Unlink { directory: directory.clone(), name: text.clone(), is_open: false };
    let rename = Act::Rename {
        from: directory.clone(),
        from_name: swap,
        to: directory.clone(),
        to_name: text,
        over: Over::Refuse,
        is_open: false,
    };
    for act in [create, delete, rename] {
        let is_first_delete = is_first && matches!(act, Act::Unlink { .. });
        let result = office.call(client, Call::Do(act));
        assert!(result.is_ok() || is_first_delete, "a save ends with {result:?}");
    }
}
