//! Machines that are not where they were said to be are found on their own network.

use std::{fs, net::UdpSocket};

use crate::{
    cell::{Cell, can_mount, text},
    draw::Draw,
    spread::Spread,
    wires::Wires,
};

/// Where multicast DNS is spoken.
const EVERYBODY: &str = "224.0.0.251:5353";

#[test]
fn machines_that_all_have_got_other_addresses_find_each_other_whatever_is_shouted_there() {
    let Some(wires) = can_mount().then(|| Wires::real(5)).flatten() else { return };
    let mut spread = Spread::new(wires, 4);
    fs::write(spread.at(0, "note"), "kept").unwrap();
    fs::File::open(spread.at(0, "note")).unwrap().sync_all().unwrap();
    let code = text(&spread.machines[0].ask(&["invite"]).stdout);
    // Nobody is left whom anybody could ask where the others are.
    (0..4).for_each(|machine| spread.kill(machine));
    let address = |machine: usize| format!("10.77.0.{}", 101 + machine);
    let stranger = spread.wires.socket(4);
    shout(&stranger, Draw::new(1));
    for machine in 0..4 {
        spread.wires.readdress(machine, &address(machine));
        spread.machines[machine].launch(&["--listen", &address(machine)]);
    }
    shout(&stranger, Draw::new(2));
    for machine in &mut spread.machines {
        machine.await_ready().unwrap();
    }
    shout(&stranger, Draw::new(3));
    spread.await_well();
    for machine in 0..4 {
        assert_eq!(fs::read_to_string(spread.at(machine, "note")).unwrap(), "kept");
    }
    // The code has the old address of the machine that invited.
    let late = Cell::on(spread.wires.way(4));
    let output = late.ask(&["join", code.trim()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Says things to everybody that make no sense: noise, and noise that begins like a query or an answer.
fn shout(from: &UdpSocket, mut draw: Draw) {
    for number in 0..300 {
        let size = draw.below(1_400) as usize;
        let mut bytes = draw.bytes(size.max(12));
        if number % 3 > 0 {
            let is_answer = u8::from(number % 3 == 1) << 7;
            bytes[..12].copy_from_slice(&[0, 0, is_answer, 0, 0, 1, 0, 2, 0, 1, 0, 1]);
        }
        from.send_to(&bytes, EVERYBODY).unwrap();
    }
}
