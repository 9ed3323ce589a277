//! The contract as scripts: what a stranger may rely on.

mod again;
mod birth;
mod hostile;

use crate::{
    Policy, Rule,
    script::{check, check_with},
};

#[track_caller]
fn check_plain(script: &str, expected: &str) {
    check_with(Policy::of_the_paper(), script, expected);
}

#[test]
fn a_free_field_is_granted_in_two_messages_and_then_costs_nothing() {
    check_plain(
        "0 A needs 1:content write
         0 A says messages
         1 A tries 1:content
         2 A tries 1:access
         3 A says messages",
        "0 A is content
         0 A saw 2 messages
         1 A writes 1:content
         2 A knows nothing of 1:access
         3 A saw 0 messages",
    );
}

#[test]
fn a_field_changes_hands_in_four_messages() {
    check_plain(
        "0 A needs 1:content write
         0 A pushes at once
         5 A says messages
         10 B needs 1:content write
         10 B says messages
         11 A tries 1:content
         11 B tries 1:content",
        "0 A is content
         5 A saw 2 messages
         10 A must push 1:content
         10 B is content
         10 B saw 4 messages
         11 A knows nothing of 1:content
         11 B writes 1:content",
    );
}

#[test]
fn nothing_goes_back_before_what_depends_on_it_was_pushed() {
    check_plain(
        "0 A needs 1:content write
         10 B needs 1:content write
         20 A tries 1:content
         20 B tries 1:content
         400 A pushes
         400 B tries 1:content",
        "0 A is content
         10 A must push 1:content
         20 A knows nothing of 1:content
         20 B knows nothing of 1:content
         400 B is content
         400 B writes 1:content",
    );
}

#[test]
fn many_may_read_and_a_writer_waits_for_all_of_them() {
    check_plain(
        "0 A needs 1:content read
         1 B needs 1:content read
         2 C needs 1:content write
         3 A pushes
         4 C tries 1:content
         5 B pushes
         6 C tries 1:content",
        "0 A is content
         1 B is content
         2 A must push 1:content
         2 B must push 1:content
         4 C knows nothing of 1:content
         5 C is content
         6 C writes 1:content",
    );
}

#[test]
fn who_comes_first_is_served_first_so_readers_do_not_starve_a_writer() {
    check_plain(
        "0 A needs 1:content read
         1 B needs 1:content write
         2 C needs 1:content read
         3 A pushes
         4 B pushes",
        "0 A is content
         1 A must push 1:content
         3 B is content
         3 B must push 1:content
         4 C is content",
    );
}

#[test]
fn a_writer_may_go_on_reading_when_only_a_reader_comes() {
    check_plain(
        "0 A needs 1:content write
         1 B needs 1:content read
         2 A pushes
         3 A tries 1:content
         3 B tries 1:content",
        "0 A is content
         1 A must push 1:content
         2 B is content
         3 A reads 1:content
         3 B reads 1:content",
    );
}

#[test]
fn a_name_is_taken_out_of_all_names_and_the_rest_stays() {
    check_plain(
        "0 A needs 1:/* write
         0 A pushes at once
         1 B needs 1:/b write
         2 A tries 1:/a
         2 A tries 1:/b
         2 B tries 1:/b
         3 C needs 1:/* read",
        "0 A is content
         1 A must push 1:/b
         1 B is content
         2 A writes 1:/a
         2 A knows nothing of 1:/b
         2 B writes 1:/b
         3 A must push 1:/*
         3 B must push 1:/b",
    );
}

#[test]
fn one_entry_covers_a_whole_new_tree() {
    check_plain(
        "0 A needs 1:** write
         1 A tries 1:/a
         1 A tries 1.7.9:content
         2 B needs 1.7:content read
         3 A pushes
         4 A tries 1.7:content
         4 A tries 1.7:access
         4 B tries 1.7:content",
        "0 A is content
         1 A writes 1:/a
         1 A writes 1.7.9:content
         2 A must push 1.7:content
         3 B is content
         4 A knows nothing of 1.7:content
         4 A writes 1.7:access
         4 B reads 1.7:content",
    );
}

#[test]
fn a_bundle_comes_whole_or_not_at_all() {
    check_plain(
        "0 A needs 1:/a write
         1 B needs 1:/a write, 2:/b write
         2 B tries 2:/b
         3 A pushes
         4 B tries 2:/b",
        "0 A is content
         1 A must push 1:/a
         2 B knows nothing of 2:/b
         3 B is content
         4 B writes 2:/b",
    );
}

#[test]
fn a_list_comes_piece_by_piece_if_its_asker_says_so() {
    check_plain(
        "0 A needs 1:/a write
         1 B needs each 1:/a write, 2:/b write
         2 B tries 2:/b
         3 A pushes
         4 B tries 1:/a",
        "0 A is content
         1 A must push 1:/a
         2 B writes 2:/b
         3 B is content
         4 B writes 1:/a",
    );
}

#[test]
fn a_late_return_does_not_evict_the_present_holder() {
    // A's return is lost with A's voice; B's lease must not fall to what A says when it is back.
    check_plain(
        "0 A needs 1:content write
         1 A falls silent
         2 A is done with 1:content write
         2 A pushes
         3 B needs 1:content write
         20000 B tries 1:content
         21000 A is back
         21000 A needs 2:content read
         21001 B tries 1:content",
        "0 A is content
         2 A must push 1:content
         20000 B is content
         20000 B writes 1:content
         21000 A has lost everything
         21000 A is content
         21001 B writes 1:content",
    );
}

#[test]
fn a_generous_grantor_gives_the_whole_file_when_nobody_else_wants_it() {
    check(
        "0 A needs 1:/a read
         1 A tries 1:access
         2 B needs 1:/a read
         3 B tries 1:/b
         3 A tries 1:access",
        "0 A is content
         1 A reads 1:access
         2 B is content
         3 B reads 1:/b
         3 A reads 1:access",
    );
}

#[test]
fn generosity_stops_at_what_others_hold() {
    check(
        "0 A needs 1:/* write
         0 A pushes at once
         1 B needs 1:access write
         2 B tries 1:content
         2 B tries 1:/a
         2 A tries 1:/a",
        "0 A is content
         1 B is content
         2 B writes 1:content
         2 B knows nothing of 1:/a
         2 A writes 1:/a",
    );
}

#[test]
fn a_silent_client_delays_others_by_one_session_and_then_loses_everything() {
    check_plain(
        "0 A needs 1:content write, 1:access write
         1000 A falls silent
         2000 B needs 1:content write
         18000 A tries 1:content
         19000 A tries 1:content
         19999 B tries 1:content
         20000 B tries 1:content
         30000 A is back
         30000 A needs 1:access read",
        "0 A is content
         18000 A writes 1:content
         19000 A knows nothing of 1:content
         19999 B knows nothing of 1:content
         20000 B is content
         20000 B writes 1:content
         30000 A has lost everything
         30000 A is content",
    );
}

#[test]
fn a_silent_client_keeps_what_nobody_wants() {
    check_plain(
        "0 A needs 1:content write
         100000 A tries 1:content
         100000 A needs 1:content write
         100000 A tries 1:content",
        "0 A is content
         100000 A knows nothing of 1:content
         100000 A is content
         100000 A writes 1:content",
    );
}

#[test]
fn a_client_that_never_answers_a_recall_delays_others_by_one_session_however_much_it_talks() {
    check_plain(
        "0 A needs 1:content write
         1000 B needs 1:content write
         5000 A needs 2:content write
         10000 A needs 3:content write
         15000 A needs 4:content write
         20000 A needs 5:content write
         20999 B tries 1:content
         21000 B tries 1:content",
        "0 A is content
         1000 A must push 1:content
         5000 A is content
         10000 A is content
         15000 A is content
         20000 A is content
         20999 B knows nothing of 1:content
         21000 A has lost everything
         21000 B is content
         21000 B writes 1:content",
    );
}

#[test]
fn a_lease_goes_back_in_good_time_and_does_not_outlive_its_term() {
    check_plain(
        "0 A needs 1:content read
         7199000 A needs 2:content read
         7200001 A tries 1:content
         7200001 A tries 2:content",
        "0 A is content
         7151800 A must push 1:content
         7199000 A is content
         7200001 A knows nothing of 1:content
         7200001 A reads 2:content",
    );
}

#[test]
fn a_lease_under_which_a_boolean_stands_is_asked_for_again() {
    check_plain(
        "0 A needs 1:handles self
         1 A sets 1:handles
         7100000 A needs 1:handles self
         14000000 A needs 2:content read
         14000001 A tries 1:handles
         14000002 B needs 1:handles others",
        "0 A is content
         7100000 A is content
         14000000 A is content
         14000001 A writes 1:handles
         14000002 A must push 1:handles",
    );
}

#[test]
fn many_open_a_file_at_once_and_each_knows_that_others_have() {
    check_plain(
        "0 A needs 1:handles self
         0 A pushes at once
         1 A sets 1:handles
         2 B needs 1:handles self, 1:handles others
         3 B tries 1:handles
         4 C needs 1:handles self, 1:handles others
         4 C says messages
         5 C tries 1:handles
         6 C sets 1:handles
         7 C clears 1:handles
         8 C sets 1:handles
         9 B tries 1:handles
         9 B says messages",
        "0 A is content
         2 A must push 1:handles
         2 B is content
         3 B writes 1:handles, others true
         4 C is content
         4 C saw 8 messages
         5 C writes 1:handles, others true
         9 B writes 1:handles, others true
         9 B saw 0 messages",
    );
}

#[test]
fn the_last_truth_cannot_vanish_under_those_who_rely_on_it() {
    check_plain(
        "0 A needs 1:handles self
         0 A pushes at once
         1 A sets 1:handles
         2 B needs 1:handles others
         3 B tries 1:handles
         4 A needs 1:handles self
         5 B tries 1:handles
         6 B pushes
         7 A clears 1:handles
         8 B needs 1:handles others
         9 B tries 1:handles",
        "0 A is content
         2 A must push 1:handles
         2 B is content
         3 B knows nothing of 1:handles, others true
         4 B must push 1:handles
         5 B knows nothing of 1:handles
         6 A is content
         8 A must push 1:handles
         8 B is content
         9 B knows nothing of 1:handles, others false",
    );
}

#[test]
fn a_return_that_was_overtaken_says_nothing_of_a_boolean_that_changed_since() {
    // A may change its boolean under two leases. It gives back one, opens the file under the other, and
    // gives that back too; the first return, which knows of no open file, comes last.
    check_plain(
        "0 A needs 1:handles self, 1:* write
         1 A's messages wait
         2 A is done with 1:handles self
         3 A pushes
         4 A sets 1:handles
         5 A is done with 1:* write
         6 A pushes
         7 A's messages arrive, last first
         8 B needs 1:handles others
         9 B tries 1:handles",
        "0 A is content
         2 A must push 1:handles
         5 A must push 1:*
         8 B is content
         9 B knows nothing of 1:handles, others true",
    );
}

#[test]
fn the_boolean_of_a_lost_client_ends_when_nobody_relies_on_it() {
    check_plain(
        "0 A needs 1:handles self, 1:content write
         0 A pushes at once
         1 A sets 1:handles
         2 B needs 1:handles others
         3 A falls silent
         4 C needs 1:content write
         10000 B needs 2:content read
         24000 B tries 1:handles
         24001 B pushes
         24002 B needs 1:handles others
         24003 B tries 1:handles",
        "0 A is content
         2 A must push 1:handles
         2 B is content
         10000 B is content
         20002 C is content
         20002 B must push 1:handles
         24000 B knows nothing of 1:handles
         24002 B is content
         24003 B knows nothing of 1:handles, others false",
    );
}

#[test]
fn nobody_is_told_that_a_dead_client_has_a_file_open() {
    check_plain(
        "0 A needs 1:handles self
         0 A pushes at once
         1 A sets 1:handles
         2 B needs 1:handles others
         2 B tries 1:handles
         3 B is done with 1:handles others
         3 B pushes
         4 A falls silent
         30000 C needs 1:handles others
         30001 C tries 1:handles",
        "0 A is content
         2 A must push 1:handles
         2 B is content
         2 B knows nothing of 1:handles, others true
         3 B must push 1:handles
         30000 C is content
         30001 C knows nothing of 1:handles, others false",
    );
}

#[test]
fn the_control_with_plain_modes_has_one_opener_at_a_time() {
    check_with(
        Policy { rule: Rule::PlainModes, ..Policy::of_the_paper() },
        "0 A needs 1:handles self
         1 B needs 1:handles self",
        "0 A is content
         1 A must push 1:handles",
    );
}

#[test]
fn the_control_with_whole_files_makes_two_names_conflict() {
    check_with(
        Policy { rule: Rule::Files, ..Policy::of_the_paper() },
        "0 A needs 1:/a write
         1 B needs 1:/b write",
        "0 A is content
         1 A must push 1:*",
    );
}

#[test]
fn where_all_have_too_many_whoever_has_most_gives_some_back_and_then_there_is_room() {
    check_with(
        Policy { leases_max: 3, ..Policy::of_the_paper() },
        "0 A needs 1:/a read, 1:/b read
         1 B needs 1:/c read
         2 B needs 1:/d read
         3 A pushes
         4 B needs 1:/d read
         5 B needs 1:/e read
         6 A creates 1.5:*
         7 A creates 1.6:*",
        "0 A is content
         1 B is content
         2 A must push 1:/a
         2 A must push 1:/b
         2 B is refused: OverBudget
         4 B is content
         5 B is content
         6 B must push 1:/c
         6 B must push 1:/d
         6 B must push 1:/e",
    );
}

#[test]
fn nonsense_and_greed_are_refused_as_values() {
    check_with(
        Policy { budget: 2, ..Policy::of_the_paper() },
        "0 A needs 1:handles write
         1 A needs 1:content self
         2 A needs 1:/a read, 1:/b read, 1:/c read
         3 A needs 1:/a read, 1:/b read
         4 A needs 1:/c read",
        "0 A is refused: Misfit
         1 A is refused: Misfit
         2 A is refused: OverBudget
         3 A is content
         4 A must push 1:/a
         4 A must push 1:/b
         4 A is refused: OverBudget",
    );
}

#[test]
fn what_is_no_longer_needed_can_be_given_back() {
    check_plain(
        "0 A needs 1:content write
         1 A is done with 1:content write
         2 A pushes
         2 A says messages
         3 B needs 1:content write
         3 B says messages",
        "0 A is content
         1 A must push 1:content
         2 A saw 3 messages
         3 B is content
         3 B saw 2 messages",
    );
}

#[test]
fn whoever_is_alone_has_all_there_is_until_somebody_else_comes() {
    check_with(
        Policy { gives_all_to_one: true, ..Policy::default() },
        "0 A needs 1:access read, 1:content read
         1 A tries 7.7:/x
         2 A says messages
         3 B needs 1:content write
         4 A pushes
         5 A tries 1:content
         6 A tries 7.7:/x",
        "0 A is content
         1 A writes 7.7:/x
         2 A saw 2 messages
         3 A must push 1:content
         4 B is content
         5 A knows nothing of 1:content
         6 A writes 7.7:/x",
    );
}
