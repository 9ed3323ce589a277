//! Whoever sends much has much dropped, and keeps nobody waiting.

use base::Rng;

use super::*;

const NOW: Instant = Instant::from_secs(9);

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

fn machine(number: u8) -> Sender {
    Sender::Machine(key(number))
}

/// Machines 1 to 4 sit in the group.
fn mailroom(limits: Limits) -> Mailroom<u32> {
    let mut mailroom = Mailroom::new(limits);
    mailroom.seat((1..5).map(key).collect());
    mailroom
}

fn put(mailroom: &mut Mailroom<u32>, from: Sender, count: u32, bytes: usize) -> usize {
    (0..count).filter(|letter| mailroom.put(NOW, from, Kind::Word, bytes, *letter)).count()
}

#[test]
fn what_does_not_fit_in_a_senders_own_part_is_dropped_and_counted_and_others_have_room() {
    let limits = Limits { posts_max: 3, frames_max: 5, others_max: 8, ..Limits::default() };
    let mut mailroom = mailroom(limits);
    assert_eq!(put(&mut mailroom, machine(9), 99, 1), 4, "half of what those without a vote share");
    assert_eq!(put(&mut mailroom, machine(8), 99, 1), 2);
    assert_eq!(put(&mut mailroom, Sender::Stranger, 99, 1), 1);
    assert_eq!(put(&mut mailroom, machine(1), 99, 1), 5);
    assert_eq!(put(&mut mailroom, machine(2), 99, 1), 5);
    assert_eq!(put(&mut mailroom, Sender::Own, 99, 1), 3);
    assert_eq!((mailroom.len(), mailroom.dropped()), (20, 6 * 99 - 20));
}

#[test]
fn bytes_are_bounded_for_each_and_for_all_without_a_vote() {
    let limits = Limits { frame_bytes_max: 100, other_bytes_max: 150, ..Limits::default() };
    let mut mailroom = mailroom(limits);
    assert_eq!(put(&mut mailroom, machine(1), 9, 30), 3);
    assert_eq!(put(&mut mailroom, machine(9), 9, 30), 3, "and 60 are left");
    assert_eq!(put(&mut mailroom, machine(8), 9, 30), 1, "and 30 are left");
    assert_eq!(put(&mut mailroom, machine(2), 1, 101), 0);
    assert_eq!(put(&mut mailroom, machine(2), 1, usize::MAX), 0);
}

#[test]
fn the_letters_of_one_sender_come_in_order_and_none_is_lost_or_doubled() {
    let mut rng = Rng::new(7);
    let mut mailroom = mailroom(Limits::default());
    let mut sent: BTreeMap<Sender, Vec<u32>> = BTreeMap::new();
    let mut come: BTreeMap<Sender, Vec<u32>> = BTreeMap::new();
    for number in 0..20_000 {
        let from = match rng.below(9) {
            0 => Sender::Own,
            1 => Sender::Stranger,
            other => machine(other as u8),
        };
        if rng.chance(0.001) {
            mailroom.seat((0..rng.below(9) as u8).map(key).collect());
        }
        let size_max = 1 << rng.below(21);
        let bytes = rng.below(size_max) as usize;
        if mailroom.put(NOW, from, Kind::Word, bytes, number) {
            sent.entry(from).or_default().push(number);
        }
        if rng.chance(0.1) {
            mailroom
                .take()
                .into_iter()
                .for_each(|(from, one)| come.entry(from).or_default().push(one));
        }
    }
    while !mailroom.is_empty() {
        mailroom.take().into_iter().for_each(|(from, one)| come.entry(from).or_default().push(one));
    }
    assert_eq!(come, sent);
    assert_eq!((mailroom.len(), mailroom.others), (0, (0, 0)));
}

#[test]
fn a_round_has_something_of_each_member_and_little_of_all_others() {
    let mut mailroom = mailroom(Limits::default());
    for number in 100..200 {
        put(&mut mailroom, machine(number), 250, 1 << 10);
    }
    for member in 1..5 {
        put(&mut mailroom, machine(member), 2, 100);
    }
    put(&mut mailroom, Sender::Own, 2, 100);
    let round = mailroom.take();
    let favoured = round.iter().filter(|(from, _)| *from <= machine(4)).count();
    let cost = LETTER + Duration::from_micros(8);
    let most = 2 * ROUND.as_nanos() / cost.as_nanos();
    assert_eq!(favoured, 10, "all that waits of them");
    assert!(round.len() - favoured <= most as usize, "{} of the others", round.len() - favoured);
}

#[test]
fn those_without_a_vote_take_turns() {
    let mut mailroom = mailroom(Limits { others_max: 1 << 20, ..Limits::default() });
    for number in 10..20 {
        put(&mut mailroom, machine(number), 250, 1 << 10);
    }
    let mut reads = BTreeMap::<Sender, usize>::new();
    for _ in 0..5 {
        for (from, _) in mailroom.take() {
            *reads.entry(from).or_default() += 1;
        }
    }
    assert_eq!(reads.len(), 10, "two in each of five rounds");
    let (least, most) = (reads.values().min().unwrap(), reads.values().max().unwrap());
    assert_eq!(least, most);
}

#[test]
fn long_letters_buy_no_more_than_short_ones() {
    let mut mailroom = mailroom(Limits::default());
    put(&mut mailroom, machine(1), 100, 64 << 10);
    put(&mut mailroom, machine(2), 100, 128);
    let mut bytes = [0, 0];
    for (from, _) in mailroom.take() {
        let of = usize::from(from == machine(2));
        bytes[of] += [64 << 10, 128][of];
    }
    assert_eq!(
        bytes,
        [18 * (64 << 10), 100 * 128],
        "10 ms of each: 18 of 532 us, and all of 21 us"
    );
}

#[test]
fn a_letter_that_costs_more_than_a_round_has_its_turn_when_it_has_waited_long_enough() {
    let mut mailroom = mailroom(Limits::default());
    put(&mut mailroom, machine(1), 1, 8 << 20);
    let mut rounds = 0;
    while !mailroom.is_empty() {
        put(&mut mailroom, machine(2), 1, 1);
        rounds += 1;
        let round = mailroom.take();
        assert!(round.iter().any(|(from, _)| *from == machine(2)));
        if round.iter().any(|(from, _)| *from == machine(1)) {
            break;
        }
    }
    assert_eq!(rounds, 7, "65.6 ms in turns of 10");
}

#[test]
fn whoever_has_no_vote_is_not_read_from_for_a_while_when_it_has_used_up_its_time() {
    let mut mailroom = mailroom(Limits::default());
    assert_eq!(mailroom.rest(NOW, &machine(9)), Duration::ZERO);
    let burst = mailroom.limits.debt_max;
    mailroom.charge(NOW, &machine(9), (burst + Duration::from_millis(10)) / LOOKS);
    assert_eq!(mailroom.rest(NOW, &machine(8)), Duration::ZERO, "that is its own affair");
    let rest = mailroom.rest(NOW, &machine(9));
    assert!((20..21).contains(&rest.as_millis()), "at half of the time: {rest:?}");
    mailroom.put(NOW, Sender::Own, Kind::Wish, 1, 0);
    let rest = mailroom.rest(NOW, &machine(9));
    assert!((200..201).contains(&rest.as_millis()), "at a twentieth: {rest:?}");
    mailroom.charge(NOW, &machine(9), Duration::from_secs(3_600));
    assert_eq!(mailroom.rest(NOW, &machine(9)), REST_MAX);
    mailroom.charge(NOW, &machine(1), Duration::from_secs(3_600));
    assert_eq!(mailroom.rest(NOW, &machine(1)), Duration::ZERO, "it has a vote");
}

#[test]
fn what_waits_of_a_machine_that_loses_its_seat_is_not_favoured_any_more() {
    let mut mailroom = mailroom(Limits { others_max: 4, ..Limits::default() });
    put(&mut mailroom, machine(1), 10, 1);
    mailroom.seat(BTreeSet::new());
    assert_eq!(put(&mut mailroom, machine(1), 1, 1), 0, "it has more than its part already");
    assert_eq!(mailroom.take().len(), 10);
    assert_eq!(mailroom.others, (0, 0));
    assert_eq!(put(&mut mailroom, machine(1), 9, 1), 2);
}
