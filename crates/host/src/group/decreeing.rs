//! Who was sent away: what this machine hears of it and passes on, and what it keeps of that for its next start.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use base::{Instant, Machine as _, PublicKey};
use node::{Input, Output};
use overlay::{Decree, Decrees, Tidings, decrees};
use wire::Frame;

use crate::{Failure, cell::seconds_now, machine::replace};

use super::{Group, SENT_AWAY};

/// The most bytes of the file: more than as many decrees have as a cell remembers.
const BYTES_MAX: usize = 64 << 20;

/// The decrees that this machine knows of, and the file that has them.
pub(super) struct Decreeing {
    decrees: Decrees,
    path: PathBuf,
    me: PublicKey,
    /// What was said of the cell last: how many machines there are, and since when the members are these.
    told: (usize, u64),
}

impl Decreeing {
    /// Those that were kept in a directory.
    pub(super) fn open(
        directory: &Path,
        authority: PublicKey,
        me: PublicKey,
    ) -> Result<Decreeing, Failure> {
        let path = directory.join("decrees");
        let kept = match path.exists() {
            true => {
                let bytes = fs::read(&path).map_err(Failure::of("can't read", &path))?;
                base::decode(&bytes, BYTES_MAX).map_err(|malformed| {
                    let what = format!("{malformed}; remove it: the others say it again");
                    Failure::Damaged { path: path.clone(), what }
                })?
            }
            false => Vec::new(),
        };
        let decrees = Decrees::new(authority, me, kept);
        if decrees.is_revoked(&me) {
            return Err(Failure::Unfit(SENT_AWAY.into()));
        }
        Ok(Decreeing { decrees, path, me, told: (0, 0) })
    }

    /// Machines and users that were sent away.
    pub(super) fn gone(&self) -> impl Iterator<Item = PublicKey> {
        self.decrees.known().filter_map(|decree| match decree {
            Decree::Revoke(revocation) => Some(revocation.subject()),
            _ => None,
        })
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.decrees.wake_at()
    }

    fn keep(&self) -> Result<(), Failure> {
        let known: Vec<&Decree> = self.decrees.known().collect();
        replace(&self.path, &base::encode(&known))
    }
}

impl Group {
    /// There is a connection with another machine.
    pub(super) fn on_met(
        &mut self,
        other: PublicKey,
        out: &mut Vec<Output>,
    ) -> Result<(), Failure> {
        self.step_decrees(decrees::Input::Met(other), out)
    }

    /// Another machine says something of decrees.
    pub(super) fn on_tidings(
        &mut self,
        from: PublicKey,
        tidings: Tidings,
        out: &mut Vec<Output>,
    ) -> Result<(), Failure> {
        let input = decrees::Input::Heard { from, tidings, seconds: seconds_now() };
        self.step_decrees(input, out)
    }

    /// The group has decided something of somebody.
    pub(super) fn on_decided(
        &mut self,
        decree: Decree,
        out: &mut Vec<Output>,
    ) -> Result<(), Failure> {
        self.step_decrees(decrees::Input::Decided(Box::new(decree)), out)
    }

    /// The machines of the cell that are known here, or its members, may be others now.
    pub(super) fn tell_cell(&mut self, out: &mut Vec<Output>) -> Result<(), Failure> {
        let (Some(peers), Some(decreeing)) = (&self.peers, &mut self.decreeing) else {
            return Ok(());
        };
        let (machines, roll) = peers.cell();
        let told = (machines.len(), roll.epoch);
        if told == decreeing.told {
            return Ok(());
        }
        decreeing.told = told;
        let machines: BTreeSet<PublicKey> =
            machines.iter().map(|machine| machine.key).chain([decreeing.me]).collect();
        let members = roll.seats.iter().map(|seat| seat.key).collect();
        self.step_decrees(decrees::Input::Cell { machines, members }, out)
    }

    /// Says again what somebody may not have heard.
    pub(super) fn tick_decrees(&mut self, out: &mut Vec<Output>) -> Result<(), Failure> {
        let now = self.clock.now();
        let Some(decreeing) = &mut self.decreeing else { return Ok(()) };
        let mut wanted = Vec::new();
        decreeing.decrees.tick(now, &mut wanted);
        self.follow_decrees(wanted, out)
    }

    fn step_decrees(
        &mut self,
        input: decrees::Input,
        out: &mut Vec<Output>,
    ) -> Result<(), Failure> {
        let now = self.clock.now();
        let Some(decreeing) = &mut self.decreeing else { return Ok(()) };
        let mut wanted = Vec::new();
        decreeing.decrees.step(now, input, &mut wanted);
        self.follow_decrees(wanted, out)
    }

    fn follow_decrees(
        &mut self,
        mut wanted: Vec<decrees::Output>,
        out: &mut Vec<Output>,
    ) -> Result<(), Failure> {
        let now = self.clock.now();
        while !wanted.is_empty() {
            let mut later = Vec::new();
            for output in wanted.drain(..) {
                let (Some(peers), Some(decreeing)) = (&mut self.peers, &mut self.decreeing) else {
                    return Ok(());
                };
                match output {
                    decrees::Output::Tell(to, tidings) => {
                        peers.send(&to, wire::encode(&Frame::Tidings(tidings)));
                    }
                    decrees::Output::TellAll(tidings) => {
                        let bytes = wire::encode(&Frame::Tidings(tidings));
                        for to in peers.connected() {
                            peers.send(&to, bytes.clone());
                        }
                    }
                    decrees::Output::Obey(decree) => {
                        // Else it would be forgotten at the next start, and who is sent away meanwhile let in.
                        decreeing.keep()?;
                        let Decree::Revoke(revocation) = decree else { continue };
                        let key = revocation.subject();
                        if key == decreeing.me {
                            return Err(Failure::Unfit(SENT_AWAY.into()));
                        }
                        peers.send_away(&key);
                        decreeing.told = (0, 0);
                    }
                    // What the book has already, as that of a member that was away, needs no decision.
                    decrees::Output::Submit(decree) if self.member.book().has_heard(&decree) => {
                        let input = decrees::Input::Decided(Box::new(decree));
                        decreeing.decrees.step(now, input, &mut later);
                    }
                    decrees::Output::Submit(decree) => {
                        let (decree, heard) = (Box::new(decree), seconds_now());
                        self.member.step(now, Input::Decree { decree, heard }, out);
                    }
                }
            }
            wanted = later;
        }
        Ok(())
    }
}
