//! D-E3: field leases let two people save files in one directory without a word between them.

mod run;

pub(crate) use run::run;
