//! Whether the records that this machine keeps fit together, and whether the bytes are here that should be.
//!
//! The group only makes a checkpoint for it; all else is done beside it, over the records as they were then. What
//! may have changed since is looked at again before it is said to be wrong.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use base::FileId;
use client::Call;
use directory::{
    Actor, Record, Sort,
    audit::{Audit, Outline, Serials},
    record,
};
use node::mailroom::Kind;
use serde::Serialize;

use crate::{Content, Desk, Failure, group::Post, mailbox::Mailbox, store::Frozen};

/// How long the group may take for a checkpoint.
const PATIENCE: Duration = Duration::from_secs(30);
/// A group that has just decided something is asked again after this.
const PAUSE: Duration = Duration::from_millis(20);
/// So often at the most.
const TRIES: usize = 500;
/// So many contents are looked at again, and the rest is counted.
const AGAIN_MAX: usize = 1_000;

/// Who checks a machine that runs.
pub struct Fsck {
    pub(crate) inbox: Arc<Mailbox<Post>>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) content: Arc<Content>,
    /// Whether bytes may be on other machines.
    pub(crate) is_shared: bool,
}

/// What was looked at, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Files and directories, the root included.
    pub files: u64,
    /// Names.
    pub names: u64,
    /// Files whose bytes should be on this machine.
    pub contents: u64,
    /// How many bytes those have.
    pub content_bytes: u64,
    /// What was found. At most a few thousand.
    pub findings: Vec<Finding>,
    /// How much more was, that is not told.
    pub findings_more: u64,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub what: String,
    /// What to do.
    pub remedy: String,
    /// Whether it does no harm but for the room that it takes.
    pub is_warning: bool,
}

/// The records at one moment, and what the group knows of them.
pub(crate) struct Survey {
    pub(crate) records: Frozen,
    pub(crate) outline: Outline,
    /// How many members have them.
    pub(crate) members: usize,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_well(&self) -> bool {
        self.findings.iter().all(|finding| finding.is_warning) && self.findings_more == 0
    }

    fn find(&mut self, what: String, remedy: &str) {
        self.findings.push(Finding { what, remedy: remedy.into(), is_warning: false });
    }
}

impl Fsck {
    /// Looks at everything. If it is to mend, contents of files that are no more are removed.
    pub fn run(&self, is_mending: bool) -> Result<Report, Failure> {
        let survey = self.survey()?;
        let mut report = Report::default();
        let mut short = Vec::new();
        let serials = self.look(survey, &mut report, &mut short)?;
        // At most as many as there are contents here.
        let mut strays = Vec::new();
        for serial in self.content.serials()? {
            let serial = serial?;
            if !serials.contains(serial) {
                strays.push(serial);
            }
        }
        if !(short.is_empty() && strays.is_empty()) {
            let survey = self.survey()?;
            self.look_again(&survey, &short, &mut report)?;
            self.sweep(&survey, strays, is_mending, &mut report)?;
        }
        Ok(report)
    }

    /// The records with everything that this machine has done so far.
    fn survey(&self) -> Result<Survey, Failure> {
        self.desk.call(&Actor::ROOT, Call::Settle).map_err(|failure| {
            let what = format!(
                "what was done last on this machine could not be pushed ({}); look at `croft \
                 doctor`, and try again",
                failure.errno()
            );
            Failure::Unfit(what)
        })?;
        for _ in 0..TRIES {
            let (reply, survey) = mpsc::sync_channel(1);
            if !self.inbox.post(Kind::Word, Post::Survey(reply)) {
                thread::sleep(PAUSE);
                continue;
            }
            match survey.recv_timeout(PATIENCE) {
                Ok(Some(survey)) => return survey.map_err(Failure::Unfit),
                Ok(None) => thread::sleep(PAUSE),
                Err(_) => return Err(Failure::Stopped),
            }
        }
        let what = "the records do not come to rest, or the disk is full; look at `croft status`, \
                    and try again";
        Err(Failure::Unfit(what.into()))
    }

    /// Checks all records and finds contents that seem too short. The numbers of all files.
    fn look(
        &self,
        survey: Survey,
        report: &mut Report,
        short: &mut Vec<(FileId, record::Content)>,
    ) -> Result<Serials, Failure> {
        let Survey { records, outline, members } = survey;
        let remedy = match members {
            1 => {
                "the store of this machine is damaged: stop it, and restore its directory from a copy"
            }
            _ => {
                "the store of this machine is damaged: run `croft fsck` on other members, and if all \
                 is well there, have this one join with a new directory"
            }
        };
        let mut audit = Audit::new(outline);
        let mut find = |file: &FileId| records.file(file);
        for found in records.records() {
            match found {
                Ok((key, record)) => audit.look(&key, &record, &mut find)?,
                Err(Failure::Malformed(malformed)) => {
                    report.find(format!("a record can't be read: {malformed}"), remedy);
                }
                Err(failure) => return Err(failure),
            }
        }
        for (key, record) in records.records().flatten() {
            let Record::File(file) = record else { continue };
            audit.look_again(&key.file, &file);
            if !self.is_home_of(file.sort, &file.content) {
                continue;
            }
            report.contents += 1;
            report.content_bytes = report.content_bytes.saturating_add(file.content.size);
            if self.shortage(file.serial, &file.content)?.is_none() {
                continue;
            }
            match short.len() < AGAIN_MAX {
                true => short.push((key.file, file.content.clone())),
                false => report.findings_more += 1,
            }
        }
        let (audited, serials) = audit.finish();
        (report.files, report.names) = (audited.files, audited.names);
        report.findings_more += audited.findings_more;
        audited.findings.into_iter().for_each(|what| report.find(what, remedy));
        Ok(serials)
    }

    /// Whether bytes should be here.
    fn is_home_of(&self, sort: Sort, content: &record::Content) -> bool {
        let is_here = match content.home {
            Some(home) => home == self.desk.me(),
            None => !self.is_shared,
        };
        sort == Sort::Regular && is_here && content.size > 0
    }

    /// How many bytes are here, if those are too few.
    fn shortage(&self, serial: u64, content: &record::Content) -> Result<Option<u64>, Failure> {
        let length = self.content.length(serial)?.unwrap_or(0);
        Ok((length < content.size).then_some(length))
    }

    /// Says which contents are too short, of those that have not changed since.
    fn look_again(
        &self,
        survey: &Survey,
        short: &[(FileId, record::Content)],
        report: &mut Report,
    ) -> Result<(), Failure> {
        // Of what was being written when the machine died, the right size is found out when it is next used.
        let unsure = self.content.written_before();
        for (file, content) in short {
            let Some(now) = survey.records.file(file)?.filter(|now| now.content == *content) else {
                continue;
            };
            if let Some(length) = self.shortage(now.serial, content)?
                && !unsure.contains(&now.serial)
            {
                report.find(
                    format!(
                        "of the {} bytes of {file}, inode {}, only {length} are on this machine, \
                         which should have them",
                        content.size, now.serial
                    ),
                    "look at the disk of this machine, and restore that file from a copy",
                );
            }
        }
        Ok(())
    }

    /// Says how much lies here for files that are no more, or removes it.
    fn sweep(
        &self,
        survey: &Survey,
        strays: Vec<u64>,
        is_mending: bool,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let mut serials = Serials::default();
        for (_, record) in survey.records.records().flatten() {
            if let Record::File(file) = record {
                serials.insert(file.serial);
            }
        }
        let (mut count, mut bytes) = (0u64, 0u64);
        for serial in strays.into_iter().filter(|serial| !serials.contains(*serial)) {
            if let Some(length) = self.content.length(serial)? {
                count += 1;
                bytes = bytes.saturating_add(length);
                if is_mending {
                    self.content.remove(serial)?;
                }
            }
        }
        if count > 0 {
            let (what, remedy) = match is_mending {
                true => ("lay", "nothing: they are removed"),
                false => ("lie", "run `croft fsck --mend`, which removes them"),
            };
            let what = format!("{bytes} bytes {what} here of {count} files that are no more");
            report.findings.push(Finding { what, remedy: remedy.into(), is_warning: true });
        }
        Ok(())
    }
}
