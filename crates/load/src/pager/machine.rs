//! The pager as a machine.

use std::collections::{BTreeMap, VecDeque};

use base::{Instant, Machine};

use super::{Input, Output, Stage, Token, gate::Gate};
use crate::{
    graphs::pager as graph,
    reservoir::{Cache, Marks, Meter, Tally, Watched},
    settings::{Pager as Settings, Refused},
};

/// The numbers of all places at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meters {
    /// 9A.
    pub lookups: Meter,
    /// 9B.
    pub referenced: Meter,
    /// 9C. Its throttled time is that of rate matching.
    pub dirty: Meter,
    /// 9D.
    pub clean: Meter,
    /// 9E: writes at the store, also of objects that a task has taken up again.
    pub cleaning: Meter,
    /// 9F.
    pub loading: Meter,
}

/// Objects in memory, over a store that has them all.
#[derive(Clone, Debug)]
pub struct Pager<K, V> {
    settings: Settings,
    /// Everything in memory, on its way there, or waited for.
    objects: BTreeMap<K, Object<V>>,
    /// 9A; an object that is waited for knows by whom.
    lookups: Tally,
    /// The objects that are waited for and not on their way, in the order of their first lookups.
    line: VecDeque<K>,
    /// 9B; an object knows by its references that it is there.
    referenced: Watched,
    /// 9C, each object due when it has been unreferenced for long enough.
    dirty: Marks<K>,
    /// 9D.
    clean: Cache<K>,
    /// 9E; an object knows that it is being written.
    cleaning: Tally,
    /// 9F; one lookup for each object on its way.
    loading: Tally,
    gate: Gate,
    is_throttled: bool,
}

#[derive(Clone, Debug)]
enum Object<V> {
    /// In line, or on its way for the first of these lookups; the others join that and wait in 9A.
    Awaited {
        tokens: Vec<Token>,
        is_loading: bool,
    },
    Resident(Resident<V>),
}

#[derive(Clone, Debug)]
struct Resident<V> {
    value: V,
    references: u64,
    /// Changed since it was loaded or last given to be written.
    is_dirty: bool,
    is_being_written: bool,
    /// When it was last let go.
    used_at: Instant,
}

impl<V> Resident<V> {
    fn stage(&self) -> Stage {
        match self {
            Resident { references: 1.., .. } => Stage::Referenced,
            Resident { is_being_written: true, .. } => Stage::Cleaning,
            Resident { is_dirty: true, .. } => Stage::Dirty,
            _ => Stage::Clean,
        }
    }
}

impl<V> Object<V> {
    fn stage(&self) -> Option<Stage> {
        match self {
            Object::Awaited { is_loading: false, .. } => None,
            Object::Awaited { is_loading: true, .. } => Some(Stage::Loading),
            Object::Resident(object) => Some(object.stage()),
        }
    }
}

impl<K: Clone + Ord, V: Clone> Machine for Pager<K, V> {
    type Input = Input<K, V>;
    type Output = Output<K, V>;

    fn step(&mut self, now: Instant, input: Input<K, V>, out: &mut Vec<Output<K, V>>) {
        match input {
            Input::Lookup { token, key } => self.on_lookup(now, token, key, out),
            Input::Drop { key } => self.on_drop(now, key, out),
            Input::SetDirty { key } => _ = self.edit(&key),
            Input::Loaded { key, value } => self.on_loaded(now, key, value, out),
            Input::Cleaned { key } => self.on_cleaned(now, key, out),
        }
        self.clean_more(now, out);
        self.look_up_more(now, out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output<K, V>>) {
        let unused_since = now - self.settings.discard_after;
        while self.discard_at().is_some_and(|at| at <= now) {
            let Some((key, ())) = self.clean.take_unused(unused_since) else { break };
            discard(&mut self.objects, key, out);
        }
        self.clean_more(now, out);
        self.look_up_more(now, out);
    }

    fn wake_at(&self) -> Option<Instant> {
        // With all writes under way, the next object is cleaned when one of them ends.
        let clean_at = self.dirty.due_at().filter(|_| self.cleaning.is_open());
        clean_at.into_iter().chain(self.discard_at()).min()
    }
}

impl<K: Clone + Ord, V: Clone> Pager<K, V> {
    /// Nothing in memory yet; refused if these settings cannot stand together.
    pub fn new(settings: Settings) -> Result<Pager<K, V>, Refused> {
        settings.validate()?;
        let mut plan = graph::graph(&settings).plan().map_err(|not_immune| Refused {
            section: "pager",
            breaches: vec![not_immune.to_string()],
        })?;
        let dirty = plan.spec(graph::DIRTY);
        let pager = Pager {
            objects: BTreeMap::new(),
            lookups: plan.tally(graph::LOOKUPS),
            line: VecDeque::new(),
            referenced: plan.watched(graph::REFERENCED),
            dirty: Marks::new(dirty),
            clean: plan.cache(graph::CLEAN),
            cleaning: plan.tally(graph::CLEANING),
            loading: plan.tally(graph::LOADING),
            gate: Gate::new(dirty.threshold, settings.batch_max),
            is_throttled: true,
            settings,
        };
        plan.finish();
        Ok(pager)
    }

    /// The same pager, but 9C throttles nothing: only for experiment L-E1, to show what that is for.
    ///
    /// The cleaner hurries as ever, but nothing keeps lookups from filling the memory.
    #[must_use]
    pub fn without_throttle(mut self) -> Pager<K, V> {
        self.is_throttled = false;
        self
    }

    /// Whether 9A takes lookups; a hit is granted even if it does not.
    pub fn is_open(&self) -> bool {
        self.lookups.is_open()
    }

    /// Whether lookups go on only as objects are cleaned (L59).
    pub fn is_matching(&self) -> bool {
        self.gate.is_matching()
    }

    /// An object's value, if it is in memory.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.resident(key).map(|object| &object.value)
    }

    /// Sets an object dirty and lets it be changed, at once and whatever else goes on (L58).
    ///
    /// Whoever calls this holds a reference to the object.
    pub fn edit(&mut self, key: &K) -> &mut V {
        let Some(Object::Resident(object)) = self.objects.get_mut(key) else {
            panic!("an object was changed that is not in memory");
        };
        assert!(object.references > 0, "an object was changed that nobody holds");
        object.is_dirty = true;
        &mut object.value
    }

    /// Where an object is; nowhere, if only the store has it.
    pub fn stage(&self, key: &K) -> Option<Stage> {
        self.objects.get(key)?.stage()
    }

    /// Every object in memory or on its way there, and where it is.
    pub fn stages(&self) -> impl Iterator<Item = (&K, Stage)> {
        self.objects.iter().filter_map(|(key, object)| Some((key, object.stage()?)))
    }

    /// The lookups that wait in 9A, by object, and first come first for each.
    pub fn waiting(&self) -> impl Iterator<Item = (&K, Token)> {
        self.objects.iter().flat_map(|(key, object)| {
            let tokens = match object {
                Object::Awaited { tokens, is_loading: false } => &tokens[..],
                // The first of them is in 9F.
                Object::Awaited { tokens, is_loading: true } => &tokens[1..],
                Object::Resident(_) => &[],
            };
            tokens.iter().map(move |&token| (key, token))
        })
    }

    /// The objects that lookups wait for and that are not on their way, in the order of their turns.
    pub fn line(&self) -> impl Iterator<Item = &K> {
        self.line.iter()
    }

    /// How many objects, from the front of the line, may be loaded once the store has room (L59).
    pub fn tickets(&self) -> u64 {
        self.gate.tickets()
    }

    /// The objects in 9C, in the order in which the cleaner takes them.
    pub fn dirty(&self) -> impl Iterator<Item = &K> {
        self.dirty.iter().map(|(_, key)| key)
    }

    /// The objects in 9D, in the order in which they are discarded.
    pub fn clean(&self) -> impl Iterator<Item = &K> {
        self.clean.iter().map(|(_, key)| key)
    }

    /// When an object in memory was last let go.
    pub fn used_at(&self, key: &K) -> Option<Instant> {
        self.resident(key).map(|object| object.used_at)
    }

    /// The numbers of all places.
    pub fn meters(&self, now: Instant) -> Meters {
        Meters {
            lookups: self.lookups.meter(now),
            referenced: self.referenced.meter(),
            dirty: Meter { throttled: self.gate.throttled(now), ..self.dirty.meter() },
            clean: self.clean.meter(),
            cleaning: self.cleaning.meter(now),
            loading: self.loading.meter(now),
        }
    }

    fn on_lookup(&mut self, now: Instant, token: Token, key: K, out: &mut Vec<Output<K, V>>) {
        // A hit is no new load, so nothing throttles it.
        if self.resident(&key).is_some() {
            return self.grant(now, token, key, out);
        }
        if self.lookups.enter(now, 1).is_err() {
            return out.push(Output::Refused { token });
        }
        if let Some(Object::Awaited { tokens, .. }) = self.objects.get_mut(&key) {
            return tokens.push(token);
        }
        self.gate.on_wait(self.in_line());
        self.line.push_back(key.clone());
        self.objects.insert(key, Object::Awaited { tokens: vec![token], is_loading: false });
    }

    fn on_drop(&mut self, now: Instant, key: K, out: &mut Vec<Output<K, V>>) {
        let Some(Object::Resident(object)) = self.objects.get_mut(&key) else {
            panic!("an object was dropped that is not in memory");
        };
        assert!(object.references > 0, "an object was dropped that nobody holds");
        object.references -= 1;
        if object.references == 0 {
            object.used_at = now;
            self.referenced.leave(1);
            self.put_by(now, key, out);
        }
    }

    fn on_loaded(&mut self, now: Instant, key: K, value: V, out: &mut Vec<Output<K, V>>) {
        let Some(Object::Awaited { tokens, is_loading: true }) = self.objects.get_mut(&key) else {
            panic!("an object was loaded that was not asked for");
        };
        let tokens = std::mem::take(tokens);
        // One was at the store for it; the others are hits, and no hit waits for its turn.
        self.loading.leave(now, 1);
        self.lookups.leave(now, tokens.len() as u64 - 1);
        out.extend(tokens.iter().map(|&token| Output::Granted { token, key: key.clone() }));
        self.referenced.enter(1);
        let object = Resident {
            value,
            references: tokens.len() as u64,
            is_dirty: false,
            is_being_written: false,
            used_at: now,
        };
        self.objects.insert(key, Object::Resident(object));
    }

    fn on_cleaned(&mut self, now: Instant, key: K, out: &mut Vec<Output<K, V>>) {
        let Some(Object::Resident(object)) = self.objects.get_mut(&key) else {
            panic!("an object was cleaned that is not in memory");
        };
        assert!(object.is_being_written, "an object was cleaned that was not given to be written");
        object.is_being_written = false;
        self.cleaning.leave(now, 1);
        if object.references == 0 {
            self.put_by(now, key, out);
        }
        self.gate.on_cleaned(self.dirty.level(), self.in_line());
    }

    /// An object that nobody holds, and that is not being written, goes to 9C or 9D.
    fn put_by(&mut self, now: Instant, key: K, out: &mut Vec<Output<K, V>>) {
        let Some(Object::Resident(object)) = self.objects.get(&key) else { return };
        let used_at = object.used_at;
        match object.stage() {
            Stage::Dirty => {
                self.dirty.mark(key, (), used_at + self.settings.clean_after);
                self.gate.on_dirty(now, self.dirty.level(), self.in_line());
            }
            Stage::Clean => {
                // L60: at the limit, the least recently referenced goes before its time.
                let objects = &mut self.objects;
                self.clean.put(key, (), 1, used_at, |early, ()| discard(objects, early, out));
            }
            // Its write tells us when it ends.
            Stage::Cleaning | Stage::Referenced | Stage::Loading => {}
        }
    }

    /// Gives one more reference to an object in memory.
    fn grant(&mut self, now: Instant, token: Token, key: K, out: &mut Vec<Output<K, V>>) {
        let Some(Object::Resident(object)) = self.objects.get_mut(&key) else { return };
        let stage = object.stage();
        object.references += 1;
        if stage != Stage::Referenced {
            self.referenced.enter(1);
        }
        if stage == Stage::Dirty {
            self.dirty.remove(&key);
            self.gate.on_dirty(now, self.dirty.level(), self.in_line());
        } else if stage == Stage::Clean {
            self.clean.remove(&key);
        }
        out.push(Output::Granted { token, key });
    }

    /// 9C to 9E: the cleaner takes what is due, or what there is while it hurries.
    fn clean_more(&mut self, now: Instant, out: &mut Vec<Output<K, V>>) {
        while self.cleaning.is_open() {
            // L59: while lookups wait for it, the cleaner ignores the timers.
            let next = if self.gate.is_matching() {
                self.dirty.take_first()
            } else {
                self.dirty.take_due(now)
            };
            let Some((key, ())) = next else { break };
            let Some(Object::Resident(object)) = self.objects.get_mut(&key) else { continue };
            object.is_dirty = false;
            object.is_being_written = true;
            let value = object.value.clone();
            self.cleaning.enter(now, 1).expect("it is open");
            self.gate.on_dirty(now, self.dirty.level(), self.in_line());
            out.push(Output::Write { key, value });
        }
    }

    /// 9A to 9F: lookups go as far as the gate and the store's room allow.
    fn look_up_more(&mut self, now: Instant, out: &mut Vec<Output<K, V>>) {
        loop {
            if self.loading.level() == 0 {
                self.gate.on_loaded(self.in_line());
            }
            let may_go = !self.is_throttled || self.gate.may_release(self.dirty.level());
            if !may_go || !self.loading.is_open() {
                break;
            }
            let Some(key) = self.line.pop_front() else { break };
            if let Some(Object::Awaited { is_loading, .. }) = self.objects.get_mut(&key) {
                *is_loading = true;
            }
            self.gate.on_release();
            self.lookups.leave(now, 1);
            self.loading.enter(now, 1).expect("it is open");
            out.push(Output::Load { key });
        }
    }

    /// How many objects are waited for and not on their way.
    fn in_line(&self) -> u64 {
        self.line.len() as u64
    }

    fn discard_at(&self) -> Option<Instant> {
        self.clean.used_at().map(|used_at| used_at + self.settings.discard_after)
    }

    fn resident(&self, key: &K) -> Option<&Resident<V>> {
        match self.objects.get(key) {
            Some(Object::Resident(object)) => Some(object),
            _ => None,
        }
    }
}

/// Takes an object out of memory.
fn discard<K: Ord, V>(objects: &mut BTreeMap<K, Object<V>>, key: K, out: &mut Vec<Output<K, V>>) {
    if let Some(Object::Resident(object)) = objects.remove(&key) {
        out.push(Output::Discarded { key, value: object.value });
    }
}
