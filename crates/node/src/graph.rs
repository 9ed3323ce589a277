//! Where work can pile up in a member of a group, and what keeps it from overflowing.
//!
//! Other machines can't be stopped (L18), so what they send is dropped when there is no room: whoever means it
//! says it again. What is only kept for others is forgotten. What has to be kept is written to the disk, and
//! nothing more is taken meanwhile.
//!
//! The mailbox, the log and the records at hand are the shell's. They stand here because what fills them comes
//! through the member; how bytes come and go is the shell's own graph (`network`).

use base::Duration;
use group::Seats;
use lease::Policy;
use load::{Bounded, ClownCar, Flow, Graph, Place, Plan, Release, Shed, Throttle};
use overlay::Register;

use crate::{
    attendance::OTHERS_MAX,
    member::{ISSUES, JOIN, JOINS},
};

/// What waits for the member of this machine itself: letters of its client, and errands.
const POSTS: Place<Shed> = Place::new("2A", "own letters").of("letters");
/// What waits of one machine that sits in the group, or is to.
const FRAMES: Place<Shed> = Place::new("2B", "letters of a member").of("letters");
/// The bytes of these.
const FRAME_BYTES: Place<Shed> = Place::new("2C", "their bytes").of("bytes");
/// What waits of all that do not sit there.
const OTHERS: Place<Shed> = Place::new("2AD", "letters of others").of("letters");
/// The bytes of these.
const OTHER_BYTES: Place<Shed> = Place::new("2AE", "their bytes").of("bytes");
/// What one machine without a vote has cost lately.
const DEBT: Place<Shed> = Place::new("2AF", "time used by one").of("us");
/// Those of whom it is known what they have cost.
const DEBTORS: Place<Shed> = Place::new("2AG", "those who used some").of("senders");
/// Commands that have no place in the order.
const PENDING: Place<Shed> = Place::new("2D", "undecided commands").of("commands");
/// Their bytes.
const PENDING_BYTES: Place<Shed> = Place::new("2E", "their bytes").of("bytes");
/// What was proposed for the next place.
const BATCHES: Place<Shed> = Place::new("2F", "proposed batches").of("batches");
/// Rounds of the next place, each with at most two votes of each member.
const ROUNDS: Place<Shed> = Place::new("2G", "rounds of a height").of("rounds");
/// What members say of the place after that.
const AHEAD: Place<ClownCar> = Place::new("2AA", "words too early").of("words");
/// What other members say has waited too long.
const OVERDUE: Place<ClownCar> = Place::new("2AN", "overdue elsewhere").of("commands");
/// What they say of their states.
const VOUCHES: Place<ClownCar> = Place::new("2AO", "what others vouch for").of("states");
/// What may not be said or done before the log is safe.
const HELD: Place<Shed> = Place::new("2H", "waits for the log").of("things");
/// The bytes of the decisions among it.
const HELD_BYTES: Place<Shed> = Place::new("2I", "bytes of decisions").of("bytes");
/// Decisions whose records are looked up.
const DUE: Place<Shed> = Place::new("2J", "not applied yet").of("decisions");
/// What proves that members have lied.
const PROOFS: Place<Shed> = Place::new("2K", "proofs of lies").of("proofs");
/// Who wishes whom in, and who is ready to come.
const WISHES: Place<ClownCar> = Place::new("2L", "wishes").of("seats");
/// The last decisions, for those that are behind.
const RECENT: Place<Release> = Place::new("2M", "last decisions").of("decisions");
/// Their bytes.
const RECENT_BYTES: Place<Release> = Place::new("2N", "their bytes").of("bytes");
/// The last states, for those that are far behind.
const STATES: Place<Release> = Place::new("2O", "states for others").of("states");
/// States that others offer to this member.
const OFFERS: Place<ClownCar> = Place::new("2P", "offered states").of("seats");
/// A state on its way to this member.
const FETCHED: Place<Bounded> = Place::new("2Q", "state on its way").of("bytes");
/// Machines that were heard lately.
const HEARD: Place<Shed> = Place::new("2R", "machines heard").of("machines");
/// Machines that were told of decisions lately.
const SERVED: Place<Shed> = Place::new("2S", "machines served").of("machines");
/// Machines that wait to be let in, and those who wait until one is sent away.
const JOINING: Place<Shed> = Place::new("2T", "comings and goings").of("machines");
/// Machines of the cell.
const MACHINES: Place<Shed> = Place::new("2U", "machines of the cell").of("machines");
/// What each was given and told.
const SESSIONS: Place<ClownCar> = Place::new("2V", "sessions").of("machines");
/// What one session knows or may do.
const LEASES: Place<Shed> = Place::new("2W", "leases of a session").of("leases");
/// The same of all sessions together.
const ALL_LEASES: Place<Shed> = Place::new("2AB", "leases of all").of("leases");
/// Files on which one machine's programs have locks.
const LOCKED: Place<Shed> = Place::new("2AC", "locked files of a machine").of("files");
/// What one member, or one to be, was told lately of what was decided.
const TOLD: Place<Shed> = Place::new("2AH", "told to a member").of("bytes");
/// What anybody else was.
const TOLD_OTHER: Place<Shed> = Place::new("2AI", "told to another").of("bytes");
/// Of how many that is known.
const TOLD_WHOM: Place<Shed> = Place::new("2AJ", "those who were told").of("machines");
/// How often one machine has wanted to join lately.
const JOINED: Place<Shed> = Place::new("2AK", "joins of a machine").of("joins");
/// The same of all that one issuer lets in.
const ISSUED: Place<Shed> = Place::new("2AL", "joins by an issuer").of("joins");
/// Of how many that is known.
const JOINERS: Place<Shed> = Place::new("2AM", "those who joined").of("keys");
/// The log since the last checkpoint.
const LOG: Place<Throttle> = Place::new("2X", "log not stored").of("bytes");
/// Records that have changed since the last checkpoint.
const CHANGES: Place<Throttle> = Place::new("2Y", "changed records").of("records");
/// Records at hand that are in the store.
const RECORDS: Place<Release> = Place::new("2Z", "records at hand").of("records");

/// How much a member, and the shell that runs it, keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most letters of this machine itself that wait for the member.
    pub posts_max: usize,
    /// The most letters of any other machine.
    pub frames_max: usize,
    /// The most bytes of these.
    pub frame_bytes_max: usize,
    /// The most letters of all machines together that do not sit in the group.
    pub others_max: usize,
    /// The most bytes of these.
    pub other_bytes_max: usize,
    /// With so much of this machine's time used up lately a machine without a vote is not read from.
    pub debt_max: Duration,
    /// Of so many it is known what they have used; the rest are taken for one.
    pub debtors_max: usize,
    /// With so many decisions to apply or to make safe, nothing new is taken.
    pub due_max: usize,
    /// With so many bytes of decisions that wait to be safe, nothing new is taken.
    pub held_bytes_max: usize,
    /// The most machines of which it is known when they were last heard.
    pub heard_max: usize,
    /// The most machines that wait to be let in, and to be sent away.
    pub joining_max: usize,
    /// Of so many machines and issuers it is known how often they have wanted a machine to join.
    pub joiners_max: usize,
    /// With so many bytes in the log since the last checkpoint, there is one.
    pub log_bytes_max: u64,
    /// With so many records that are not in the store, there is one too: they can't be let go of before.
    pub changes_max: usize,
    /// The most records at hand; beyond, all go that are in the store.
    pub records_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            posts_max: 512,
            frames_max: 256,
            frame_bytes_max: 16 << 20,
            others_max: 1_024,
            other_bytes_max: 64 << 20,
            debt_max: Duration::from_millis(250),
            debtors_max: 1_024,
            due_max: 1_024,
            held_bytes_max: 16 << 20,
            heard_max: Seats::COUNT_MAX + OTHERS_MAX,
            joining_max: 64,
            joiners_max: 1_024,
            log_bytes_max: 8 << 20,
            changes_max: 25_000,
            records_max: 50_000,
        }
    }
}

/// The graph of a member with these settings.
pub fn graph(group: &group::Settings, limits: &Limits) -> Graph {
    let mut graph = Graph::new("member", "what a member of the group is told, until it is stored");
    let seats = 2 * Seats::COUNT_MAX as u64;
    let again = "whoever said it says it again";

    graph.flow(Flow::entry("this machine's client says", POSTS));
    graph.flow(Flow::arrival("another machine says", FRAMES));
    graph.flow(Flow::arrival("its bytes", FRAME_BYTES));
    graph.flow(Flow::between("wanted here", POSTS, PENDING));
    graph.flow(Flow::between("wanted there", FRAMES, PENDING));
    graph.flow(Flow::between("its bytes wanted", FRAME_BYTES, PENDING_BYTES));
    graph.flow(Flow::exit("read", FRAME_BYTES));
    graph.shed(POSTS, limits.posts_max as u64, again);
    graph.shed(FRAMES, limits.frames_max as u64, again);
    graph.shed(FRAME_BYTES, limits.frame_bytes_max as u64, again);
    graph.flow(Flow::arrival("a machine without a vote says", OTHERS));
    graph.flow(Flow::arrival("its bytes", OTHER_BYTES));
    graph.flow(Flow::between("wanted by others", OTHERS, PENDING));
    graph.flow(Flow::between("wanted bytes", OTHER_BYTES, PENDING_BYTES));
    graph.flow(Flow::exit("read", OTHERS));
    graph.flow(Flow::exit("read", OTHER_BYTES));
    graph.flow(Flow::arrival("its letters cost", DEBT));
    graph.flow(Flow::between("is noted", OTHERS, DEBTORS));
    graph.flow(Flow::exit("time passes", DEBT));
    graph.flow(Flow::exit("paid off", DEBTORS));
    graph.shed(OTHERS, limits.others_max as u64, again);
    graph.shed(OTHER_BYTES, limits.other_bytes_max as u64, again);
    let unread = "what it sends is left where it is for a while, in the windows of its connection";
    graph.shed(DEBT, limits.debt_max.as_micros() as u64, unread);
    graph.shed(DEBTORS, limits.debtors_max as u64, "those beyond share one allowance");

    graph.flow(Flow::between("decided", PENDING, HELD).waits_for("a quorum"));
    graph.flow(Flow::between("its bytes decided", PENDING_BYTES, HELD_BYTES).waits_for("a quorum"));
    graph.flow(Flow::between("voted on", FRAMES, HELD));
    graph.flow(Flow::between("learnt", FRAMES, HELD));
    graph.flow(Flow::between("its bytes learnt", FRAME_BYTES, HELD_BYTES));
    graph.flow(Flow::between("safe", HELD, DUE).disk_bound());
    graph.flow(Flow::exit("said when safe", HELD).disk_bound());
    graph.flow(Flow::exit("its bytes safe", HELD_BYTES).disk_bound());
    graph.shed(PENDING, group.pending_count_max as u64, again);
    graph.shed(PENDING_BYTES, group.pending_bytes_max as u64, again);
    graph.shed(HELD, group.held_max as u64, again);
    graph.shed(HELD_BYTES, limits.held_bytes_max as u64, again);
    graph.shed(DUE, limits.due_max as u64, "it asks for what it has missed when it can");

    graph.flow(Flow::between("proposed", FRAMES, BATCHES));
    graph.flow(Flow::exit("the height is decided", BATCHES));
    graph.flow(Flow::between("said too early", FRAMES, AHEAD));
    graph.flow(Flow::exit("its turn has come", AHEAD));
    graph.flow(Flow::between("overdue there", FRAMES, OVERDUE));
    graph.flow(Flow::exit("decided next", OVERDUE));
    graph.flow(Flow::between("vouched for", FRAMES, VOUCHES));
    graph.flow(Flow::exit("long past", VOUCHES));
    graph.flow(Flow::entry("waited in vain", ROUNDS));
    graph.flow(Flow::between("others have", FRAMES, ROUNDS));
    graph.flow(Flow::exit("decided at last", ROUNDS));
    graph.flow(Flow::between("found out", FRAMES, PROOFS));
    graph.flow(Flow::exit("more than enough", PROOFS));
    graph.flow(Flow::between("wished", FRAMES, WISHES));
    graph.flow(Flow::exit("over", WISHES));
    graph.shed(BATCHES, group.batches_max as u64, "what a quorum has seen is proposed again");
    let each = "seats: a proposal and two votes of each member";
    graph.clown_car(AHEAD, (group::Settings::EARLY_MAX * Seats::COUNT_MAX) as u64, each);
    graph.clown_car(OVERDUE, Seats::COUNT_MAX as u64, "seats: one command of each member");
    let each = "seats: of each member as many as there are states here";
    graph.clown_car(VOUCHES, (group::Settings::STATES_MAX * Seats::COUNT_MAX) as u64, each);
    // Waits grow so much that honest members never have as many.
    graph.shed(ROUNDS, u64::from(group.rounds_max), "who has decided shows it to all");
    graph.shed(PROOFS, group.proofs_max as u64, "those that are kept prove it too");
    graph.clown_car(WISHES, seats, "seats: those of the members and of the members to be");

    graph.flow(Flow::between("remembered", DUE, RECENT));
    graph.flow(Flow::between("bytes remembered", HELD_BYTES, RECENT_BYTES));
    graph.flow(Flow::between("summed up", DUE, STATES));
    let forget = graph.flow(Flow::exit("forgotten", RECENT));
    let forget_bytes = graph.flow(Flow::exit("bytes forgotten", RECENT_BYTES));
    let outdated = graph.flow(Flow::exit("outdated", STATES));
    graph.release(RECENT, group.recent_max as u64, forget);
    graph.release(RECENT_BYTES, group.recent_bytes_max as u64, forget_bytes);
    graph.release(STATES, group::Settings::STATES_MAX as u64, outdated);

    graph.flow(Flow::between("offered", FRAMES, OFFERS));
    graph.flow(Flow::exit("taken or not", OFFERS));
    graph.flow(Flow::between("piece by piece", FRAME_BYTES, FETCHED));
    graph.flow(Flow::exit("taken", FETCHED));
    graph.clown_car(OFFERS, seats, "seats: those of the members that are known and proven");
    let one = "one at a time, as long as was said before; a longer one is not begun";
    graph.bounded(FETCHED, group.state_bytes_max, one);

    graph.flow(Flow::between("is there", FRAMES, HEARD));
    graph.flow(Flow::exit("looked at", HEARD));
    graph.flow(Flow::between("is behind", FRAMES, SERVED));
    graph.flow(Flow::exit("a moment ago", SERVED));
    for told in [TOLD, TOLD_OTHER] {
        graph.flow(Flow::arrival("what it asks for", told));
        graph.flow(Flow::exit("time passes", told));
    }
    graph.flow(Flow::between("is told", FRAMES, TOLD_WHOM));
    graph.flow(Flow::exit("paid off", TOLD_WHOM));
    let later = "it asks again, and is told nothing before it has paid off some";
    graph.shed(TOLD, group.told_members.burst, later);
    graph.shed(TOLD_OTHER, group.told_others.burst, later);
    graph.shed(TOLD_WHOM, group::Settings::TOLD_MAX as u64, "those beyond share one allowance");
    for joined in [JOINED, ISSUED] {
        graph.flow(Flow::arrival("wants to join", joined));
        graph.flow(Flow::exit("time passes", joined));
    }
    graph.flow(Flow::between("is noted", OTHERS, JOINERS));
    graph.flow(Flow::exit("paid off", JOINERS));
    let again_later = "it is told to try again in a minute";
    graph.shed(JOINED, JOINS.burst / JOIN, again_later);
    graph.shed(ISSUED, ISSUES.burst / JOIN, again_later);
    graph.shed(JOINERS, limits.joiners_max as u64, "those beyond share one allowance");
    graph.flow(Flow::between("wants to join", POSTS, JOINING));
    graph.flow(Flow::exit("too late", JOINING));
    graph.flow(Flow::between("joins", DUE, MACHINES));
    graph.flow(Flow::between("may speak", MACHINES, SESSIONS));
    graph.flow(Flow::exit("lapsed", SESSIONS));
    graph.flow(Flow::between("granted", DUE, LEASES));
    graph.flow(Flow::exit("given back", LEASES).waits_for("its client"));
    graph.flow(Flow::between("granted to all", DUE, ALL_LEASES));
    graph.flow(Flow::exit("back from all", ALL_LEASES).waits_for("their clients"));
    graph.flow(Flow::exit("over with their sessions", ALL_LEASES));
    graph.flow(Flow::between("locked", DUE, LOCKED));
    graph.flow(Flow::exit("unlocked", LOCKED).waits_for("its client"));
    graph.flow(Flow::exit("unlocked with its session", LOCKED));
    graph.flow(Flow::exit("over with its session", LEASES));
    graph.shed(HEARD, limits.heard_max as u64, "members, and the first to come, always have room");
    graph.shed(SERVED, group::Settings::SERVED_MAX as u64, "it asks again");
    graph.shed(JOINING, limits.joining_max as u64, "it is told to try again");
    graph.shed(MACHINES, Register::COUNT_MAX as u64, "it is told that the cell is full");
    graph.clown_car(SESSIONS, Register::COUNT_MAX as u64, "machines of the cell: 2U");
    let leases = 2 * Policy::default().budget as u64;
    graph.shed(LEASES, leases, "the client is refused, and gives others back");
    let all = Policy::default().leases_max as u64;
    graph.shed(ALL_LEASES, all, "nobody gets more, and whoever has most gives some back");
    graph.shed(
        LOCKED,
        directory::LOCKED_MAX as u64,
        "who has more has lied, and loses its session",
    );

    // The thread that writes the log also makes the checkpoints, and takes nothing more meanwhile. It looks after
    // each frame and each sync, so one of these, or what 2I holds, may be on top. While the disk is full there are
    // no checkpoints, and with eight times as much nothing is taken until there is room.
    let write = graph.flow(Flow::between("written down", POSTS, LOG));
    let write_heard = graph.flow(Flow::between("written down as heard", FRAMES, LOG));
    graph.flow(Flow::exit("cut off", LOG).disk_bound());
    let apply = graph.flow(Flow::between("applied", DUE, CHANGES));
    graph.flow(Flow::between("stored", CHANGES, RECORDS).disk_bound());
    graph.flow(Flow::between("looked up", DUE, RECORDS));
    let let_go = graph.flow(Flow::exit("let go of", RECORDS));
    graph.throttle(LOG, limits.log_bytes_max, &[write, write_heard]);
    graph.throttle(CHANGES, limits.changes_max as u64, &[apply]);
    graph.release(RECORDS, limits.records_max as u64, let_go);
    graph
}

/// These limits as the graph hands them out.
///
/// # Panics
///
/// If something could pile up without a bound.
pub(crate) fn limited(group: group::Settings, limits: Limits) -> (group::Settings, Limits) {
    let graph = graph(&group, &limits);
    let mut plan = graph.plan().unwrap_or_else(|not_immune| panic!("{not_immune}"));
    let limited = Limits {
        posts_max: plan.spec(POSTS).threshold as usize,
        frames_max: plan.spec(FRAMES).threshold as usize,
        frame_bytes_max: plan.spec(FRAME_BYTES).threshold as usize,
        others_max: plan.spec(OTHERS).threshold as usize,
        other_bytes_max: plan.spec(OTHER_BYTES).threshold as usize,
        debt_max: Duration::from_micros(plan.spec(DEBT).threshold),
        debtors_max: plan.spec(DEBTORS).threshold as usize,
        due_max: plan.spec(DUE).threshold as usize,
        held_bytes_max: plan.spec(HELD_BYTES).threshold as usize,
        heard_max: plan.spec(HEARD).threshold as usize,
        joining_max: plan.spec(JOINING).threshold as usize,
        joiners_max: plan.spec(JOINERS).threshold as usize,
        log_bytes_max: plan.spec(LOG).threshold,
        changes_max: plan.spec(CHANGES).threshold as usize,
        records_max: plan.spec(RECORDS).threshold as usize,
    };
    let group = group::Settings {
        pending_count_max: plan.spec(PENDING).threshold as usize,
        pending_bytes_max: plan.spec(PENDING_BYTES).threshold as usize,
        batches_max: plan.spec(BATCHES).threshold as usize,
        rounds_max: u32::try_from(plan.spec(ROUNDS).threshold).unwrap_or(u32::MAX),
        held_max: plan.spec(HELD).threshold as usize,
        proofs_max: plan.spec(PROOFS).threshold as usize,
        recent_max: plan.spec(RECENT).threshold as usize,
        recent_bytes_max: plan.spec(RECENT_BYTES).threshold as usize,
        state_bytes_max: plan.spec(FETCHED).threshold,
        ..group
    };
    claim_constants(&mut plan);
    plan.finish();
    (group, limited)
}

/// The places whose size is a constant of the crate that has them.
fn claim_constants(plan: &mut Plan) {
    plan.spec(AHEAD);
    plan.spec(OVERDUE);
    plan.spec(VOUCHES);
    plan.spec(WISHES);
    plan.spec(STATES);
    plan.spec(OFFERS);
    plan.spec(SERVED);
    plan.spec(MACHINES);
    plan.spec(SESSIONS);
    plan.spec(LEASES);
    plan.spec(ALL_LEASES);
    plan.spec(LOCKED);
    plan.spec(TOLD);
    plan.spec(TOLD_OTHER);
    plan.spec(TOLD_WHOM);
    plan.spec(JOINED);
    plan.spec(ISSUED);
}

impl Limits {
    /// What a member's shell keeps to: the limits of the checked graph.
    pub fn planned(group: group::Settings) -> Limits {
        limited(group, Limits::default()).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> Graph {
        graph(&group::Settings::default(), &Limits::default())
    }

    #[test]
    fn nothing_piles_up_without_a_bound() {
        let verdict = usual().check();
        assert_eq!(verdict.summary(), "immune", "{verdict:?}");
        assert!(verdict.cautions.is_empty(), "{:?}", verdict.cautions);
    }

    #[test]
    fn without_any_one_protection_the_check_names_that_very_place() {
        let graph = usual();
        for label in graph.labels() {
            let verdict = graph.without_protection(label).check();
            assert_eq!(verdict.vulnerable(), [label], "{}", verdict.summary());
        }
        assert_eq!(graph.labels().count(), 41);
    }

    #[test]
    fn a_member_that_would_stop_other_machines_is_not_immune() {
        const STOPPED: Place<Throttle> = Place::new("2B", "frames in it").of("frames");
        let mut graph = Graph::new("stopped", "a mailbox that other machines should wait for");
        let say = graph.flow(Flow::arrival("another machine says", STOPPED));
        graph.flow(Flow::exit("read", STOPPED));
        graph.throttle(STOPPED, 10, &[say]);
        let finding = graph.check().findings[0].to_string();
        assert!(finding.contains("it starts on another machine"), "{finding}");
    }

    #[test]
    fn the_limits_in_force_are_those_of_the_graph() {
        let (group, limits) = (group::Settings::default(), Limits::default());
        assert_eq!(limited(group.clone(), limits), (group.clone(), limits));
        let small = Limits { posts_max: 3, log_bytes_max: 1, changes_max: 1, due_max: 2, ..limits };
        let few = group::Settings { pending_count_max: 1, rounds_max: 2, proofs_max: 1, ..group };
        assert_eq!(limited(few.clone(), small), (few, small), "also if they are small");
    }

    #[test]
    #[should_panic(expected = "its capacity is 0")]
    fn a_member_without_room_is_not_begun() {
        limited(group::Settings::default(), Limits { due_max: 0, ..Limits::default() });
    }
}
