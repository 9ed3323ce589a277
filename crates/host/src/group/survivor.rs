//! What a member's shell does when too many members are lost: it says how much this machine has, and goes on
//! from there when the authority says so.

use std::sync::mpsc::SyncSender;

use base::{Machine as _, PublicKey};
use group::{Decision, Rescue, Sealed};
use node::{Input, Output};
use wire::{Answer, Message, Survivor};

use super::{Group, standing::ForkStanding};

impl Group {
    /// How much this machine has.
    pub(super) fn survivor(&self) -> Survivor {
        let (now, replica) = (self.clock.now(), self.member.replica());
        let known = replica.last_rescue().map_or(replica.tip().height, |rescue| rescue.height);
        // Whoever was passed over knows who goes on, and no more.
        let survivor = replica.last_rescue().and_then(|rescue| rescue.rescue());
        let survivor = survivor.filter(|_| replica.is_passed_over()).map(|rescue| rescue.what.seat);
        let members = match &survivor {
            Some(seat) => std::slice::from_ref(seat),
            None => replica.members().list(),
        };
        Survivor {
            reach: replica.reach(),
            has_state: self.member.book().client(&self.me.0).is_some(),
            number: Rescue::number_at(known.max(replica.tip().height)),
            epoch: replica.epoch_known(),
            members: members.iter().map(|seat| seat.key).collect(),
            time: replica.time(now),
            quiet_s: self.quiet_s(),
        }
    }

    /// For how long nothing was decided as far as this machine has heard, in seconds.
    pub(super) fn quiet_s(&self) -> u64 {
        self.clock.now().since(self.decided.1).as_secs()
    }

    /// Notes when something was last decided.
    pub(super) fn note_decided(&mut self) {
        let height = self.member.replica().tip().height;
        if height != self.decided.0 {
            self.decided = (height, self.clock.now());
        }
    }

    /// The authority lets the group go on from this machine.
    pub(super) fn on_rescue(
        &mut self,
        rescue: Sealed<Rescue>,
        reply: SyncSender<Answer>,
        out: &mut Vec<Output>,
    ) {
        let decision = rescue.decision();
        self.member.step(self.clock.now(), Input::Rescue(rescue), out);
        if self.member.replica().tip().lineage.rescue() == Some(&decision) {
            self.rescuing = Some(reply);
        } else {
            let what = "something was decided meanwhile, or this machine was passed over; look at \
                        `croft status`, and try again if it still has to be";
            _ = reply.try_send(Answer::Refused(what.into()));
        }
    }

    /// It goes on alone, and that is safe.
    pub(super) fn on_rescued(&mut self, rescue: &Rescue) {
        eprintln!(
            "croft: THE GROUP WAS RECOVERED by the cell's authority, for the {}. time: it goes on from \
             decision {}, on this machine alone; what only the lost members had is gone",
            rescue.number,
            Rescue::height_since(rescue.height),
        );
        if let Some(reply) = self.rescuing.take() {
            // Whoever waited may be gone.
            _ = reply.try_send(Answer::Heard);
        }
    }

    /// Whoever runs this machine wants the rescue obeyed that it hesitates to obey.
    pub(super) fn on_obey(&mut self, reply: &SyncSender<Answer>, out: &mut Vec<Output>) {
        let is_due = self.member.replica().hesitation().is_some();
        self.member.step(self.clock.now(), Input::Obey, out);
        let what = "this machine has not heard of a recovery that it does not follow already; run `croft recover` \
                    where the survivor is, or wait until this one is connected with it";
        // Whoever asked may be gone.
        _ = reply.try_send(match is_due {
            true => Answer::Heard,
            false => Answer::Refused(what.into()),
        });
    }

    /// Somebody shows how the members have changed: the client on this machine has to know, and so has its
    /// member, who may have been passed over, and finds out for both whether a rescue is to be obeyed.
    pub(super) fn on_changes(&mut self, changes: Vec<Decision>, out: &mut Vec<Output>) {
        let Some(peers) = &mut self.peers else { return };
        peers.ear().on_changes(&changes);
        self.member.step(self.clock.now(), Input::Changes(changes), out);
    }

    /// Whoever says where it is may have been away for long, and know only members that are gone.
    pub(super) fn show_rescue(&self, to: &PublicKey) {
        if let (Some(peers), Some(rescue)) = (&self.peers, self.member.replica().last_rescue()) {
            let since = rescue.height;
            let changes = self.member.replica().changes_since(since);
            peers.send(to, self.member.about().encode(Message::Changes(changes)));
        }
    }

    /// Says once that others go on without this machine's vote.
    pub(super) fn tell_passed_over(&mut self) {
        let replica = self.member.replica();
        let is_passed_over = replica.is_passed_over();
        if is_passed_over && !self.is_passed_over {
            let number = replica.last_rescue().map_or(0, |rescue| Rescue::number_at(rescue.height));
            eprintln!(
                "croft: the cell's root key has recovered the group without this machine (recovery \
                 {number}); it follows, has no vote for now, and lets go of what only it had decided"
            );
        }
        self.is_passed_over = is_passed_over;
    }

    /// Says once that somebody shows a recovery that is not followed.
    pub(super) fn tell_fork(&mut self) {
        let fork = ForkStanding::of(self.member.replica()).filter(|fork| fork.is_refuted);
        let number = fork.as_ref().map_or(0, |fork| fork.rescue.number);
        if number > self.fork_told {
            eprintln!(
                "croft: somebody shows that the cell's root key has recovered the group from another machine \
                 (recovery {number}), but so many members answer here that they decide: this machine goes on with \
                 them; `croft doctor` says what to do"
            );
            self.fork_told = number;
        }
    }
}
