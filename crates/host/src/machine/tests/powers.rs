//! What the holder of an issuer's key can do that has one power alone.

use overlay::Power;

use super::{cells::*, *};
use crate::Root;

/// A machine has an issuer with one power from now on, and no other one.
fn take(home: &Home, root: &Root, power: Power) {
    let made = root.new_issuer([power].into(), HOUR).unwrap();
    crate::take_issuer(&home.0, &made.text).unwrap();
}

/// What a machine is told that wants to send another away.
fn revoke(by: &Machine, gone: &Machine) -> Result<crate::Revoked, String> {
    by.registrar().revoke(&key_of(gone).to_string()).map_err(|failure| failure.to_string())
}

fn join_hasty(inviter: &Home, name: &str) -> (Home, Machine) {
    let home = Home::new(name);
    let code = Machine::invite(&inviter.0, HOUR).unwrap();
    Machine::join(&home.0, code.reveal(), ANYWHERE).unwrap();
    let machine = start_hasty(&home);
    (home, machine)
}

#[test]
fn whoever_may_invite_seats_friends_until_they_are_more_than_a_group_bears_and_sends_nobody_away() {
    let mut cell = hasty_cell("friends", 2);
    let root = Root::made(&cell[0].0.0.join("root")).unwrap();
    // From now on the founder has no say in it.
    let _kept = put_away_issuer(&cell[0].0);
    take(&cell[1].0, &root, Power::Invite);
    for number in [3, 4] {
        let friend = join_hasty(&cell[1].0, &format!("friends-{number}"));
        cell.push(friend);
    }
    let (founder, friends) = cell.split_first().unwrap();
    let has_seat = |friend: &Machine| {
        let (key, machines) = (key_of(friend), founder.1.standing().machines);
        machines.iter().any(|machine| machine.key == key && machine.is_member)
    };
    until("all have seats", || friends.iter().all(|(_, friend)| has_seat(friend)));
    assert_eq!((members(&founder.1), friends.len()), (4, 3), "f is 1: they decide without it");
    for by in [&friends[0].1, &founder.1] {
        let refused = revoke(by, &friends[2].1).unwrap_err();
        assert!(refused.contains("revoke"), "{refused}");
    }
    for (_, machine) in cell {
        machine.stop().unwrap();
    }
}

#[test]
fn whoever_may_renew_keeps_a_machine_and_lets_none_in_until_it_is_sent_away() {
    let (first, one) = found("keeps-1");
    let root = Root::made(&first.0.join("root")).unwrap();
    let second = join_briefly(&first, "keeps-2");
    let _kept = put_away_issuer(&first);
    take(&first, &root, Power::Renew);
    let two = Machine::start(&second.0).unwrap();
    let key = key_of(&two);
    until("being renewed", || years_left(&one, &key) == 3);
    let refused = Machine::invite(&first.0, HOUR).unwrap_err().to_string();
    assert!(refused.contains("invite"), "{refused}");
    assert!(revoke(&one, &two).unwrap_err().contains("revoke"));
    // Whoever may send it away does so, and no certificate helps.
    take(&first, &root, Power::Revoke);
    revoke(&one, &two).unwrap();
    take(&first, &root, Power::Renew);
    // Whatever it says of itself by then.
    _ = two.registrar().renew(Some(&first.0.join("issuer")));
    let turned = || one.standing().refused.unwrap().unwelcome;
    until("it is turned away", || turned() > 0);
    assert!(one.standing().machines.iter().all(|machine| machine.key != key));
    drop(two);
    one.stop().unwrap();
}
