//! The records as they were at one moment, while the store goes on.

use base::FileId;
use directory::{File, Key, Record};
use fjall::{Keyspace, Readable, Snapshot};

use super::{CHECKPOINT, Store, failed, key};
use crate::Failure;

/// All records of one checkpoint. What is overwritten meanwhile takes room on the disk until this goes.
pub(crate) struct Frozen {
    snapshot: Snapshot,
    records: Keyspace,
}

impl Store {
    /// The records as they are.
    pub(crate) fn freeze(&self) -> Frozen {
        Frozen { snapshot: self.database.snapshot(), records: self.records.clone() }
    }
}

impl Frozen {
    /// Every record in order, or why it can't be read.
    pub(crate) fn records(&self) -> impl Iterator<Item = Result<(Key, Record), Failure>> + '_ {
        self.snapshot.range::<&[u8], _>(&self.records, ..CHECKPOINT).map(|found| {
            let (bytes, value) = found.into_inner().map_err(failed)?;
            Ok((key::decode(&bytes)?, base::decode(&value, value.len())?))
        })
    }

    /// A file's own record. One that can't be read is none.
    pub(crate) fn file(&self, file: &FileId) -> Result<Option<triomphe::Arc<File>>, Failure> {
        let found = self.snapshot.get(&self.records, key::encode(&Key::file(file)));
        let record =
            found.map_err(failed)?.and_then(|value| base::decode(&value, value.len()).ok());
        Ok(match record {
            Some(Record::File(file)) => Some(file),
            _ => None,
        })
    }
}
