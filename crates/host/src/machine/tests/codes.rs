//! Where codes lead, how many machines they serve, and who can't pretend to be at their end.

use std::{
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use base::SecretKey;
use overlay::Power;
use wire::{Answer, Query, Ticket};

use super::{
    cells::{ANYWHERE, HOUR, found, join, members, until},
    *,
};
use crate::{
    Asker, Lane, Limits, Network, NetworkSettings, Reception, Terms, Welcome, cell::Membership,
};

/// Somebody who has heard everything that was handed over with a code, and pretends to be at its end.
struct Pretender {
    network: Arc<Network>,
    /// Whom it asks where codes lead, to pass on the answer.
    honest: SocketAddr,
}

impl Reception for Pretender {
    fn welcome(&self, _: &base::PublicKey) -> Welcome {
        Welcome::Stranger
    }

    fn on_frame(&self, _: &base::PublicKey, _: Lane, _: Vec<u8>) -> Duration {
        Duration::ZERO
    }

    fn on_ask(&self, _: &Asker, bytes: Vec<u8>, _: &dyn Fn() -> bool) -> Vec<u8> {
        match wire::decode(&bytes).unwrap() {
            Query::Invited(_) => self.network.ask_at(self.honest, bytes, HOUR).unwrap().1,
            Query::Join(_) => {
                let client = lease::Client(7);
                let ticket = Ticket { client, machines: Vec::new(), users: None };
                wire::encode(&Answer::Joined(Box::new(ticket)))
            }
            _ => Vec::new(),
        }
    }
}

/// A network of the owner of a key.
fn network_of(key: SecretKey, reception: Arc<dyn Reception>) -> Network {
    let settings = NetworkSettings { key, bind: ANYWHERE, limits: Limits::default() };
    Network::start(settings, reception).unwrap()
}

struct Silent;

impl Reception for Silent {
    fn welcome(&self, _: &base::PublicKey) -> Welcome {
        Welcome::Early
    }

    fn on_frame(&self, _: &base::PublicKey, _: Lane, _: Vec<u8>) -> Duration {
        Duration::ZERO
    }

    fn on_ask(&self, _: &Asker, _: Vec<u8>, _: &dyn Fn() -> bool) -> Vec<u8> {
        Vec::new()
    }
}

fn address_of(machine: &Machine) -> SocketAddr {
    machine.standing().group.address.unwrap()
}

/// The same code with other addresses, as whoever stands in between could change it.
fn led_to(code: &str, address: SocketAddr) -> overlay::Text {
    let overlay::Code { secret, pin, .. } = overlay::Code::read(code).unwrap();
    overlay::Code::new(secret, pin, &[address]).unwrap().text()
}

#[test]
fn whoever_has_a_certificate_of_the_cell_revoked_or_not_can_not_pretend_to_be_the_inviter() {
    let (first, one) = found("pretend-1");
    let (second, two) = join(&first, "pretend-2");
    let key = crate::key::read(&second.0.join("key")).unwrap();
    one.registrar().revoke(&crate::Key(key.public()).to_string()).unwrap();
    drop(two);
    // It answers where the code leads, with its own key and all that the inviter hands over.
    let honest = address_of(&one);
    let asker = network_of(SecretKey::from_seed([9; 32]), Arc::new(Silent));
    let pretender = Pretender { network: Arc::new(asker), honest };
    let pretended = network_of(key, Arc::new(pretender));
    let code = Machine::invite(&first.0, HOUR).unwrap();
    let third = Home::new("pretend-3");
    let led = led_to(code.reveal(), pretended.address().unwrap());
    let refused = Machine::join(&third.0, led.reveal(), ANYWHERE).unwrap_err().to_string();
    assert!(refused.contains("it is not the machine that has made the code"), "{refused}");
    assert!(!Machine::is_home(&third.0));
    // Where the inviter is the same code serves.
    Machine::join(&third.0, code.reveal(), ANYWHERE).unwrap();
    one.stop().unwrap();
}

#[test]
fn a_newcomer_starts_from_the_roll_that_its_code_pins_and_what_that_proves() {
    let (first, one) = found("pinned-1");
    let early = Machine::invite(&first.0, HOUR).unwrap();
    let pinned = Membership::read(&first.0).unwrap().roll;
    assert_eq!(pinned.seats.len(), 1);
    let others = ["pinned-2", "pinned-3", "pinned-4"].map(|name| join(&first, name));
    until("growing", || members(&one) == 4 && others.iter().all(|(_, m)| members(m) == 4));
    // What was decided last is proven by what is decided after it.
    mkdir(&one, &FileId::ROOT, "grown");
    let fifth = Home::new("pinned-5");
    Machine::join(&fifth.0, early.reveal(), ANYWHERE).unwrap();
    let membership = Membership::read(&fifth.0).unwrap();
    assert_eq!((membership.pin.seats.len(), membership.roll.seats.len()), (4, 4));
    let five = Machine::start(&fifth.0).unwrap();
    mkdir(&five, &FileId::ROOT, "here");
    assert_eq!(names(&one, &FileId::ROOT), ["grown", "here"]);
    for (_, machine) in others {
        machine.stop().unwrap();
    }
    five.stop().unwrap();
    one.stop().unwrap();
}

#[test]
fn two_codes_have_to_be_of_two_machines_of_one_cell() {
    let (first, one) = found("compare-1");
    let (second, two) = join(&first, "compare-2");
    let root = crate::Root::made(&first.0.join("root")).unwrap();
    let made = root.new_issuer(Power::ALL.into(), HOUR).unwrap();
    crate::take_issuer(&second.0, &made.text).unwrap();
    let (other, alien) = found("compare-3");
    let invite = |home: &Home| Machine::invite(&home.0, HOUR).unwrap();
    let refused = |code: &overlay::Text, other: &overlay::Text| {
        let home = Home::new("compare-4");
        let joined = Machine::join_by(&home.0, code.reveal(), Some(other.reveal()), ANYWHERE);
        joined.unwrap_err().to_string()
    };
    let why = refused(&invite(&first), &invite(&first));
    assert!(why.contains("both codes are by one machine"), "{why}");
    let why = refused(&invite(&first), &invite(&other));
    assert!(why.contains("do not lead to the same cell"), "{why}");
    // The older one names one member, the newer four; one of the two shows how that came about.
    let early = invite(&second);
    let (_third, three) = join(&first, "compare-5");
    let (_fourth, four) = join(&first, "compare-6");
    let all = [&one, &two, &three, &four];
    until("growing", || all.iter().all(|machine| members(machine) == 4));
    until("hearing of it", || Membership::read(&first.0).unwrap().roll.seats.len() == 4);
    let late = invite(&first);
    for (number, (code, other)) in
        [(&early, &late), (&invite(&first), &invite(&second))].into_iter().enumerate()
    {
        let home = Home::new(&format!("compare-{}", 7 + number));
        Machine::join_by(&home.0, code.reveal(), Some(other.reveal()), ANYWHERE).unwrap();
        assert_eq!(Membership::read(&home.0).unwrap().pin.seats.len(), 4);
    }
    for machine in [one, two, three, four, alien] {
        machine.stop().unwrap();
    }
}

/// So many machines join by one code, a few at a time. How long that took, in seconds.
fn join_many(founder: &Home, count: u32) -> (Vec<Home>, f64) {
    let terms = Terms { count, ..Terms::one(HOUR) };
    let code = Machine::invite_for(&founder.0, terms).unwrap();
    let homes: Vec<Home> = (0..count).map(|number| Home::new(&format!("many-{number}"))).collect();
    let start = Instant::now();
    thread::scope(|scope| {
        for homes in homes.chunks(homes.len().div_ceil(4)) {
            let code = code.reveal();
            let join = move || {
                homes.iter().for_each(|home| Machine::join(&home.0, code, ANYWHERE).unwrap());
            };
            scope.spawn(join);
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let late = Home::new("many-late");
    let refused = Machine::join(&late.0, code.reveal(), ANYWHERE).unwrap_err().to_string();
    assert!(refused.contains("this invitation is used up"), "{refused}");
    (homes, seconds)
}

#[test]
fn as_many_machines_as_a_code_is_for_join_by_it_and_each_is_sent_away_alone() {
    // `cargo xtask long joins` says how many.
    let count = std::env::var("CROFT_JOINS").map_or(6, |count| count.parse().unwrap());
    let (first, one) = found("many");
    let (homes, seconds) = join_many(&first, count);
    eprintln!("{count} machines joined by one code in {seconds:.1} s");
    until("all are listed", || one.standing().group.machines == count as usize + 1);
    let keys = |home: &Home| crate::Key(crate::key::read(&home.0.join("key")).unwrap().public());
    one.registrar().revoke(&keys(&homes[1]).to_string()).unwrap();
    until("the others stay", || one.standing().machines.len() == count as usize);
    // The last stays, and works.
    let last = Machine::start(&homes.last().unwrap().0).unwrap();
    mkdir(&last, &FileId::ROOT, "here");
    last.stop().unwrap();
    one.stop().unwrap();
}
