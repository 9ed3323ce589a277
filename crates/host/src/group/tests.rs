//! What a group does when the disk is full, when it holds too much, and after a crash.

use std::{fs, io::Write};

use directory::Users;
use node::{
    Limits,
    mailroom::{Kind, Sender},
};

use super::{disk::FULL_FACTOR, *};
use crate::{cell::Membership, log::scratch::Scratch};

struct Home {
    scratch: Scratch,
    inbox: Arc<Mailbox<Post>>,
}

impl Home {
    fn new() -> Home {
        let scratch = Scratch::new("group");
        Membership::found(&scratch.path, None, overlay::Patrons::Any, &scratch.path.join("root"))
            .unwrap()
            .save(&scratch.path)
            .unwrap();
        Home { scratch, inbox: Arc::new(Mailbox::new(Limits::default())) }
    }

    fn open(&self) -> Group {
        let home = &self.scratch.path;
        let store = Arc::new(Store::open(&home.join("store")).unwrap());
        let content = Arc::new(Content::open(&home.join("content"), &store).unwrap());
        let inbox = Arc::clone(&self.inbox);
        let membership = Membership::read(home).unwrap();
        Group::open(home, store, content, Clock, inbox, membership, Arc::default()).unwrap()
    }
}

impl Group {
    fn admit(&mut self, client: u32) -> Result<(), Failure> {
        let mut out = Vec::new();
        let input = MemberInput::Admit { client: Client(client), users: Users::Any };
        self.step(Input::Member(input), &mut out);
        self.follow(out, &mut Vec::new())
    }

    fn record_count(&self) -> usize {
        self.server.member().directory().sizes().records
    }

    fn told(&self) -> Standing {
        self.standing().lock().unwrap().clone()
    }
}

#[test]
fn a_full_disk_takes_the_ballast_then_holds_everything_up_and_nothing_is_lost() {
    let home = Home::new();
    let ballast = home.scratch.path.join("reserve");
    fs::write(&ballast, "room").unwrap();
    let mut group = home.open();
    group.log.be_full_for(1);
    group.admit(2).unwrap();
    assert!(!ballast.exists() && !group.told().is_full, "the ballast was enough");
    group.log.be_full_for(1);
    group.admit(3).unwrap();
    assert!(!group.told().is_full, "it is over");
    let height = group.server.member().height();
    drop(group);
    let group = home.open();
    assert_eq!(group.server.member().height(), height);
    assert!(
        [1, 2, 3].into_iter().all(|client| group.server.member().directory().hears(Client(client)))
    );
}

#[test]
fn a_machine_that_is_to_stop_does_not_wait_for_room() {
    let home = Home::new();
    let mut group = home.open();
    group.ballast.free();
    home.inbox.close();
    group.log.be_full_for(u32::MAX);
    assert!(group.admit(2).unwrap_err().is_full());
    assert!(group.told().is_full);
}

#[test]
fn too_many_records_go_also_between_checkpoints() {
    let home = Home::new();
    let mut group = home.open();
    group.checkpoint().unwrap();
    assert!(group.record_count() > 0);
    group.records_max = 0;
    let settings = client::Settings::of(Client(1));
    let on_lost = Box::new(|_| {});
    let (desk, keeper) = Desk::start(settings, Clock, Arc::clone(&home.inbox), on_lost);
    let from = PublicKey::from_bytes([9; 32]);
    let letter = Post::Frame { from, bytes: b"nonsense".to_vec() };
    home.inbox.post_from(Sender::Machine(from), Kind::Word, 8, letter);
    home.inbox.close();
    group.work(&desk).unwrap();
    assert_eq!(group.record_count(), 0);
    desk.stop();
    keeper.join().unwrap();
}

#[test]
fn what_is_not_stored_yet_stays_and_is_not_tried_again_and_again() {
    let home = Home::new();
    let mut group = home.open();
    let count = group.record_count();
    group.records_max = 0;
    group.release();
    assert_eq!((group.record_count(), group.records_max), (count, 2 * count));
    group.checkpoint().unwrap();
    assert_eq!(group.records_max, Limits::default().records_max);
}

#[test]
fn what_a_crash_has_torn_is_told() {
    let home = Home::new();
    drop(home.open());
    let logs = fs::read_dir(home.scratch.path.join("log")).unwrap();
    let log = logs.map(|entry| entry.unwrap().path()).max().unwrap();
    let pack = home.scratch.path.join("content/pack/0000000001");
    for (path, count) in [(&log, 7), (&pack, 9)] {
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&vec![1; count]).unwrap();
    }
    let torn = Torn { log_bytes: 7, content_bytes: 9 };
    assert_eq!(home.open().told().torn, torn);
    assert_eq!(home.open().told().torn, Torn::default());
}

#[test]
fn while_the_disk_is_full_so_much_may_wait_for_it_and_no_more() {
    let home = Home::new();
    let mut group = home.open();
    let much = FULL_FACTOR as u64 * (Limits::default().log_bytes_max + 1);
    (group.is_full, group.log_bytes) = (true, much - 1);
    group.await_room().unwrap();
    assert_eq!((group.is_full, group.log_bytes), (true, much - 1), "that may still wait");
    group.log_bytes = much;
    home.inbox.close();
    group.await_room().unwrap();
    assert_eq!((group.told().is_full, group.log_bytes), (true, much), "it is to stop, full or not");
    assert!(group.is_waiting);
    let home = Home::new();
    let mut group = home.open();
    (group.is_full, group.log_bytes) = (true, much);
    // There is room when it looks again.
    group.await_room().unwrap();
    assert_eq!((group.told().is_full, group.log_bytes, group.is_waiting), (false, 0, false));
}
