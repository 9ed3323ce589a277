//! Extended attributes.

use base::FileId;
use client::{Call, Reply};
use directory::{Act, Actor};

use crate::front::{Caller, Errno, When};

use super::{
    Tree,
    opens::{Inner, Open},
};

/// Those that there are. Access control lists would be `system.`: there are none.
const PREFIXES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
/// With what more than its user's rights a program runs.
const CAPABILITY: &[u8] = b"security.capability";

impl Tree {
    /// Sets an extended attribute.
    pub fn setxattr(
        &self,
        inode: u64,
        name: &[u8],
        value: &[u8],
        when: When,
        caller: &Caller,
    ) -> Result<(), Errno> {
        self.must_have_room_for_name()?;
        self.change_xattr(inode, name, Some(value.to_vec()), when, caller)
    }

    /// Takes an extended attribute away.
    pub fn removexattr(&self, inode: u64, name: &[u8], caller: &Caller) -> Result<(), Errno> {
        self.change_xattr(inode, name, None, When::Always, caller)
    }

    /// The value of an extended attribute. The kernel has checked who may know.
    pub fn getxattr(&self, inode: u64, name: &[u8]) -> Result<Vec<u8>, Errno> {
        must_be_known(name)?;
        let file = self.inodes.file(inode)?;
        match self.ask(&Actor::ROOT, Call::GetXattr { file, name: name.to_vec() })? {
            Reply::Bytes(value) => Ok(value),
            _ => Err(Errno::IO),
        }
    }

    /// The names of all extended attributes that this user may see, each with a zero behind it.
    pub fn listxattr(&self, inode: u64, caller: &Caller) -> Result<Vec<u8>, Errno> {
        let file = self.inodes.file(inode)?;
        let Reply::Attributes(names) = self.ask(&Actor::ROOT, Call::ListXattr { file })? else {
            return Err(Errno::IO);
        };
        let is_shown = |name: &&Vec<u8>| caller.uid == 0 || !name.starts_with(b"trusted.");
        let mut all = Vec::new();
        for name in names.iter().filter(is_shown) {
            all.extend_from_slice(name);
            all.push(0);
        }
        Ok(all)
    }

    fn change_xattr(
        &self,
        inode: u64,
        name: &[u8],
        value: Option<Vec<u8>>,
        when: When,
        caller: &Caller,
    ) -> Result<(), Errno> {
        must_be_known(name)?;
        let file = self.inodes.file(inode)?;
        // The kernel takes privileges of files away by itself, on behalf of whoever writes them.
        let root = Caller { uid: 0, gid: 0, pid: 0 };
        let is_kernels = value.is_none() && name == CAPABILITY;
        let caller = if is_kernels { &root } else { caller };
        let is_privilege = value.is_some() && name == CAPABILITY;
        let name = name.to_vec();
        self.act(caller, Act::SetXattr { file, name, value, when }, false)?;
        if is_privilege && let Some(open) = self.opens.get(inode) {
            open.lock().has_capability = true;
        }
        Ok(())
    }

    /// Whether a file has privileges that a write takes away.
    pub(super) fn has_capability(&self, file: &FileId) -> Result<bool, Errno> {
        let (file, name) = (file.clone(), CAPABILITY.to_vec());
        match self.ask(&Actor::ROOT, Call::GetXattr { file, name }) {
            Ok(_) => Ok(true),
            Err(Errno::NODATA) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Takes the privileges of a file away that is written past the kernel's cache.
    pub(super) fn drop_capability(&self, open: &Open, inner: &mut Inner) -> Result<(), Errno> {
        let (file, name) = (open.file.clone(), CAPABILITY.to_vec());
        let act = Act::SetXattr { file, name, value: None, when: When::Always };
        match self.ask(&Actor::ROOT, Call::Do(act)) {
            Ok(_) | Err(Errno::NODATA) => {
                inner.has_capability = false;
                Ok(())
            }
            Err(errno) => Err(errno),
        }
    }
}

fn must_be_known(name: &[u8]) -> Result<(), Errno> {
    match PREFIXES.iter().any(|prefix| name.starts_with(prefix) && name.len() > prefix.len()) {
        true => Ok(()),
        false => Err(Errno::OPNOTSUPP),
    }
}
