//! Whom a member calls and wishes for, told by scripts of who was heard when.

use base::SecretKey;
use overlay::{Invitation, Issuer, Patrons, Revocation, Secret, Terms};

use super::*;
use wire::{Join, Whereabouts};

const HEARD_MAX: usize = Seats::COUNT_MAX + OTHERS_MAX;

/// A cell whose machines are numbered from 0 in the order in which they came. The first is the one that looks.
struct Scene {
    attendance: Attendance,
    members: Seats,
    book: Book,
    keys: Vec<PublicKey>,
}

fn secs(secs: u64) -> Instant {
    Instant::from_secs(1_000 + secs)
}

fn authority() -> SecretKey {
    SecretKey::from_seed([9; 32])
}

fn issuer() -> Issuer {
    Issuer::by(&authority(), SecretKey::from_seed([8; 32]), 1_000)
}

impl Scene {
    fn new(machines: u8, members: &[usize]) -> Scene {
        let mut book = Book::default();
        let mut keys = Vec::new();
        for number in 0..machines {
            let key = SecretKey::from_seed([number + 20; 32]);
            let terms = Terms {
                count: 1,
                expires: 100,
                certificate_expires_max: 1_000,
                patrons: Patrons::Any,
            };
            let invitation =
                Invitation::new(&issuer(), &Secret::new([number + 1; 16]), terms).unwrap();
            let certificate = invitation.certify(&key, 900).unwrap();
            let join = Join::new(certificate, Whereabouts::default(), &key, 1);
            book.admit(&join, &authority().public()).unwrap();
            keys.push(key.public());
        }
        let seats = members.iter().map(|number| first_seat(&keys[*number])).collect();
        let members = Seats::new(seats).unwrap();
        let seating = Seating { members: 4, away_after: Duration::from_secs(120) };
        Scene { attendance: Attendance::new(seating, HEARD_MAX, secs(0)), members, book, keys }
    }

    /// Looks round every 30 s in this time, and hears these each time. Says what it wished last, if anything.
    fn pass(&mut self, from: u64, to: u64, heard: &[usize]) -> Option<Vec<usize>> {
        let mut wish = None;
        for at in (from..=to).step_by(30) {
            wish = self.look(at).wish.or(wish);
            for number in heard {
                self.attendance.on_heard(secs(at), &self.keys[*number]);
            }
            wish = self.look(at).wish.or(wish);
        }
        wish.map(|seats| self.numbers(&seats))
    }

    fn look(&mut self, at: u64) -> Look {
        self.attendance.look(secs(at), &self.keys[0], &self.members, &self.book)
    }

    fn calls(&mut self, at: u64) -> Vec<usize> {
        let calls = self.look(at).calls;
        self.numbers(&calls)
    }

    fn numbers(&self, seats: &[Seat]) -> Vec<usize> {
        let number = |seat: &Seat| self.keys.iter().position(|key| *key == seat.key).unwrap();
        let mut numbers: Vec<usize> = seats.iter().map(number).collect();
        numbers.sort_unstable();
        numbers
    }
}

const ALL: &[usize] = &[0, 1, 2, 3];

#[test]
fn a_group_grows_when_enough_machines_are_there_and_not_for_those_who_only_joined() {
    let mut scene = Scene::new(5, &[0]);
    assert_eq!(scene.calls(0), [1, 2, 3, 4], "whoever could be a member is called");
    assert_eq!(scene.pass(0, 60, &[1, 3]), None);
    assert_eq!(scene.pass(60, 60, &[4]), Some(vec![0, 1, 3, 4]));
}

#[test]
fn a_machine_that_has_nobody_to_wait_for_does_not_look_round() {
    let mut scene = Scene::new(3, &[0]);
    assert_eq!(scene.look(0), Look::default());
    assert_eq!(scene.attendance.look_at(), None);
    scene.attendance.on_change();
    assert!(scene.attendance.look_at().is_some());
}

#[test]
fn only_members_are_called_while_all_of_them_are_there() {
    let mut scene = Scene::new(6, ALL);
    assert_eq!(scene.pass(0, 300, &[1, 2, 3]), None);
    assert_eq!(scene.calls(330), [1, 2, 3]);
    assert_eq!(scene.pass(330, 360, &[1, 2]), None);
    assert_eq!(scene.calls(390), [1, 2, 3, 4, 5], "somebody may have to take a seat soon");
}

#[test]
fn a_member_that_stays_away_is_replaced_by_the_first_that_is_there() {
    let mut scene = Scene::new(7, ALL);
    assert_eq!(scene.pass(0, 90, &[1, 2, 5, 6]), None, "it may still come");
    assert_eq!(scene.pass(120, 120, &[1, 2, 5, 6]), Some(vec![0, 1, 2, 5]));
    assert_eq!(scene.pass(150, 150, &[1, 2, 5, 6]), None, "once is enough");
}

#[test]
fn who_comes_back_in_time_is_wished_for_again() {
    let mut scene = Scene::new(5, ALL);
    assert_eq!(scene.pass(0, 120, &[1, 2, 4]), Some(vec![0, 1, 2, 4]));
    assert_eq!(scene.pass(150, 150, &[1, 2, 3, 4]), Some(ALL.to_vec()));
}

#[test]
fn nobody_is_replaced_by_a_machine_that_is_not_there_or_was_sent_away() {
    let mut scene = Scene::new(6, ALL);
    let revocation = Revocation::new(&issuer(), scene.keys[4], 5);
    let revocation = overlay::Decree::Revoke(revocation);
    scene.book.obey(&revocation, &authority().public(), 5).unwrap();
    assert_eq!(scene.pass(0, 600, &[1, 2, 4]), None);
}

#[test]
fn who_hears_no_quorum_wishes_nothing() {
    let mut scene = Scene::new(6, ALL);
    assert_eq!(scene.pass(0, 600, &[1, 4, 5]), None);
}

#[test]
fn whoever_has_slept_takes_nobody_for_away() {
    let mut scene = Scene::new(6, ALL);
    assert_eq!(scene.pass(0, 30, &[1, 2, 3, 4, 5]), None);
    assert_eq!(scene.pass(9_000, 9_090, &[1, 2, 4, 5]), None);
    assert_eq!(scene.pass(9_120, 9_120, &[1, 2, 4, 5]), Some(vec![0, 1, 2, 4]));
}

#[test]
fn a_member_that_was_sent_away_goes_first_and_at_once() {
    let mut scene = Scene::new(5, ALL);
    scene.pass(0, 60, &[1, 2, 3, 4]);
    let revocation = Revocation::new(&issuer(), scene.keys[2], 5);
    let revocation = overlay::Decree::Revoke(revocation);
    scene.book.obey(&revocation, &authority().public(), 5).unwrap();
    assert_eq!(scene.pass(60, 60, &[1, 3, 4]), Some(vec![0, 1, 3, 4]));
    assert!(!scene.calls(90).contains(&2), "nobody calls it");
}

#[test]
fn no_more_is_remembered_than_there_is_room_for() {
    let mut scene = Scene::new(5, ALL);
    for number in 0..1_000_u32 {
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        scene.attendance.on_heard(secs(1), &PublicKey::from_bytes(bytes));
    }
    assert!(scene.attendance.heard.len() <= HEARD_MAX);
    scene.look(1);
    assert_eq!(scene.attendance.heard.len(), 4);
}
