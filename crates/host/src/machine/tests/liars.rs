//! One member of four real machines lies: nobody believes it, nobody waits long for it, and what proves it is
//! kept.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use base::{FileId, Rng};
use directory::{operation::Over, record::Content};
use lease::Client;
use node::mailroom::Kind;
use vice::Lie;
use wire::Whom;

use super::{cells::*, *};
use crate::{
    cell::Membership,
    group::{
        Post,
        liar::{Corruption, Manner},
    },
    key,
};

/// Nothing that is asked may take longer.
const PROGRESS: Duration = Duration::from_secs(10);
/// How many operations two machines do against each other.
const OPERATIONS: usize = 100;
/// After so many of them, on average, it is the other's turn.
const TURN: u64 = 4;
/// How many different names they quarrel about. One digit is enough for them.
const NAMES: u64 = 10;
/// How many cells there are at a time in each test: so many keep two cores busy and no more.
const CELLS: usize = 4;
const SEED: u64 = 7;

/// A way to lie.
struct Way {
    name: &'static str,
    lies: &'static [Lie],
    manner: Manner,
    /// How often it lies when it could.
    zeal: f64,
    proof: Proof,
}

/// Whether whoever hears a lie can prove it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// All can.
    Sure,
    /// Some may.
    Chance,
    /// Nobody can.
    Never,
}

const fn way(name: &'static str, lies: &'static [Lie], manner: Manner, proof: Proof) -> Way {
    Way { name, lies, manner, zeal: 1.0, proof }
}

/// What a leader can do, and any other member.
const LEADERS: [Way; 7] = [
    way("two-things-to-each", &[Lie::Equivocate], Manner::ToTheFace, Proof::Sure),
    way("another-thing-to-some", &[Lie::Equivocate], Manner::Plain, Proof::Chance),
    Way { zeal: 0.5, ..way("half-of-it", &[Lie::Withhold], Manner::Plain, Proof::Never) },
    way("nothing", &[], Manner::Silent, Proof::Never),
    way("wrong-times", &[Lie::Time], Manner::Plain, Proof::Never),
    way("garbage", &[Lie::Maul], Manner::Noisy, Proof::Never),
    way("what-nobody-wants", &[Lie::Invent], Manner::Plain, Proof::Never),
];

/// What any member can do as well as a leader.
const MEMBERS: [Way; 4] = [
    way("false-states", FORGE, Manner::Plain, Proof::Never),
    way("old-things", &[Lie::Replay], Manner::Plain, Proof::Never),
    way("much", &[Lie::Flood], Manner::Plain, Proof::Chance),
    way("wrong-answers", ANSWER, Manner::Plain, Proof::Never),
];

const FORGE: &[Lie] = &[Lie::Forge];
const ANSWER: &[Lie] = &[Lie::Answer];

/// Four machines. The second and the third are honest.
struct Cell {
    homes: Vec<Home>,
    machines: Vec<Machine>,
}

impl Cell {
    fn new(name: &str) -> Cell {
        let (home, machine) = found(&format!("{name}-0"));
        let (mut homes, mut machines) = (vec![home], vec![machine]);
        for number in 1..4 {
            let (home, machine) = join(&homes[0], &format!("{name}-{number}"));
            homes.push(home);
            machines.push(machine);
        }
        until("growing", || machines.iter().all(|machine| members(machine) == 4));
        Cell { homes, machines }
    }

    /// Who leads now.
    fn leader(&self) -> usize {
        let standing = self.machines[0].standing();
        standing.machines.iter().position(|machine| machine.is_leader).unwrap()
    }

    fn corrupt(&self, liar: usize, way: &Way) {
        let home = &self.homes[liar].0;
        let corruption = Corruption {
            lies: way.lies.to_vec(),
            manner: way.manner,
            zeal: way.zeal,
            seed: SEED,
            key: key::read(&home.join("key")).unwrap(),
            group: Membership::read(home).unwrap().group(),
        };
        assert!(self.machines[liar].inbox.post(Kind::Word, Post::Corrupt(Box::new(corruption))));
    }

    /// How often each of the others can prove that this one has lied, and that anybody else has.
    fn proofs(&self, liar: usize) -> Vec<(usize, usize)> {
        let key = key::read(&self.homes[liar].0.join("key")).unwrap().public();
        let count = |machine: &Machine| {
            let machines = machine.standing().machines;
            let lies = |is_liar: bool| {
                let meant = machines.iter().filter(|other| (other.key.0 == key) == is_liar);
                meant.map(|other| other.lies).sum()
            };
            (lies(true), lies(false))
        };
        let honest = (0..4).filter(|number| *number != liar);
        honest.map(|number| count(&self.machines[number])).collect()
    }

    /// Has all of them end at once.
    fn end(self) {
        thread::scope(|scope| {
            for machine in self.machines {
                scope.spawn(|| drop(machine));
            }
        });
    }
}

/// A directory in which several machines act in turn, and what has to be in it.
struct Quarrel {
    work: FileId,
    there: BTreeSet<Name>,
    rng: Rng,
}

impl Quarrel {
    fn new(machine: &Machine) -> Quarrel {
        let work = mkdir(machine, &FileId::ROOT, "work");
        Quarrel { work, there: BTreeSet::new(), rng: Rng::new(SEED) }
    }

    /// Two act in turn. Says what is wrong as soon as an answer is another than follows from what was done, or
    /// takes too long.
    fn go_on(&mut self, actors: [&Machine; 2], count: usize) -> Result<(), String> {
        let mut turn = 0;
        for number in 0..count {
            turn += usize::from(self.rng.below(TURN) == 0);
            let machine = actors[turn % 2];
            match self.rng.below(4) {
                0 => self.list(machine),
                kind => {
                    let (act, expected) = self.draw(kind);
                    let result = call(machine, Call::Do(act.clone()))?.map(drop);
                    (result == expected)
                        .then_some(())
                        .ok_or_else(|| format!("{act:?} gave {result:?} and not {expected:?}"))
                }
            }
            .map_err(|what| format!("operation {number} of seed {SEED}: {what}"))?;
        }
        Ok(())
    }

    /// Something to do, and what comes of it.
    fn draw(&mut self, kind: u64) -> (Act, Result<(), &'static str>) {
        let (directory, there) = (self.work.clone(), &mut self.there);
        let [one, other] = [0, 1].map(|_| {
            let name = format!("n{}", self.rng.below(NAMES));
            Name::new(name.as_bytes()).unwrap()
        });
        match kind {
            1 => {
                let expected = there.insert(one.clone()).then_some(()).ok_or("EEXIST");
                let birth = Birth::default();
                (Act::Mkdir { directory, name: one, mode: 0o755, birth }, expected)
            }
            2 => {
                let expected = there.remove(&one).then_some(()).ok_or("ENOENT");
                (Act::Rmdir { directory, name: one }, expected)
            }
            _ => {
                let expected = there.remove(&one).then_some(()).ok_or("ENOENT");
                if expected.is_ok() {
                    there.insert(other.clone());
                }
                let (from, to, over) = (directory.clone(), directory, Over::Replace);
                let is_open = false;
                (Act::Rename { from, from_name: one, to, to_name: other, over, is_open }, expected)
            }
        }
    }

    /// Whether a machine lists what was made and not removed.
    fn list(&self, machine: &Machine) -> Result<(), String> {
        let list = Call::List { directory: self.work.clone(), after: None, count: usize::MAX };
        let Ok(Reply::Names { entries, .. }) = call(machine, list)? else {
            return Err("no names".into());
        };
        let names: BTreeSet<Name> = entries.into_iter().map(|(name, _)| name).collect();
        let is_right = names == self.there;
        is_right.then_some(()).ok_or_else(|| format!("{names:?} and not {:?}", self.there))
    }
}

/// What a machine answers, if it does so in time.
fn call(machine: &Machine, call: Call) -> Result<Result<Reply, &'static str>, String> {
    let start = Instant::now();
    let result = machine.desk().call(&Actor::ROOT, call.clone());
    match start.elapsed() {
        took if took < PROGRESS => Ok(result.map_err(client::Failure::errno)),
        took => Err(format!("{call:?} took {took:?}")),
    }
}

/// A cell in which this machine, or whoever leads, lies in this way.
fn check(way: &Way, liar: Option<usize>) -> Result<(), String> {
    let rank = if liar.is_some() { "member" } else { "leader" };
    let mut cell = Cell::new(&format!("liar-{}-{rank}", way.name));
    let liar = liar.unwrap_or_else(|| cell.leader());
    // Two act, and the other sees what comes of it.
    let mut honest = (0..4).filter(|number| *number != liar);
    let [one, other, third] = std::array::from_fn(|_| honest.next().unwrap());
    let mut quarrel = Quarrel::new(&cell.machines[one]);
    cell.corrupt(liar, way);
    if way.lies == FORGE {
        // It has to catch up, and hears of false states too.
        let machine = cell.machines.remove(third);
        machine.stop().map_err(|failure| failure.to_string())?;
        quarrel.go_on([&cell.machines[one], &cell.machines[other]], OPERATIONS)?;
        cell.machines.insert(third, Machine::start(&cell.homes[third].0).unwrap());
    }
    quarrel.go_on([&cell.machines[one], &cell.machines[other]], OPERATIONS)?;
    for number in [third, other, one] {
        quarrel.list(&cell.machines[number])?;
    }
    if way.lies == ANSWER {
        check_queries(&cell, liar);
    }
    let proofs = cell.proofs(liar);
    let is_right = match way.proof {
        Proof::Sure => proofs.iter().all(|(own, others)| *own > 0 && *others == 0),
        Proof::Chance => proofs.iter().all(|(_, others)| *others == 0),
        Proof::Never => proofs.iter().all(|proofs| *proofs == (0, 0)),
    };
    cell.end();
    is_right.then_some(()).ok_or_else(|| format!("it is proven {proofs:?} times"))
}

/// What is asked out of turn is not believed of one, or checked.
fn check_queries(cell: &Cell, liar: usize) {
    let client = |number: usize| Client(number as u32 + 1);
    let neighbours = cell.machines[1].neighbours();
    for number in [0, 2, 3] {
        let address = cell.machines[number].standing().group.address.unwrap();
        // Nobody says where it is itself, so that there may be too few to be believed.
        if let Ok(found) = neighbours.find(Whom::Client(client(number))) {
            assert_eq!(found.addresses, [address]);
        }
    }
    let digest = Some(crate::Neighbours::digest(b"precious"));
    let home = Some(client(liar));
    // Nor is anything believed of a small content for which there is no hash.
    for digest in [digest, None] {
        let content = Content { size: 8, allocated: 8, home, version: 1, digest, is_live: false };
        let fetched = neighbours.fetch((1, &FileId::ROOT), &content, |_| Ok(()));
        let fetched = fetched.unwrap_err().to_string();
        assert!(fetched.contains("not those that were written"), "{fetched}");
    }
}

/// Tries them all, a few at a time.
fn check_all(ways: &[(&Way, Option<usize>)]) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CELLS {
            scope.spawn(|| {
                while let Some((way, liar)) = ways.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(what) = check(way, *liar) {
                        panic!("machine {liar:?} says {}: {what}", way.name);
                    }
                }
            });
        }
    });
}

#[test]
fn a_member_that_lies_is_not_believed_and_holds_nobody_up() {
    let ways: Vec<_> = LEADERS.iter().chain(&MEMBERS).map(|way| (way, Some(3))).collect();
    check_all(&ways);
}

#[test]
fn a_leader_that_lies_is_not_believed_and_holds_nobody_up() {
    let ways: Vec<_> = LEADERS.iter().map(|way| (way, None)).collect();
    check_all(&ways);
}

/// A machine that joins by an invitation from this one.
fn join_from(inviter: &Home, name: &str) -> (Home, Machine) {
    let home = Home::new(name);
    let code = Machine::invite(&inviter.0, HOUR).unwrap();
    Machine::join(&home.0, code.reveal(), ANYWHERE).unwrap();
    let machine = start_hasty(&home);
    (home, machine)
}

fn has_seat(seen_by: &Machine, machine: &Machine) -> bool {
    sits(seen_by, key_of(machine))
}

fn sits(seen_by: &Machine, key: crate::Key) -> bool {
    seen_by.standing().machines.iter().any(|one| one.key == key && one.is_member)
}

#[test]
fn whoever_founds_a_cell_and_lies_gives_no_newcomer_a_tree_that_was_never_decided() {
    let (homes, machines) = hasty_cell("founder-lies", 4).into_iter().unzip();
    let mut cell = Cell { homes, machines };
    let issuer = |home: &Home| home.0.join("issuer");
    std::fs::copy(issuer(&cell.homes[0]), issuer(&cell.homes[1])).unwrap();
    let mut quarrel = Quarrel::new(&cell.machines[1]);
    cell.corrupt(0, &way("false-states", FORGE, Manner::Plain, Proof::Never));
    quarrel.go_on([&cell.machines[1], &cell.machines[2]], OPERATIONS).unwrap();
    // One that an honest machine invites sees what was decided, and has no seat while nobody goes.
    let (fifth, five) = join_from(&cell.homes[1], "founder-lies-5");
    quarrel.list(&five).unwrap();
    assert!(!cell.machines.iter().any(|machine| has_seat(machine, &five)));
    // One goes, and it comes in its place: it has shown that it has what they have.
    let (gone, home) = (cell.machines.remove(3), cell.homes.remove(3));
    let gone_key = key_of(&gone);
    drop((gone, home));
    until("the one that an honest machine has invited has its seat", || {
        let mut honest = cell.machines[1..].iter().chain([&five]);
        honest.all(|seen_by| has_seat(seen_by, &five) && !sits(seen_by, gone_key))
    });
    quarrel.go_on([&cell.machines[1], &five], OPERATIONS).unwrap();
    // One that the liar invites sees it too.
    let (sixth, six) = join_from(&cell.homes[0], "founder-lies-6");
    quarrel.list(&six).unwrap();
    assert!(!has_seat(&cell.machines[1], &six) && !has_seat(&five, &six));
    // The liar goes. Whoever it has invited gets its seat only by being right.
    let liar = cell.machines.remove(0);
    let liar_key = key_of(&liar);
    drop(liar);
    quarrel.go_on([&cell.machines[0], &five], OPERATIONS).unwrap();
    until("the one that is right has its seat", || {
        let mut honest = cell.machines.iter().chain([&five, &six]);
        honest.all(|seen_by| has_seat(seen_by, &six) && !sits(seen_by, liar_key))
    });
    quarrel.go_on([&six, &five], OPERATIONS).unwrap();
    // Of the four one may go, whoever it is: so their votes count.
    cell.machines.remove(0).stop().unwrap();
    quarrel.go_on([&six, &cell.machines[0]], OPERATIONS).unwrap();
    for machine in [&five, &six, &cell.machines[0]] {
        quarrel.list(machine).unwrap();
    }
    drop((five, six));
    drop((fifth, sixth));
    cell.end();
}

#[test]
fn three_of_four_that_tell_the_same_lie_are_believed_and_the_check_says_so() {
    let cell = Cell::new("liars-concerted");
    let mut quarrel = Quarrel::new(&cell.machines[0]);
    quarrel.go_on([&cell.machines[0], &cell.machines[2]], OPERATIONS).unwrap();
    for liar in [0, 2, 3] {
        cell.corrupt(liar, &way("other-names", &[], Manner::Concerted, Proof::Never));
    }
    let what = quarrel.list(&cell.machines[1]).unwrap_err();
    assert!(what.contains(" and not "), "{what}");
    cell.end();
}
