//! What one machine knows of all groups' filters, and the two questions that it asks them.

use std::collections::BTreeMap;

use crate::{
    Group, Print,
    bloom::{Bits, Shape},
    fuse::Fuse,
    message::{Body, Places, Tier, Update},
    shelf::{Shelf, Sighting},
};

/// How much may be known.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Groups.
    pub groups_max: usize,
    /// Bytes of all filters.
    pub bytes_max: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { groups_max: 1_024, bytes_max: 256 << 20 }
    }
}

/// Where a path may be. Never more than a hint: the group says whether it is so (H14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The first level has one answer.
    Recent(Group),
    /// The second has, and the first has none or several.
    All(Group),
    /// Neither.
    Miss,
}

impl Hint {
    /// The group.
    pub fn group(self) -> Option<Group> {
        match self {
            Hint::Recent(group) | Hint::All(group) => Some(group),
            Hint::Miss => None,
        }
    }
}

/// Why an update is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The group has not joined.
    Stranger,
    /// What it says is known already.
    Old,
    /// It changes a filter that is not the one known: the whole is wanted.
    Gap,
    /// It does not fit the filter that it is about, or that one was refused.
    Misfit,
    /// More bits are set than a filter of this shape needs: it would claim paths at random.
    Crowded,
    /// There is no room for it.
    Full,
}

/// A group as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    versions: [u64; 3],
    /// Bits set in its Bloom filters.
    ones: [u32; 3],
}

/// Two levels of filters, an array each (H5).
#[derive(Debug)]
pub struct Array {
    bounds: Bounds,
    members: BTreeMap<Group, Member>,
    recent: Shelf<Bits>,
    all: Shelf<Bits>,
    all_static: Shelf<Fuse>,
    fresh: Shelf<Bits>,
}

impl Array {
    /// Knows nobody.
    pub fn new(bounds: Bounds) -> Array {
        Array {
            bounds,
            members: BTreeMap::new(),
            recent: Shelf::default(),
            all: Shelf::default(),
            all_static: Shelf::default(),
            fresh: Shelf::default(),
        }
    }

    /// A group is there from now on; whether there was room for it.
    pub fn join(&mut self, group: Group) -> bool {
        let has_room = self.members.len() < self.bounds.groups_max;
        if has_room {
            self.members.entry(group).or_default();
        }
        has_room || self.members.contains_key(&group)
    }

    /// A group is gone.
    pub fn leave(&mut self, group: Group) {
        self.members.remove(&group);
        Tier::EACH.into_iter().for_each(|tier| self.forget(group, tier));
    }

    /// H5: the first level; if that has none or several, the second.
    pub fn look_up(&self, print: Print) -> Hint {
        let mut recent = Sighting::default();
        self.recent.look(print, &mut recent);
        if let Some(group) = recent.only() {
            return Hint::Recent(group);
        }
        let mut all = Sighting::default();
        self.all_static.look(print, &mut all);
        self.fresh.look(print, &mut all);
        self.all.look(print, &mut all);
        all.only().map_or(Hint::Miss, Hint::All)
    }

    /// Takes what a group says of its filters, or refuses it. Work and room are bounded by the length of
    /// the update.
    pub fn hear(&mut self, group: Group, update: &Update) -> Result<(), Refusal> {
        let (tier, version) = (update.tier, update.version);
        let member = self.members.get(&group).ok_or(Refusal::Stranger)?;
        if version <= member.versions[tier.index()] {
            return Err(Refusal::Old);
        }
        let taken = match &update.body {
            Body::Nothing => {
                self.forget(group, tier);
                Ok(0)
            }
            Body::Bits(bits) => self.take_bits(group, tier, bits),
            Body::Changes { since, .. } if *since != member.versions[tier.index()] => {
                return Err(Refusal::Gap);
            }
            Body::Changes { places, .. } => self.take_changes(group, tier, places),
            Body::Fuse(fuse) => self.take_fuse(group, tier, fuse),
        };
        if taken.is_err() {
            // Half of what a group says is worse than nothing of it.
            self.forget(group, tier);
        }
        let member = self.members.get_mut(&group).expect("it was there");
        // Also if it was refused: else each small change to come would have the whole sent again.
        member.versions[tier.index()] = version;
        member.ones[tier.index()] = taken.unwrap_or(0);
        taken.map(|_| ())
    }

    /// The version of a group's filter that is known.
    pub fn version(&self, group: Group, tier: Tier) -> Option<u64> {
        self.members.get(&group).map(|member| member.versions[tier.index()])
    }

    /// Bytes that the filters of each level take.
    pub fn bytes(&self) -> (u64, u64) {
        (self.recent.bytes(), self.all.bytes() + self.all_static.bytes() + self.fresh.bytes())
    }

    /// How many matrices a look-up may have to visit.
    pub fn slabs(&self) -> usize {
        self.recent.slabs() + self.all.slabs() + self.all_static.slabs() + self.fresh.slabs()
    }

    fn take_bits(&mut self, group: Group, tier: Tier, bits: &Bits) -> Result<u32, Refusal> {
        let ones = bits.ones();
        check_fill(bits.shape(), ones)?;
        let more = self.bits_mut(tier).bytes_more(group, bits.shape());
        self.check_room(more)?;
        if tier == Tier::All {
            self.all_static.remove(group);
        }
        self.bits_mut(tier).put(group, bits);
        Ok(ones)
    }

    fn take_fuse(&mut self, group: Group, tier: Tier, fuse: &Fuse) -> Result<u32, Refusal> {
        if tier != Tier::All {
            return Err(Refusal::Misfit);
        }
        self.check_room(self.all_static.bytes_more(group, fuse.grid()))?;
        self.all.remove(group);
        self.all_static.put(group, fuse);
        Ok(0)
    }

    fn take_changes(&mut self, group: Group, tier: Tier, places: &Places) -> Result<u32, Refusal> {
        let before = self.members[&group].ones[tier.index()];
        let shelf = self.bits_mut(tier);
        let shape = shelf.shape(group).ok_or(Refusal::Misfit)?;
        // They ascend, so the last one decides.
        if places.iter().last().is_some_and(|last| last >= shape.bits()) {
            return Err(Refusal::Misfit);
        }
        let ones = i64::from(before) + shelf.flip(group, places.iter());
        let ones = u32::try_from(ones).expect("as many were counted as are set");
        check_fill(shape, ones)?;
        Ok(ones)
    }

    fn check_room(&self, more: u64) -> Result<(), Refusal> {
        let (recent, all) = self.bytes();
        if recent + all + more > self.bounds.bytes_max { Err(Refusal::Full) } else { Ok(()) }
    }

    fn bits_mut(&mut self, tier: Tier) -> &mut Shelf<Bits> {
        match tier {
            Tier::Recent => &mut self.recent,
            Tier::All => &mut self.all,
            Tier::Fresh => &mut self.fresh,
        }
    }

    fn forget(&mut self, group: Group, tier: Tier) {
        self.bits_mut(tier).remove(group);
        if tier == Tier::All {
            self.all_static.remove(group);
        }
    }
}

/// With the best number of probes half of the bits are set. A filter of which more than five in eight are
/// does not say where paths are, and with six probes claims over 6 % of all of them.
fn check_fill(shape: Shape, ones: u32) -> Result<(), Refusal> {
    // Few bits may stray far from their mean.
    let ones_max = shape.bits() / 8 * 5 + 64;
    if ones > ones_max { Err(Refusal::Crowded) } else { Ok(()) }
}
