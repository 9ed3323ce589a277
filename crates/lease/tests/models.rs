//! Every schedule of a small world: two clients, one grantor, a network that loses and repeats.
//!
//! The models run the crate's own code. Time passes in whole ticks, at any point of a schedule; since a
//! message may wait in the network for as long as the world lasts, and a holder may do nothing for as
//! long, slow networks and paused holders are among the schedules.

use std::collections::BTreeMap;

use base::{Duration, Instant, Machine};
use lease::{
    Client, Field, Grantor, Holder, Kind, Knowledge, Name, Policy, Scope, Terms, grantor, holder,
    message::{Down, Downward, Up, Upward, Want},
};
use stateright::{Checker, Model, Property};

/// A tick in the model. The machines only ever compare moments, so its size means nothing.
const TICK: Duration = Duration::from_secs(1);
const TERMS: Terms = Terms {
    session: Duration::from_secs(2),
    lease: Duration::from_secs(100),
    repeat: Duration::from_millis(1_900),
    slack: Duration::ZERO,
    drift_ppm: 0,
};

const CONFLICT: &str = "nobody knows what another may change";
const OTHERS: &str = "what is known of the others is so";
const CONTENT: &str = "everybody is content in the end";

/// What is wrong with the world, to show that the checker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    None,
    /// The holder acts although its session has lapsed: its clock stands still for it.
    ActsAfterLapse,
    /// The holder gives back first and pushes later: it still acts.
    ReturnsBeforePush,
    /// The grantor hears a return that was not said.
    GrantsTooEarly,
    /// The holder counts its promises from when the answer came.
    CountsFromTheAnswer,
    /// The holder believes a grant whenever it comes.
    BelievesOldGrants,
    /// The grantor takes a boolean that its client may still change for one that it may not.
    IgnoresFrozen,
    /// The grantor takes returns as they come, not as they were sent.
    HearsOvertakenReturns,
    /// The grantor does not tell who holds the subtree that another has created a file in it.
    KeepsBirthsSecret,
}

#[derive(Clone, Debug)]
struct World {
    policy: Policy,
    /// What each client needs: bundles, one after the other.
    needs: Vec<Vec<Vec<Want>>>,
    /// What the first client creates, once it has met its needs.
    birth: Option<Scope>,
    /// What the first client gives back unasked, once.
    done: Option<Want>,
    /// What is watched.
    probes: Vec<Scope>,
    ticks_max: u64,
    repeats_max: u8,
    mutant: Mutant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    now: Instant,
    grantor: Grantor,
    clients: Vec<Person>,
    /// What is on the way, and how many times.
    upward: BTreeMap<(usize, Upward), u8>,
    downward: BTreeMap<(usize, Downward), u8>,
    repeats: u8,
    /// For mutants: how many returns have come.
    returns: u64,
    /// Whether the grantor has heard of what was created.
    is_born: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Person {
    holder: Holder,
    asked: usize,
    met: usize,
    has_flipped: bool,
    has_done: bool,
    has_created: bool,
    /// What it has created and not pushed, and in which session.
    births: Vec<(Scope, u64)>,
    pushes: Vec<(Scope, Kind, Scope)>,
    /// For mutants: where it still acts although it should not.
    acts_on: Vec<Scope>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    Ask(usize),
    Flip(usize),
    Done(usize),
    Create(usize),
    Push(usize),
    Up(usize, Upward, Fate),
    Down(usize, Downward, Fate),
    Tick,
}

/// What becomes of a message that arrives. One that never does is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fate {
    Gone,
    Again,
}

impl World {
    /// Whether the first client may create what it creates: it may change the names that it needed.
    fn may_create(&self, state: &State) -> bool {
        let mut names = self.needs[0].iter().flatten();
        let holder = &state.clients[0].holder;
        names.all(|want| holder.knows(state.now, &want.scope) == Knowledge::Writes)
    }

    fn writes(&self, state: &State, client: usize, scope: &Scope) -> bool {
        let person = &state.clients[client];
        let now = match self.mutant {
            Mutant::ActsAfterLapse => Instant::START,
            _ => state.now,
        };
        person.acts_on.iter().any(|part| part.contains(scope))
            || person.holder.knows(now, scope) == Knowledge::Writes
    }

    fn send(&self, state: &mut State, client: usize, outputs: Vec<holder::Output>) {
        for output in outputs {
            match output {
                holder::Output::Send(mut message) => {
                    if self.mutant == Mutant::CountsFromTheAnswer {
                        message.stamp = Instant::from_secs(1_000);
                    }
                    *state.upward.entry((client, message)).or_insert(0) += 1;
                }
                holder::Output::Push { lease, kind, part } => {
                    let person = &mut state.clients[client];
                    person.pushes.push((lease, kind, part.clone()));
                    if self.mutant == Mutant::ReturnsBeforePush {
                        person.acts_on.push(part);
                        self.push(state, client);
                    }
                }
                holder::Output::Met(_) => state.clients[client].met += 1,
                holder::Output::Refused(..) => {}
                holder::Output::Lost => {
                    state.clients[client].pushes.clear();
                    state.clients[client].births.clear();
                    state.clients[client].acts_on.clear();
                }
            }
        }
    }

    fn tell(&self, state: &mut State, client: usize, input: holder::Input) {
        let mut out = Vec::new();
        state.clients[client].holder.step(state.now, input, &mut out);
        self.send(state, client, out);
    }

    fn push(&self, state: &mut State, client: usize) {
        for (scope, session) in std::mem::take(&mut state.clients[client].births) {
            let mut out = Vec::new();
            let from = client_of(client);
            if state.grantor.is_in_session(from, session) {
                assert!(state.grantor.bear(state.now, from, scope, &mut out));
                state.is_born = true;
            }
            if self.mutant == Mutant::KeepsBirthsSecret {
                self.forge(state, &mut out);
                out.retain(|(_, said)| !matches!(said.body, Down::Recall(_)));
            }
            self.answer(state, out);
        }
        for (lease, kind, part) in std::mem::take(&mut state.clients[client].pushes) {
            self.tell(state, client, holder::Input::Pushed { lease, kind, part });
        }
    }

    fn answer(&self, state: &mut State, outputs: Vec<grantor::Output>) {
        for (client, message) in outputs {
            *state.downward.entry((index_of(client), message)).or_insert(0) += 1;
        }
    }

    fn hear(&self, state: &mut State, client: usize, mut message: Upward) {
        let mut out = Vec::new();
        let forges = matches!(self.mutant, Mutant::GrantsTooEarly | Mutant::IgnoresFrozen);
        if let Up::Return { number, .. } = &mut message.body
            && (forges
                || self.mutant == Mutant::HearsOvertakenReturns
                || self.mutant == Mutant::KeepsBirthsSecret)
        {
            state.returns += 1;
            *number = state.returns;
        }
        state.grantor.step(state.now, (client_of(client), message), &mut out);
        if forges {
            self.forge(state, &mut out);
        }
        self.answer(state, out);
    }

    /// For mutants: answers every recall at once, in its holder's name.
    fn forge(&self, state: &mut State, out: &mut Vec<grantor::Output>) {
        for (to, said) in out.clone() {
            let Down::Recall(recalls) = said.body else { continue };
            let returns = recalls.into_iter().map(|recall| lease::message::Return {
                lease: recall.lease,
                kind: recall.kind,
                serial: recall.serial,
                part: recall.part,
                kept: false,
                truths: Vec::new(),
            });
            state.returns += 1;
            let body = Up::Return { number: state.returns, returns: returns.collect() };
            let forged = Upward { session: said.session, stamp: said.stamp, body };
            state.grantor.step(state.now, (to, forged), out);
        }
    }

    /// Whether a client may have heard of what this probe is about: it made it, or it has read the name
    /// since the grantor knows of it.
    fn may_know_of(&self, state: &State, client: usize, probe: &Scope) -> bool {
        let is_born = self.birth.as_ref().is_some_and(|born| born.contains(probe));
        let is_read = || {
            let names = self.needs[0].iter().flatten().map(|want| &want.scope);
            let mut knowledge =
                names.map(|name| state.clients[client].holder.knows(state.now, name));
            state.is_born && knowledge.all(|known| known != Knowledge::None)
        };
        !is_born || client == 0 || is_read()
    }
}

/// The group itself, which is a client too, has the number 0.
fn client_of(index: usize) -> Client {
    Client(index as u32 + 1)
}

fn index_of(client: Client) -> usize {
    client.0 as usize - 1
}

fn take<K: Ord + Clone>(network: &mut BTreeMap<K, u8>, key: &K) {
    let count = network.get_mut(key).expect("it is on the way");
    *count -= 1;
    if *count == 0 {
        network.remove(key);
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let person = Person {
            holder: Holder::new(TERMS, 1),
            asked: 0,
            met: 0,
            has_flipped: false,
            has_done: false,
            has_created: false,
            births: Vec::new(),
            pushes: Vec::new(),
            acts_on: Vec::new(),
        };
        vec![State {
            now: Instant::START + TICK,
            grantor: Grantor::new(TERMS, self.policy),
            clients: vec![person; self.needs.len()],
            upward: BTreeMap::new(),
            downward: BTreeMap::new(),
            repeats: 0,
            returns: 0,
            is_born: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (client, person) in state.clients.iter().enumerate() {
            if person.asked == person.met && person.asked < self.needs[client].len() {
                actions.push(Action::Ask(client));
            }
            let may_flip = |probe: &Scope| {
                probe.field.is_disjunctive()
                    && person.holder.knows(state.now, probe) == Knowledge::Writes
            };
            if !person.has_flipped && self.probes.iter().any(may_flip) {
                actions.push(Action::Flip(client));
            }
            if client == 0 && self.done.is_some() && person.met > 0 && !person.has_done {
                actions.push(Action::Done(client));
            }
            if client == 0 && self.birth.is_some() && !person.has_created && self.may_create(state)
            {
                actions.push(Action::Create(client));
            }
            if !person.pushes.is_empty() || !person.births.is_empty() {
                actions.push(Action::Push(client));
            }
        }
        let fates: &[Fate] = match state.repeats < self.repeats_max {
            true => &[Fate::Gone, Fate::Again],
            false => &[Fate::Gone],
        };
        for fate in fates {
            let up = state.upward.keys().map(|(from, said)| Action::Up(*from, said.clone(), *fate));
            actions.extend(up);
            let down =
                state.downward.keys().map(|(to, said)| Action::Down(*to, said.clone(), *fate));
            actions.extend(down);
        }
        if state.now < Instant::START + TICK * self.ticks_max as u32 {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Ask(client) => {
                let person = &mut next.clients[client];
                let wants = self.needs[client][person.asked].clone();
                person.asked += 1;
                self.tell(&mut next, client, holder::Input::Need { wants, together: true });
            }
            Action::Flip(client) => {
                let person = &mut next.clients[client];
                person.has_flipped = true;
                for probe in &self.probes {
                    let value = person.holder.own(probe);
                    let _ = person.holder.set(next.now, probe, !value);
                }
            }
            Action::Done(client) => {
                next.clients[client].has_done = true;
                let Want { scope: lease, kind } = self.done.clone()?;
                self.tell(&mut next, client, holder::Input::Done { lease, kind });
            }
            Action::Create(client) => {
                let person = &mut next.clients[client];
                person.has_created = true;
                let scope = self.birth.clone()?;
                if person.holder.bear(next.now, &scope) {
                    person.births.push((scope, person.holder.session()));
                }
            }
            Action::Push(client) => self.push(&mut next, client),
            Action::Up(client, message, fate) => {
                match fate {
                    Fate::Gone => take(&mut next.upward, &(client, message.clone())),
                    Fate::Again => next.repeats += 1,
                }
                self.hear(&mut next, client, message);
            }
            Action::Down(client, mut message, fate) => {
                match fate {
                    Fate::Gone => take(&mut next.downward, &(client, message.clone())),
                    Fate::Again => next.repeats += 1,
                }
                if self.mutant == Mutant::CountsFromTheAnswer {
                    message.stamp = next.now;
                }
                if let Down::Granted { grants, .. } = &mut message.body {
                    for grant in
                        grants.iter_mut().filter(|_| self.mutant == Mutant::BelievesOldGrants)
                    {
                        grant.serial += 1_000;
                    }
                }
                self.tell(&mut next, client, holder::Input::Heard(message));
            }
            Action::Tick => {
                next.now = next.now + TICK;
                let mut out = Vec::new();
                next.grantor.tick(next.now, &mut out);
                self.answer(&mut next, out);
                for client in 0..next.clients.len() {
                    let mut out = Vec::new();
                    next.clients[client].holder.tick(next.now, &mut out);
                    self.send(&mut next, client, out);
                }
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<World>> {
        vec![
            // inv-L1
            Property::always(CONFLICT, |world: &World, state: &State| {
                world.probes.iter().filter(|probe| !probe.field.is_disjunctive()).all(|probe| {
                    let clients = 0..state.clients.len();
                    let writers = clients.clone().filter(|client| {
                        world.may_know_of(state, *client, probe)
                            && world.writes(state, *client, probe)
                    });
                    writers.clone().all(|writer| {
                        clients.clone().filter(|other| *other != writer).all(|other| {
                            !world.may_know_of(state, other, probe)
                                || (state.clients[other].holder.knows(state.now, probe)
                                    == Knowledge::None
                                    && !world.writes(state, other, probe))
                        })
                    })
                })
            }),
            // inv-L3
            Property::always(OTHERS, |world: &World, state: &State| {
                world.probes.iter().filter(|probe| probe.field.is_disjunctive()).all(|probe| {
                    state.clients.iter().enumerate().all(|(reader, person)| {
                        let known = person.holder.knows_others(state.now, probe);
                        let others = || {
                            let all = state.clients.iter().enumerate();
                            all.filter(|(other, _)| *other != reader)
                                .map(|(_, other)| &other.holder)
                        };
                        // Whoever has not been heard may have been closed by the grantor, or not yet.
                        let is_sure = others().any(|o| o.own(probe) && o.is_current(state.now));
                        let is_possible =
                            others().any(|o| o.own(probe) || !o.is_current(state.now));
                        known.is_none_or(|known| if known { is_possible } else { !is_sure })
                    })
                })
            }),
            Property::sometimes(CONTENT, |world: &World, state: &State| {
                let mut people = state.clients.iter().zip(&world.needs);
                people.all(|(person, needs)| person.met >= needs.len())
            }),
        ]
    }
}

fn name(text: &str) -> Field {
    Field::Child(Name::new(text.as_bytes()).expect("it is a name"))
}

fn want(field: Field, kind: Kind) -> Want {
    Want { scope: field.of(&base::FileId::ROOT), kind }
}

fn world(needs: Vec<Vec<Want>>, probes: Vec<Field>) -> World {
    World {
        policy: Policy::of_the_paper(),
        needs: needs.into_iter().map(|wants| vec![wants]).collect(),
        birth: None,
        done: None,
        probes: probes.into_iter().map(|field| field.of(&base::FileId::ROOT)).collect(),
        ticks_max: 3,
        repeats_max: 0,
        mutant: Mutant::None,
    }
}

fn read_and_write() -> World {
    world(
        vec![vec![want(Field::Content, Kind::Write)], vec![want(Field::Content, Kind::Read)]],
        vec![Field::Content],
    )
}

fn two_writers() -> World {
    world(vec![vec![want(Field::Content, Kind::Write)]; 2], vec![Field::Content])
}

fn names() -> World {
    world(
        vec![vec![want(Field::Children, Kind::Write)], vec![want(name("b"), Kind::Write)]],
        vec![name("a"), name("b")],
    )
}

fn disjunctive() -> World {
    let openers =
        vec![want(Field::Handles, Kind::SelfWrite), want(Field::Handles, Kind::OtherRead)];
    world(vec![vec![want(Field::Handles, Kind::SelfWrite)], openers], vec![Field::Handles])
}

/// One client may change its boolean under two leases, and gives one of them back unasked.
fn twice_disjunctive() -> World {
    let own = want(Field::Handles, Kind::SelfWrite);
    let both = vec![own.clone(), want(Field::Whole, Kind::Write)];
    let needs = vec![both, vec![want(Field::Handles, Kind::OtherRead)]];
    World { done: Some(own), ticks_max: 2, ..world(needs, vec![Field::Handles]) }
}

/// One client holds everything; the other takes a name out of that and creates a file there, which the
/// first then looks up.
fn birth() -> World {
    let child: base::FileId = "1".parse().expect("it is an identifier");
    let all = vec![want(Field::Tree, Kind::Write)];
    let look = vec![want(name("b"), Kind::Read)];
    let mut world = world(vec![vec![want(name("b"), Kind::Write)], all], vec![name("b")]);
    world.needs[1].push(look);
    world.probes.push(Field::Content.of(&child));
    World { birth: Some(Field::Tree.of(&child)), ticks_max: 2, ..world }
}

/// Explores every schedule. Answers how many states there are, and which promise was broken.
fn explore(world: World) -> (usize, Option<&'static str>) {
    let checker = world.checker().threads(2).spawn_dfs().join();
    let found = checker.discoveries();
    let broken = found.keys().find(|name| **name != CONTENT).copied();
    assert!(broken.is_some() || found.contains_key(CONTENT), "nobody is ever content");
    (checker.unique_state_count(), broken)
}

/// How far the models go: in every check, or in `cargo xtask long models`.
const IS_DEEP: bool = option_env!("CROFT_MODELS_DEEP").is_some();

#[track_caller]
fn check(world: World, states: usize, states_deep: [usize; 2]) {
    // A world in which more happens needs fewer repeats to show as much.
    let repeats_max = if world.birth.is_some() { 1 } else { 2 };
    assert_eq!(explore(world.clone()), (states, None));
    if IS_DEEP {
        let more_repeats = World { repeats_max, ticks_max: 2, ..world.clone() };
        let later = World { ticks_max: world.ticks_max + 1, ..world };
        assert_eq!([explore(more_repeats), explore(later)], states_deep.map(|count| (count, None)));
    }
}

#[track_caller]
fn catch(world: World, mutant: Mutant, promise: &str) {
    let (_, broken) = explore(World { mutant, ..world });
    assert_eq!(broken, Some(promise), "{mutant:?}");
}

#[test]
fn a_reader_and_a_writer_of_one_field_are_safe_in_every_schedule() {
    check(read_and_write(), 37_455, [204_344, 1_507_218]);
}

#[test]
fn two_writers_of_one_field_are_safe_in_every_schedule() {
    check(two_writers(), 37_123, [203_539, 1_516_374]);
}

#[test]
fn all_names_and_one_of_them_are_safe_in_every_schedule() {
    check(names(), 37_923, [200_002, 1_510_497]);
}

#[test]
fn openers_of_one_file_are_safe_in_every_schedule() {
    check(disjunctive(), 169_862, [692_472, 3_238_593]);
}

#[test]
fn an_opener_with_two_leases_on_its_boolean_is_safe_in_every_schedule() {
    check(twice_disjunctive(), 5_210, [4_860_366, 562_552]);
}

#[test]
fn a_file_that_is_born_in_anothers_tree_is_safe_in_every_schedule() {
    check(birth(), 3_940, [279_929, 884_076]);
}

#[test]
fn a_grantor_that_keeps_births_secret_is_caught() {
    catch(birth(), Mutant::KeepsBirthsSecret, CONFLICT);
}

#[test]
fn a_grantor_that_hears_overtaken_returns_is_caught() {
    catch(twice_disjunctive(), Mutant::HearsOvertakenReturns, OTHERS);
}

#[test]
fn a_holder_that_acts_after_its_session_lapsed_is_caught() {
    catch(two_writers(), Mutant::ActsAfterLapse, CONFLICT);
}

#[test]
fn a_holder_that_returns_before_it_has_pushed_is_caught() {
    catch(two_writers(), Mutant::ReturnsBeforePush, CONFLICT);
}

#[test]
fn a_grantor_that_grants_too_early_is_caught() {
    catch(read_and_write(), Mutant::GrantsTooEarly, CONFLICT);
    catch(names(), Mutant::GrantsTooEarly, CONFLICT);
}

#[test]
fn a_holder_that_counts_from_the_answer_is_caught() {
    catch(two_writers(), Mutant::CountsFromTheAnswer, CONFLICT);
}

#[test]
fn a_holder_that_believes_a_grant_whenever_it_comes_is_caught() {
    catch(two_writers(), Mutant::BelievesOldGrants, CONFLICT);
}

#[test]
fn a_grantor_that_ignores_who_may_still_change_is_caught() {
    catch(disjunctive(), Mutant::IgnoresFrozen, OTHERS);
}
