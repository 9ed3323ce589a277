//! What a machine has on its disk.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use content::Seen;

/// A backing file, which programs may have open whatever becomes of its name.
pub(crate) type Backing = Rc<RefCell<Backed>>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backed {
    pub(crate) bytes: Vec<u8>,
    /// How often it was written.
    modified: i64,
}

impl Backed {
    pub(crate) fn of(bytes: Vec<u8>) -> Backing {
        Rc::new(RefCell::new(Backed { bytes, modified: 1 }))
    }

    pub(crate) fn set(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
        self.modified += 1;
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen { size: self.bytes.len() as u64, blocks: 0, modified: (self.modified, 0) }
    }
}

/// By the number of the file. It outlives the machine.
#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) packed: BTreeMap<u64, Vec<u8>>,
    pub(crate) backing: BTreeMap<u64, Backing>,
    /// Which content the directory was last told that this machine has.
    pub(crate) versions: BTreeMap<u64, u64>,
}

impl Disk {
    /// What it has of a file.
    pub(crate) fn bytes(&self, serial: u64) -> Option<Vec<u8>> {
        let backing = self.backing.get(&serial).map(|backing| backing.borrow().bytes.clone());
        backing.or_else(|| self.packed.get(&serial).cloned())
    }

    pub(crate) fn make_backing(&mut self, serial: u64, bytes: Vec<u8>) -> Backing {
        self.packed.remove(&serial);
        let backing = Backed::of(bytes);
        self.backing.insert(serial, Rc::clone(&backing));
        backing
    }

    pub(crate) fn put(&mut self, serial: u64, bytes: Vec<u8>) {
        self.backing.remove(&serial);
        self.packed.insert(serial, bytes);
    }

    pub(crate) fn remove(&mut self, serial: u64) {
        self.backing.remove(&serial);
        self.packed.remove(&serial);
    }
}
