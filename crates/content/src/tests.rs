//! What becomes of bytes, in the words of those who read and write them.

use base::{Duration, Instant};
use directory::record::Content;
use lease::Client;

use super::*;

const ME: Client = Client(1);
const ANN: Client = Client(2);
const START: Instant = Instant::from_secs(100);

type Bytes = File<&'static str, ()>;

/// A client that says what a test has it say.
struct Said {
    content: Content,
    reads: bool,
    writes: bool,
    is_yielding: bool,
    losses: u64,
    place: u64,
    pushed: u64,
}

impl Said {
    fn of(content: Content) -> Said {
        let (reads, writes) = (true, true);
        Said { content, reads, writes, is_yielding: false, losses: 0, place: 5, pushed: 0 }
    }

    fn reading(content: Content) -> Said {
        Said { writes: false, ..Said::of(content) }
    }

    fn nothing(content: Content) -> Said {
        Said { reads: false, writes: false, ..Said::of(content) }
    }
}

impl Ledger for Said {
    fn me(&self) -> Client {
        ME
    }
    fn is_shared(&self) -> bool {
        true
    }
    fn holds(&self, writes: bool) -> Option<Content> {
        let is_held = if writes { self.writes } else { self.reads };
        is_held.then(|| self.content.clone())
    }
    fn is_yielding(&self) -> bool {
        self.is_yielding
    }
    fn losses(&self) -> u64 {
        self.losses
    }
    fn place(&self) -> u64 {
        self.place
    }
    fn is_pushed(&self, place: u64) -> bool {
        place <= self.pushed
    }
}

fn content(home: Client, version: u64) -> Content {
    Content { size: 9, home: Some(home), version, ..Content::default() }
}

fn live(home: Client) -> Content {
    Content { is_live: true, ..content(home, 7) }
}

/// A file with these bytes at hand, as the directory knows them.
fn known(content: &Content) -> Bytes {
    let mut file = Bytes::default();
    file.load(Body::Memory("bytes"));
    file.note_loaded(content.clone(), false);
    file
}

/// The same, written since.
fn written(content: &Content) -> Bytes {
    let mut file = known(content);
    *file.memory_mut().unwrap() = "news";
    file
}

fn next(quest: &mut Quest<&'static str, ()>, file: &mut Bytes, said: &Said) -> Next {
    quest.next(START, file, said, None)
}

fn quest(need: Need) -> Quest<&'static str, ()> {
    Quest::new(need, START)
}

#[test]
fn bytes_at_hand_are_used_while_the_content_is_held() {
    let (mut file, mut quest) = (known(&content(ANN, 1)), quest(Need::Read));
    assert_eq!(next(&mut quest, &mut file, &Said::reading(content(ANN, 1))), Next::Go);
    let said = Said::nothing(content(ANN, 1));
    assert_eq!(next(&mut quest, &mut file, &said), Next::Hold { writes: false });
}

#[test]
fn bytes_that_others_have_changed_are_fetched_before_they_are_read() {
    let (mut file, mut quest) = (known(&content(ANN, 1)), quest(Need::Read));
    let said = Said::reading(content(ANN, 2));
    assert_eq!(next(&mut quest, &mut file, &said), Next::Fetch(content(ANN, 2)));
    quest.fetched(content(ANN, 2), Body::Memory("new"));
    assert_eq!(next(&mut quest, &mut file, &said), Next::Take);
    quest.take(&mut file);
    assert_eq!(next(&mut quest, &mut file, &said), Next::Go);
    assert_eq!(*file.body(), Body::Memory("new"));
}

#[test]
fn bytes_that_came_too_late_are_fetched_again() {
    let (mut file, mut quest) = (Bytes::default(), quest(Need::Read));
    quest.fetched(content(ANN, 1), Body::Memory("old"));
    let said = Said::reading(content(ANN, 2));
    assert_eq!(next(&mut quest, &mut file, &said), Next::Fetch(content(ANN, 2)));
}

#[test]
fn whoever_writes_first_fetches_and_then_asks_for_the_right_to() {
    let (mut file, mut quest) = (Bytes::default(), quest(Need::Write));
    let said = Said::reading(content(ANN, 2));
    assert_eq!(next(&mut quest, &mut file, &said), Next::Fetch(content(ANN, 2)));
    quest.fetched(content(ANN, 2), Body::Memory("new"));
    assert_eq!(next(&mut quest, &mut file, &said), Next::Hold { writes: true });
    assert_eq!(next(&mut quest, &mut file, &Said::of(content(ANN, 2))), Next::Take);
}

#[test]
fn nobody_uses_what_is_just_being_given_up_and_nobody_waits_for_ever() {
    let (mut file, mut quest) = (known(&content(ME, 1)), quest(Need::Write));
    let said = Said { is_yielding: true, ..Said::of(content(ME, 1)) };
    assert_eq!(next(&mut quest, &mut file, &said), Next::Wait(START + PAUSE));
    let late = START + PATIENCE + PAUSE;
    assert_eq!(quest.next(late, &mut file, &said, None), Next::TimedOut);
    let calm = Said { is_yielding: false, ..said };
    assert_eq!(quest.next(late, &mut file, &calm, None), Next::Go, "it is at hand all the same");
}

#[test]
fn what_was_written_and_never_told_is_read_only_with_the_right_to_tell_it() {
    let (mut file, mut quest) = (written(&content(ME, 1)), quest(Need::Read));
    let said = Said::reading(content(ME, 1));
    assert_eq!(next(&mut quest, &mut file, &said), Next::Hold { writes: true });
    assert_eq!(next(&mut quest, &mut file, &Said::of(content(ME, 1))), Next::Go);
}

#[test]
fn what_was_written_and_never_told_is_kept_aside_if_others_were_faster() {
    let (mut file, mut quest) = (written(&content(ME, 1)), quest(Need::Write));
    let said = Said::of(content(ANN, 4));
    assert_eq!(next(&mut quest, &mut file, &said), Next::Aside);
    assert_eq!(next(&mut quest, &mut file, &said), Next::Aside, "until that is done");
    file.forget();
    assert_eq!(next(&mut quest, &mut file, &said), Next::Fetch(content(ANN, 4)));
}

#[test]
fn what_was_told_and_lost_is_told_again_if_nobody_was_faster() {
    let mut file = written(&content(ME, 1));
    let mut said = Said::of(content(ME, 1));
    file.note_told(content(ME, 2), 0, &said);
    file.note_settled(None);
    file.note_stored();
    assert!(!file.has_news(None));
    said.losses = 1;
    assert_eq!(file.follow(&content(ME, 1), &said, None), Follow::Again);
    assert_eq!(file.settle(&said, None), Settle::Memory { stores: true, tells: true });
}

#[test]
fn what_was_told_and_lost_is_kept_aside_if_others_were_faster() {
    let mut file = written(&content(ME, 1));
    let said = Said::of(content(ME, 1));
    file.note_told(content(ME, 2), 0, &said);
    file.note_settled(None);
    file.note_stored();
    assert_eq!(file.follow(&content(ANN, 3), &said, None), Follow::Aside);
    let sure = Said { pushed: 5, ..said };
    assert_eq!(file.follow(&content(ANN, 3), &sure, None), Follow::Forgotten, "they have had it");
}

#[test]
fn after_a_lost_session_nothing_is_told_before_the_right_to_is_had_again() {
    let mut file = written(&content(ME, 1));
    let said = Said::nothing(content(ME, 1));
    assert_eq!(file.settle(&said, None), Settle::Regain);
    assert_eq!(file.regain(&said, None), Regain::Tell);
    assert_eq!(file.regain(&Said::of(content(ME, 1)), None), Regain::Nothing);
}

#[test]
fn bytes_that_change_elsewhere_without_a_word_are_used_there() {
    let (mut file, mut quest) = (Bytes::default(), quest(Need::Read));
    let said = Said::reading(live(ANN));
    assert_eq!(next(&mut quest, &mut file, &said), Next::Visit);
    let (mut visit, mut silence) = (Visit::new(START), Silence::default());
    let there = |patience| Way::There { home: ANN, patience };
    assert_eq!(visit.way(START, &file, &said, &silence), there(DEED_MAX));
    silence.note(ANN, START);
    assert_eq!(visit.way(START, &file, &said, &silence), there(ASK_MAX));
}

#[test]
fn a_home_that_says_for_long_that_nothing_changes_there_is_believed_in_the_end() {
    let (mut file, mut visit) = (Bytes::default(), Visit::new(START));
    let (said, silence) = (Said::reading(live(ANN)), Silence::default());
    visit.way(START, &file, &said, &silence);
    assert!(matches!(visit.answered(START, &mut file, Heard::Away), Then::Again(_)));
    let late = START + Duration::from_secs(11);
    visit.way(late, &file, &said, &silence);
    assert_eq!(visit.answered(late, &mut file, Heard::Away), Then::Look);
    assert_eq!(visit.way(late, &file, &said, &silence), Way::Here);
    let newer = Said::reading(Content { version: 8, ..live(ANN) });
    assert!(matches!(visit.way(late, &file, &newer, &silence), Way::There { .. }));
}

#[test]
fn a_machine_bids_for_what_it_wrote_last_and_is_worth_it_and_nobody_else_wants() {
    let chance = Chance {
        writes: true,
        is_first: true,
        is_able: true,
        is_slow: false,
        is_contended: false,
        worth_min: 9,
    };
    let said = Said::of(content(ME, 1));
    let bids = |content: &Content, chance| Bytes::default().bid(content, chance, &said).is_some();
    assert!(bids(&content(ME, 1), chance));
    assert!(!bids(&content(ANN, 1), chance));
    assert!(!bids(&content(ME, 1), Chance { worth_min: 10, ..chance }));
    assert!(!bids(&content(ME, 1), Chance { writes: false, ..chance }));
    assert!(!bids(&content(ME, 1), Chance { is_first: false, ..chance }));
    assert!(!bids(&content(ME, 1), Chance { is_slow: true, ..chance }));
    assert!(!bids(&content(ME, 1), Chance { is_contended: true, ..chance }));
    assert!(known(&content(ME, 1)).bid(&content(ME, 1), chance, &said).is_none());
}

#[test]
fn a_bid_is_won_only_if_the_session_outlived_it() {
    let chance = Chance {
        writes: true,
        is_first: true,
        is_able: true,
        is_slow: false,
        is_contended: false,
        worth_min: 0,
    };
    let (mut file, mut said) = (Bytes::default(), Said::of(content(ME, 1)));
    let mut bid = file.bid(&content(ME, 1), chance, &said).unwrap();
    assert_eq!(file.stay(), Stay::Asked);
    assert_eq!(bid.kept(Some(live(ME)), false), Bidding::Settle);
    assert_eq!(bid.clone().settled(true, &said), Bidding::Won(live(ME)));
    said.losses = 1;
    assert_eq!(bid.settled(true, &said), Bidding::Lost { is_kept: true, is_slow: true });
    file.give_up_bid();
    assert_eq!(file.stay(), Stay::Not);
}

#[test]
fn a_home_ends_when_nobody_has_the_file_open_and_says_so_or_goes_on() {
    let (mut file, said) = (Bytes::default(), Said::of(live(ME)));
    file.load(Body::Memory("bytes"));
    file.become_home(live(ME), &said);
    assert_eq!(next(&mut quest(Need::Write), &mut file, &Said::nothing(live(ME))), Next::Go);
    assert_eq!(file.end(&live(ME), true, &said, None), End::Nothing);
    assert_eq!(file.end(&live(ME), false, &said, None), End::Keep);
    file.remain();
    assert!(file.is_home(), "the directory could not be told");
    *file.memory_mut().unwrap() = "news";
    assert_eq!(file.end(&live(ME), false, &said, None), End::Settle);
    assert!(!file.tells_live());
    file.leave();
    assert_eq!(file.stay(), Stay::Not);
}

#[test]
fn a_home_whose_session_was_lost_tells_again_and_keeps_aside_what_others_overtook() {
    let (mut file, said) = (Bytes::default(), Said::of(live(ME)));
    file.load(Body::File { file: (), seen: Some(Seen { size: 9, blocks: 1, modified: (1, 1) }) });
    file.become_home(live(ME), &said);
    assert_eq!(
        file.follow_at_home(&content(ME, 6), 0, &said),
        Ok(true),
        "they are to be live again"
    );
    assert!(file.has_news(Some(Seen { size: 9, blocks: 1, modified: (1, 1) })));
    assert_eq!(file.follow_at_home(&content(ANN, 8), 0, &said), Err(Anothers));
    assert_eq!(file.end(&content(ANN, 8), false, &said, None), End::Follow(Follow::Aside));
}

#[test]
fn what_is_looked_at_is_told_again_or_kept_aside() {
    let (said, mut file) = (Said::of(content(ME, 1)), Bytes::default());
    file.note_loaded(content(ME, 1), false);
    assert_eq!(file.look(&said, false), Look::Compare);
    file.load(Body::Memory("other"));
    file.found(true);
    assert_eq!(file.settle(&said, None), Settle::Memory { stores: true, tells: true });
    let mut file = Bytes::default();
    file.note_loaded(content(ANN, 2), false);
    assert_eq!((file.look(&said, false), file.look(&said, true)), (Look::Aside, Look::Drop));
}

#[test]
fn nobody_gets_bytes_of_which_the_directory_has_not_heard() {
    assert!(known(&content(ME, 1)).may_be_fetched(None));
    assert!(!written(&content(ME, 1)).may_be_fetched(None));
}

#[test]
fn bytes_that_are_not_what_the_directory_says_are_doubted_for_a_while() {
    let (mut quest, said) = (quest(Need::Read), Said::reading(content(ANN, 1)));
    let now = content(ANN, 1);
    assert!(quest.missed(START, &now, &said, true).is_some_and(|again| again > START));
    let late = START + Duration::from_secs(11);
    assert_eq!(quest.missed(late, &now, &said, true), None);
    assert_eq!(quest.missed(START, &now, &said, false), None, "the machine does not answer");
    let changed = Said::reading(content(ANN, 2));
    assert_eq!(quest.missed(late, &now, &changed, false), Some(late));
}
