//! Twelve clients open and close one file over and over, first in a way that another excludes.

use base::FileId;
use client::{Call, Failure as No, Modes, Reply, Ways};
use directory::{Act, Birth, Refusal};
use lease::{Field, Policy, Rule};

use crate::{
    Failure, Trial,
    office::{Office, Tally, name},
};

/// Runs both variants at two lengths.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let clients = trial.constant("clients") as usize;
    let opens = trial.size("opens");
    let opens_more = opens * trial.constant("longer") as u64;
    let disjunctive = Policy::of_the_paper();
    let plain = Policy { rule: Rule::PlainModes, ..disjunctive };
    for (variant, policy) in [("disjunctive", disjunctive), ("plain", plain)] {
        trial.say(variant);
        let tally = open_all(policy, clients, opens);
        let more = open_all(policy, clients, opens_more);
        trial.number(format!("{variant}/issued"), tally.issued as f64);
        trial.number(format!("{variant}/recalled"), tally.recalled as f64);
        trial.number(format!("{variant}/fields"), tally.fields as f64);
        let iterations = (clients as u64 * opens) as f64;
        trial.number(format!("{variant}/issued-per-iteration"), tally.issued as f64 / iterations);
        trial.truth(format!("{variant}/is-constant"), tally == more);
    }
    Ok(())
}

/// What is said of mode fields.
fn open_all(policy: Policy, clients: usize, opens: u64) -> Tally {
    // The first machine creates the file and keeps it open: others may read, nobody else writes.
    let mut office = Office::new(clients + 1, policy, |field| matches!(field, Field::Mode(_)));
    let act = Act::Create {
        directory: FileId::ROOT,
        name: name("common"),
        mode: 0o666,
        birth: Birth::default(),
    };
    let file = office.make("common", act);
    let (none, reads) = (Ways::default(), Ways { read: true, ..Ways::default() });
    let both = Ways { read: true, write: true, delete: false };
    let writes = Ways { write: true, ..none };
    let creators = Modes { access: both, deny: Some(writes) };
    let exclusive = Modes { access: both, deny: Some(both) };
    let shared = Modes { access: reads, deny: Some(none) };
    let open = |modes| Call::Open { file: file.clone(), modes };
    assert!(office.call(0, open(creators)).is_ok(), "nobody is in the way of the first");
    office.tally = Tally::default();
    for _ in 0..opens {
        for client in 1..=clients {
            let refused = office.call(client, open(exclusive));
            assert_eq!(refused, Err(No::Refused(Refusal::Sharing)));
            match office.call(client, open(shared)) {
                Ok(Reply::Handle(handle)) => {
                    assert_eq!(office.call(client, Call::Close { handle }), Ok(Reply::Done));
                }
                other => panic!("a handle, not {other:?}"),
            }
        }
    }
    office.tally
}
