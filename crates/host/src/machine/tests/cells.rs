//! Several machines in one process, each with its own directory, sockets and threads.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use super::*;
use crate::cell::Membership;

pub(super) const ANYWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
pub(super) const HOUR: Duration = Duration::from_secs(3_600);

/// Waits for something that comes by itself.
#[track_caller]
pub(super) fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} takes too long");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

pub(super) fn found(name: &str) -> (Home, Machine) {
    let home = Home::new(name);
    Machine::init(&home.0, Some(ANYWHERE)).unwrap();
    let machine = Machine::start(&home.0).unwrap();
    (home, machine)
}

pub(super) fn join(founder: &Home, name: &str) -> (Home, Machine) {
    let home = Home::new(name);
    let code = Machine::invite(&founder.0, HOUR).unwrap();
    Machine::join(&home.0, code.reveal(), ANYWHERE).unwrap();
    let machine = Machine::start(&home.0).unwrap();
    (home, machine)
}

/// Starts a machine of a cell in which nobody is waited for for long.
pub(super) fn start_hasty(home: &Home) -> Machine {
    let away_after = Duration::from_secs(2);
    Machine::start_with(&home.0, node::Seating { away_after, ..node::Seating::default() }).unwrap()
}

/// A cell of so many hasty machines, as soon as its group has four members.
pub(super) fn hasty_cell(name: &str, count: usize) -> Vec<(Home, Machine)> {
    let first = Home::new(&format!("{name}-1"));
    Machine::init(&first.0, Some(ANYWHERE)).unwrap();
    let machine = start_hasty(&first);
    let mut cell = vec![(first, machine)];
    for number in 2..=count {
        let home = Home::new(&format!("{name}-{number}"));
        let code = Machine::invite(&cell[0].0.0, HOUR).unwrap();
        Machine::join(&home.0, code.reveal(), ANYWHERE).unwrap();
        let machine = start_hasty(&home);
        cell.push((home, machine));
        until("growing", || number < 4 || cell.iter().all(|(_, machine)| members(machine) == 4));
    }
    cell
}

/// Whether a machine has a vote, as another sees it.
fn has_vote(seen_by: &Machine, key: &crate::Key) -> bool {
    let machines = seen_by.standing().machines;
    machines.iter().any(|machine| machine.key == *key && machine.is_member)
}

pub(super) fn key_of(machine: &Machine) -> crate::Key {
    machine.standing().machines.into_iter().find(|machine| machine.is_this).unwrap().key
}

pub(super) fn members(machine: &Machine) -> usize {
    machine.standing().group.members
}

#[test]
fn a_machine_that_joins_sees_the_tree_and_changes_it() {
    let (first, one) = found("pair-1");
    mkdir(&one, &FileId::ROOT, "early");
    let (_second, two) = join(&first, "pair-2");
    assert_eq!(names(&two, &FileId::ROOT), ["early"]);
    mkdir(&two, &FileId::ROOT, "late");
    assert_eq!(names(&one, &FileId::ROOT), ["early", "late"]);
    assert_eq!((members(&one), one.standing().group.machines), (1, 2));
    two.stop().unwrap();
    one.stop().unwrap();
}

#[test]
fn four_machines_are_a_group_that_goes_on_when_one_of_them_is_gone() {
    let (first, one) = found("four-1");
    mkdir(&one, &FileId::ROOT, "early");
    let (_second, two) = join(&first, "four-2");
    let (_third, three) = join(&first, "four-3");
    let (_fourth, four) = join(&first, "four-4");
    until("growing", || [&one, &two, &three, &four].into_iter().all(|m| members(m) == 4));
    for (number, machine) in [&one, &two, &three, &four].into_iter().enumerate() {
        mkdir(machine, &FileId::ROOT, &format!("by-{number}"));
    }
    let all = ["by-0", "by-1", "by-2", "by-3", "early"];
    assert_eq!(names(&three, &FileId::ROOT), all);
    // The one that has made the cell, and leads.
    one.stop().unwrap();
    mkdir(&two, &FileId::ROOT, "without");
    let names_left = names(&four, &FileId::ROOT);
    assert_eq!(names_left, ["by-0", "by-1", "by-2", "by-3", "early", "without"]);
    let one = Machine::start(&first.0).unwrap();
    assert_eq!(names(&one, &FileId::ROOT), names_left);
    for machine in [one, two, three, four] {
        machine.stop().unwrap();
    }
}

#[test]
fn what_three_of_four_have_is_whole_without_the_one_that_has_made_the_cell() {
    let (first, one) = found("rest-1");
    let work = mkdir(&one, &FileId::ROOT, "work");
    for number in 0..300 {
        mkdir(&one, &work, &format!("{number:03}"));
    }
    let others = ["rest-2", "rest-3", "rest-4"].map(|name| join(&first, name));
    until("growing", || others.iter().all(|(_, machine)| members(machine) == 4));
    let before = names(&others[1].1, &work);
    assert_eq!(before.len(), 300);
    one.stop().unwrap();
    drop(first);
    let homes = others.map(|(home, machine)| {
        machine.stop().unwrap();
        home
    });
    let machines = homes.each_ref().map(|home| Machine::start(&home.0).unwrap());
    assert_eq!(names(&machines[2], &work), before);
    mkdir(&machines[0], &work, "after");
    assert_eq!(names(&machines[1], &work).len(), 301);
    for machine in machines {
        machine.stop().unwrap();
    }
}

#[test]
fn an_invitation_serves_one_machine_and_no_other() {
    let (first, one) = found("once-1");
    let code = Machine::invite(&first.0, HOUR).unwrap();
    let (second, third) = (Home::new("once-2"), Home::new("once-3"));
    Machine::join(&second.0, code.reveal(), ANYWHERE).unwrap();
    let refusal = Machine::join(&third.0, code.reveal(), ANYWHERE).unwrap_err().to_string();
    assert!(refusal.contains("this invitation is used up"), "{refusal}");
    assert!(!Machine::is_home(&third.0), "nothing half made is taken for a machine");
    let code = Machine::invite(&first.0, HOUR).unwrap();
    Machine::join(&third.0, code.reveal(), ANYWHERE).unwrap();
    one.stop().unwrap();
}

#[test]
fn who_can_not_be_reached_or_invites_to_nowhere_is_told_so() {
    let home = Home::new("nowhere");
    Machine::init(&home.0, None).unwrap();
    let refusal = Machine::invite(&home.0, HOUR).unwrap_err().to_string();
    assert!(refusal.contains("croft run --listen"), "{refusal}");
    let (first, one) = found("nowhere-1");
    let code = Machine::invite(&first.0, HOUR).unwrap();
    one.stop().unwrap();
    let second = Home::new("nowhere-2");
    let refusal = Machine::join(&second.0, code.reveal(), ANYWHERE).unwrap_err().to_string();
    assert!(refusal.contains("is it running?"), "{refusal}");
    let refusal = Machine::join(&second.0, "croft1nonsense", ANYWHERE).unwrap_err().to_string();
    assert!(refusal.contains("croft invite"), "{refusal}");
}

#[test]
fn each_machine_knows_who_is_who_and_who_does_not_answer() {
    let (first, one) = found("who-1");
    let (_second, two) = join(&first, "who-2");
    let lookout = two.lookout().expect("it listens");
    assert_eq!(lookout.call(Duration::from_secs(10)), crate::Away::default());
    let standing = two.standing();
    assert_eq!(standing.machines.len(), 2, "{standing:?}");
    let founder = standing.machines.iter().find(|machine| !machine.is_this).unwrap();
    let other = standing.machines.iter().find(|machine| machine.is_this).unwrap();
    assert!(founder.is_member && founder.is_leader && founder.is_connected && !founder.is_away);
    assert!(!other.is_member && !other.is_leader && other.is_connected && !other.is_away);
    assert_eq!(other.addresses, [standing.group.address.unwrap()]);
    assert_eq!((founder.lies, other.lies), (0, 0));
    one.stop().unwrap();
    let is_alone = |machine: &crate::MachineStanding| machine.is_connected == machine.is_this;
    until("its end is noticed", || two.standing().machines.iter().all(is_alone));
    let away = lookout.call(Duration::from_millis(50));
    let machines = two.standing_without(&away).machines;
    assert!(machines.iter().all(|machine| machine.is_away != machine.is_this), "{machines:?}");
    drop(two);
    assert_eq!(lookout.call(Duration::from_secs(10)), crate::Away::default(), "nobody is there");
}

#[test]
fn a_member_that_stays_away_is_replaced_and_comes_back_as_a_client() {
    let mut cell = hasty_cell("replaced", 5);
    let keys: Vec<crate::Key> = cell.iter().map(|(_, machine)| key_of(machine)).collect();
    // Those who will go hold no leases, for which the others would have to wait.
    let work = mkdir(&cell[4].1, &FileId::ROOT, "work");
    mkdir(&cell[4].1, &work, "early");
    assert!(!has_vote(&cell[1].1, &keys[4]), "four are enough");
    // The one that has made the cell, and leads.
    let (first, one) = cell.remove(0);
    one.stop().unwrap();
    until("its seat is taken", || {
        cell.iter().all(|(_, m)| has_vote(m, &keys[4]) && !has_vote(m, &keys[0]))
    });
    mkdir(&cell[1].1, &work, "without-one");
    assert_eq!(names(&cell[3].1, &work), ["early", "without-one"]);
    // With one more gone there is a quorum only if the fifth has a vote.
    let (_second, two) = cell.remove(0);
    two.stop().unwrap();
    mkdir(&cell[0].1, &work, "without-two");
    assert_eq!(names(&cell[2].1, &work), ["early", "without-one", "without-two"]);
    let one = start_hasty(&first);
    assert_eq!(names(&one, &work), ["early", "without-one", "without-two"]);
    // It is there, so it takes the seat of the second.
    until("it has a vote again", || cell.iter().all(|(_, m)| has_vote(m, &keys[0])));
    mkdir(&one, &work, "again");
    assert_eq!(names(&cell[0].1, &work).len(), 4);
    cell.push((first, one));
    for (_, machine) in cell {
        machine.stop().unwrap();
    }
}

#[test]
fn a_machine_that_has_moved_is_found_by_the_others() {
    let (first, one) = found("moved-1");
    let (second, two) = join(&first, "moved-2");
    let (_third, three) = join(&first, "moved-3");
    let address = |seen_by: &Machine, key: &crate::Key| {
        let machines = seen_by.standing().machines;
        machines.into_iter().find(|machine| machine.key == *key).map(|machine| machine.addresses)
    };
    let keys = [key_of(&one), key_of(&two)];
    // Whoever stops holds no leases, for which the others would have to wait.
    mkdir(&three, &FileId::ROOT, "early");
    two.stop().unwrap();
    let before = address(&one, &keys[1]).unwrap()[0];
    Machine::move_to(&second.0, SocketAddr::new(before.ip(), 0)).unwrap();
    assert_eq!(Membership::read(&second.0).unwrap().listen, Some(before), "it is there already");
    Machine::move_to(&second.0, SocketAddr::new(Ipv4Addr::new(127, 0, 0, 2).into(), 0)).unwrap();
    let two = Machine::start(&second.0).unwrap();
    let now = two.standing().group.address.unwrap();
    assert_ne!(now.ip(), before.ip());
    until("its address is known", || address(&one, &keys[1]) == Some(vec![now]));
    mkdir(&three, &FileId::ROOT, "late");
    assert_eq!(names(&two, &FileId::ROOT), ["early", "late"]);
    // The one that decides alone is told by nobody else where it is.
    one.stop().unwrap();
    Machine::move_to(&first.0, SocketAddr::new(Ipv4Addr::new(127, 0, 0, 3).into(), 0)).unwrap();
    let one = Machine::start(&first.0).unwrap();
    let now = one.standing().group.address.unwrap();
    until("its address is known", || address(&three, &keys[0]) == Some(vec![now]));
    mkdir(&three, &FileId::ROOT, "later");
    assert_eq!(names(&two, &FileId::ROOT), ["early", "late", "later"]);
    for machine in [two, three, one] {
        machine.stop().unwrap();
    }
}

#[test]
fn a_machine_that_was_sent_away_is_refused_and_its_seat_is_taken() {
    let mut cell = hasty_cell("revoked", 5);
    let keys: Vec<crate::Key> = cell.iter().map(|(_, machine)| key_of(machine)).collect();
    let work = mkdir(&cell[4].1, &FileId::ROOT, "work");
    let revoke = |by: &Machine, digits: &str| by.registrar().revoke(digits);
    let digits = keys[1].to_string();
    let refusal = revoke(&cell[2].1, &digits[..8]).unwrap_err().to_string();
    assert!(refusal.contains("which it takes to revoke"), "{refusal}");
    for (digits, why) in [("", "no machine of the cell"), (&keys[0].to_string(), "itself away")] {
        let refusal = revoke(&cell[0].1, digits).unwrap_err().to_string();
        assert!(refusal.contains(why), "{refusal}");
    }
    let (second, two) = cell.remove(1);
    two.stop().unwrap();
    let revoked = revoke(&cell[0].1, &digits[..8]).unwrap();
    assert_eq!(revoked, crate::Revoked { key: keys[1], was_member: true, has_successor: true });
    until("its seat is taken", || {
        cell.iter().all(|(_, m)| has_vote(m, &keys[4]) && !has_vote(m, &keys[1]))
    });
    let knows = |machine: &Machine| machine.standing().machines.iter().any(|m| m.key == keys[1]);
    until("nobody knows it", || !cell.iter().any(|(_, machine)| knows(machine)));
    mkdir(&cell[2].1, &work, "without");
    assert_eq!(names(&cell[3].1, &work), ["without"]);
    // It has not heard of it, so it comes back as if nothing had happened.
    let two = start_hasty(&second);
    let turned = |machine: &Machine| machine.standing().refused.unwrap().unwelcome;
    until("it is turned away", || cell.iter().all(|(_, machine)| turned(machine) > 0));
    for (_, machine) in &cell {
        let lookout = machine.lookout().unwrap();
        assert!(lookout.has_said("it is not welcome, since it was sent away from the cell"));
        assert!(lookout.has_said(&format!("turned away {:?} at 127.0.0.1", keys[1].0)));
    }
    let (first, one) = cell.remove(0);
    one.stop().unwrap();
    let one = start_hasty(&first);
    until("it is turned away", || turned(&one) > 0);
    drop((one, two));
    for (_, machine) in cell {
        machine.stop().unwrap();
    }
}

#[test]
fn a_member_without_a_successor_is_away_for_the_others_once_it_was_sent_away() {
    let mut cell = hasty_cell("lonely", 4);
    let key = key_of(&cell[3].1);
    let revoked = cell[0].1.registrar().revoke(&key.to_string()).unwrap();
    assert_eq!(revoked, crate::Revoked { key, was_member: true, has_successor: false });
    let (fourth, four) = cell.remove(3);
    mkdir(&cell[1].1, &FileId::ROOT, "without");
    assert_eq!(names(&cell[2].1, &FileId::ROOT), ["without"]);
    assert_eq!(members(&cell[0].1), 4, "it still counts");
    // Whether it has heard of it before it was cut off, or not.
    let failure = four.standing().group.failure;
    drop(four);
    if failure.is_some_and(|failure| failure.contains("sent this machine away")) {
        let refusal = fourth.refusal();
        assert!(refusal.contains("sent this machine away"), "{refusal}");
    }
    for (_, machine) in cell {
        machine.stop().unwrap();
    }
}

/// An issuer of the cell whose root key is in a directory, for that long from now.
pub(super) fn issuer_of(home: &Home, lasts: u64) -> overlay::Issuer {
    let root = crate::key::read(&home.0.join("root")).unwrap();
    let key = base::SecretKey::from_seed(crate::key::fresh_seed().unwrap());
    overlay::Issuer::by(&root, key, crate::cell::seconds_now() + lasts)
}

/// An invitation by the issuer of a directory, on these terms: how long it lasts, and what it gives, from now.
fn invitation(home: &Home, lasts: u64, gives: u64) -> overlay::Invitation {
    invitation_by(&issuer_of(home, 1_000), &crate::key::fresh_secret().unwrap(), lasts, gives)
}

/// The code of such an invitation, by the machine in a directory.
fn code_of(home: &Home, issuer: &overlay::Issuer, lasts: u64, gives: u64) -> overlay::Text {
    let secret = crate::key::fresh_secret().unwrap();
    let invitation = invitation_by(issuer, &secret, lasts, gives);
    Membership::read(&home.0).unwrap().code(&home.0, secret, &invitation).unwrap()
}

fn invitation_by(
    issuer: &overlay::Issuer,
    secret: &overlay::Secret,
    lasts: u64,
    gives: u64,
) -> overlay::Invitation {
    let now = crate::cell::seconds_now();
    let (count, patrons) = (1, overlay::Patrons::Any);
    let (expires, certificate_expires_max) = (now + lasts, now + gives);
    let terms = overlay::Terms { count, expires, certificate_expires_max, patrons };
    overlay::Invitation::new(issuer, secret, terms).unwrap()
}

fn address_of(machine: &Machine) -> SocketAddr {
    machine.standing().group.address.unwrap()
}

#[test]
fn who_is_not_let_in_is_told_why_and_so_are_the_people() {
    let ((home, one), (other_home, _other)) = (found("refuse-1"), found("refuse-2"));
    let has_said = |words: &str| one.lookout().unwrap().has_said(words);
    // Asks to join with this certificate, as whoever has this key.
    let ask = |key: &base::SecretKey, certificate: overlay::Certificate| {
        let settings = crate::NetworkSettings {
            key: key.clone(),
            bind: ANYWHERE,
            limits: crate::Limits::default(),
        };
        let network = crate::Network::start(settings, std::sync::Arc::new(Deaf)).unwrap();
        let join = wire::Join::new(certificate, wire::Whereabouts::default(), key, 0);
        let query = wire::encode(&wire::Query::Join(Box::new(join)));
        let (_, answer) = network.ask_at(address_of(&one), query, HOUR).unwrap();
        match wire::decode(&answer).unwrap() {
            wire::Answer::Refused(why) => why,
            wire::Answer::Joined(_) => "joined".to_owned(),
            other => panic!("{other:?}"),
        }
    };
    let key = |seed| base::SecretKey::from_seed([seed; 32]);
    let later = crate::cell::seconds_now() + 1_000;
    let check = |key: &base::SecretKey, invitation: &overlay::Invitation, words: &str| {
        let why = ask(key, invitation.certify(key, later).unwrap());
        assert!(why.contains(words), "{why}");
        let line = format!("{:?} was refused: {why}", key.public());
        assert!(words == "joined" || has_said(&line), "no line says {line}");
    };
    let fresh = invitation(&home, 1_000, 9_000);
    check(&key(51), &fresh, "joined");
    check(&key(52), &fresh, "this invitation is used up");
    check(&key(53), &invitation(&home, 0, 9_000), "the invitation expired");
    check(&key(54), &invitation(&other_home, 1_000, 9_000), "it is of cell");
    let brief = invitation(&home, 1_000, 9_000).certify(&key(55), 1).unwrap();
    let why = ask(&key(55), brief);
    assert!(why.contains("certificate") && why.contains("expired"), "{why}");
    assert!(has_said(&why));
    // Bytes that are no request at all.
    let settings =
        crate::NetworkSettings { key: key(56), bind: ANYWHERE, limits: crate::Limits::default() };
    let network = crate::Network::start(settings, std::sync::Arc::new(Deaf)).unwrap();
    network.ask_at(address_of(&one), vec![0xff; 100], HOUR).unwrap();
    assert!(has_said("malformed bytes"));
}

/// Lets nobody in.
struct Deaf;

impl crate::Reception for Deaf {
    fn welcome(&self, _: &base::PublicKey) -> crate::Welcome {
        crate::Welcome::Refused
    }

    fn on_frame(&self, _: &base::PublicKey, _: crate::Lane, _: Vec<u8>) -> Duration {
        Duration::ZERO
    }

    fn on_ask(&self, _: &crate::Asker, _: Vec<u8>, _: &dyn Fn() -> bool) -> Vec<u8> {
        Vec::new()
    }
}

#[test]
fn a_machine_whose_certificate_expires_is_no_longer_let_in() {
    let (first, one) = found("expire-1");
    let home = Home::new("expire-2");
    let code = code_of(&first, &issuer_of(&first, 1_000), 1_000, 6);
    // Else it would be renewed.
    let _kept = put_away_issuer(&first);
    Machine::join(&home.0, code.reveal(), ANYWHERE).unwrap();
    let two = Machine::start(&home.0).unwrap();
    mkdir(&two, &FileId::ROOT, "in-time");
    let has_said = |words: &str| one.lookout().unwrap().has_said(words);
    // Whatever it says from then on, it says in vain.
    until("expiring", || {
        _ = one.lookout().unwrap().call(Duration::from_millis(1));
        two.lookout().unwrap().call(Duration::from_millis(100));
        has_said("its certificate has expired")
    });
    drop(two);
    let failure = Machine::start(&home.0).err().unwrap().to_string();
    assert!(failure.contains("the certificate of this machine has expired"), "{failure}");
    assert_eq!(names(&one, &FileId::ROOT), ["in-time"]);
    one.stop().unwrap();
}

/// The issuer's key is kept elsewhere from now on: there.
pub(super) fn put_away_issuer(home: &Home) -> Home {
    let kept = Home(home.0.with_extension("kept"));
    fs::create_dir_all(&kept.0).unwrap();
    fs::rename(home.0.join("issuer"), kept.0.join("issuer")).unwrap();
    kept
}

/// A machine with a certificate that ends soon, by the issuer of a machine that runs.
pub(super) fn join_briefly(first: &Home, name: &str) -> Home {
    let home = Home::new(name);
    let code = code_of(first, &issuer_of(first, 1_000), 1_000, 1_000);
    Machine::join(&home.0, code.reveal(), ANYWHERE).unwrap();
    home
}

/// For how many years a machine still has a certificate, as another knows it.
pub(super) fn years_left(seen_by: &Machine, key: &crate::Key) -> u64 {
    let machines = seen_by.standing().machines;
    let machine = machines.into_iter().find(|machine| machine.key == *key).unwrap();
    machine.expires.unwrap().saturating_sub(crate::cell::seconds_now()) / (364 * 86_400)
}

#[test]
fn a_machine_renews_its_certificate_by_itself_where_an_issuer_is_at_hand() {
    let (first, one) = found("renew-1");
    let second = join_briefly(&first, "renew-2");
    let before = Membership::read(&second.0).unwrap();
    let two = Machine::start(&second.0).unwrap();
    let key = key_of(&two);
    until("being renewed", || years_left(&one, &key) == 3);
    assert_eq!(years_left(&two, &key), 3);
    let after = Membership::read(&second.0).unwrap();
    assert!(after.expires().unwrap() > before.expires().unwrap() + 86_400);
    // It is the same machine, at the same place.
    let number = |membership: &Membership| {
        membership.certificate.verify(&membership.authority, 0).unwrap().number(0)
    };
    assert_eq!((number(&before), before.client), (number(&after), after.client));
    let refused = two.registrar().renew(None).unwrap_err().to_string();
    assert!(refused.contains("half of the time"), "{refused}");
    two.stop().unwrap();
    one.stop().unwrap();
}

#[test]
fn a_member_renews_its_certificate_and_the_others_know_it() {
    let mut cell = hasty_cell("renew-four", 3);
    let fourth = join_briefly(&cell[0].0, "renew-four-4");
    let four = start_hasty(&fourth);
    cell.push((fourth, four));
    until("growing", || cell.iter().all(|(_, machine)| members(machine) == 4));
    let key = key_of(&cell[3].1);
    until("being renewed", || cell.iter().all(|(_, machine)| years_left(machine, &key) == 3));
    for (_, machine) in cell {
        machine.stop().unwrap();
    }
}

#[test]
fn while_no_issuer_is_at_hand_its_key_renews_by_hand() {
    let (first, one) = found("renew-away-1");
    let (other, _other) = found("renew-away-3");
    let second = join_briefly(&first, "renew-away-2");
    let kept = put_away_issuer(&first);
    let two = Machine::start(&second.0).unwrap();
    let key = key_of(&two);
    let refused = two.registrar().renew(None).unwrap_err().to_string();
    assert!(refused.contains("issuer's key"), "{refused}");
    let refused = two.registrar().renew(Some(&other.0.join("issuer"))).unwrap_err().to_string();
    assert!(refused.contains("it is of cell"), "{refused}");
    assert_eq!(years_left(&one, &key), 0);
    two.registrar().renew(Some(&kept.0.join("issuer"))).unwrap();
    until("the others know it", || years_left(&one, &key) == 3);
    two.stop().unwrap();
    one.stop().unwrap();
}

#[test]
fn a_machine_that_was_sent_away_is_not_renewed() {
    let (first, one) = found("renew-not-1");
    let second = join_briefly(&first, "renew-not-2");
    let kept = put_away_issuer(&first);
    let two = Machine::start(&second.0).unwrap();
    mkdir(&two, &FileId::ROOT, "early");
    fs::rename(kept.0.join("issuer"), first.0.join("issuer")).unwrap();
    let before = Membership::read(&second.0).unwrap().expires().unwrap();
    one.registrar().revoke(&key_of(&two).to_string()).unwrap();
    let refused = two.registrar().renew(None).unwrap_err().to_string();
    assert!(refused.contains("no machine that answers"), "{refused}");
    assert_eq!(Membership::read(&second.0).unwrap().expires().unwrap(), before);
    drop(two);
    one.stop().unwrap();
}

#[test]
fn whoever_has_the_key_of_an_issuer_renews_its_own_certificate() {
    let home = Home::new("renew");
    Machine::init(&home.0, Some(ANYWHERE)).unwrap();
    let expires = |membership: &Membership| {
        membership.certificate.verify(&membership.authority, 0).unwrap().expires
    };
    let mut membership = Membership::read(&home.0).unwrap();
    let machine = crate::key::read(&home.0.join("key")).unwrap();
    let brief = invitation(&home, 1_000, 1_000);
    membership.certificate = brief.certify(&machine, crate::cell::seconds_now() + 1_000).unwrap();
    membership.save(&home.0).unwrap();
    let one = Machine::start(&home.0).unwrap();
    let renewed = expires(&Membership::read(&home.0).unwrap());
    assert!(renewed > crate::cell::seconds_now() + overlay::Renewal::SPAN - 1_000);
    one.stop().unwrap();
}

#[test]
fn an_issuer_on_another_machine_does_all_that_the_founders_does_and_is_revoked_alone() {
    let (first, one) = found("issuer-1");
    let second = Home::new("issuer-2");
    let code = Machine::invite(&first.0, HOUR).unwrap();
    Machine::join(&second.0, code.reveal(), ANYWHERE).unwrap();
    let two = Machine::start(&second.0).unwrap();
    let refused = Machine::invite(&second.0, HOUR).unwrap_err().to_string();
    assert!(refused.contains("croft issuer take"), "{refused}");
    let root = crate::Root::made(&first.0.join("root")).unwrap();
    let made = root.new_issuer(overlay::Power::ALL.into(), HOUR).unwrap();
    crate::take_issuer(&second.0, &made.text).unwrap();
    // The founder's is revoked: what it has made before is of no use, and whoever came by it stays.
    let late = Machine::invite(&first.0, HOUR).unwrap();
    let founders = one.standing().powers.issuer.unwrap().key;
    assert_ne!(founders, made.key);
    one.registrar().revoke_issuer(&root.revoke_issuer(&founders)).unwrap();
    let third = Home::new("issuer-3");
    let refused = Machine::join(&third.0, late.reveal(), ANYWHERE).unwrap_err().to_string();
    assert!(refused.contains("the issuer was revoked"), "{refused}");
    mkdir(&two, &FileId::ROOT, "stays");
    // The other one goes on. It has no vote, and says where there is one.
    let code = Machine::invite(&second.0, HOUR).unwrap();
    Machine::join(&third.0, code.reveal(), ANYWHERE).unwrap();
    let three = Machine::start(&third.0).unwrap();
    mkdir(&three, &FileId::ROOT, "new");
    let came_by = |key: &crate::Key| {
        let machines = one.standing().machines;
        machines.iter().find(|machine| machine.key == *key).unwrap().issuer.unwrap()
    };
    assert_eq!((came_by(&key_of(&two)), came_by(&key_of(&three))), (founders, made.key));
    let refused = one.registrar().revoke(&key_of(&two).to_string()).unwrap_err().to_string();
    assert!(refused.contains("the issuer was revoked"), "{refused}");
    crate::take_issuer(&first.0, &made.text).unwrap();
    one.registrar().revoke(&key_of(&three).to_string()).unwrap();
    drop(three);
    two.stop().unwrap();
    one.stop().unwrap();
}

#[test]
fn an_invitation_of_an_issuer_whose_warrant_is_over_or_is_of_another_cell_lets_nobody_in() {
    let (first, one) = found("warrant-1");
    let (other, _other) = found("warrant-2");
    for (issuer, why) in [
        (issuer_of(&first, 0), "the issuer's warrant expired"),
        // It would be let in elsewhere.
        (issuer_of(&other, 1_000), "it is of cell"),
    ] {
        let code = code_of(&first, &issuer, 500, 500);
        let home = Home::new("warrant-3");
        let joined = Machine::join(&home.0, code.reveal(), ANYWHERE);
        let refused = joined.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    one.stop().unwrap();
}
