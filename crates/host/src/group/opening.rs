//! How the group's thread begins: from its log and its store, with the machines that it knew.

use std::{path::Path, sync::Arc};

use base::Machine;
use group::Tip;
use lease::Policy;
use node::{Base, Input, Limits, Recovery, Settings};
use overlay::Renewer;

use super::{Decreeing, Group, Mailbox, Peers, Post, SENT_AWAY, Stored, announce, terms};
use crate::{
    Content, Failure, Log, Neighbours, Store, ballast::Ballast, cell::Membership, clock::Clock, key,
};

/// What a crash had torn when the machine was started, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Torn {
    /// Of the log.
    pub log_bytes: u64,
    /// Of the pack.
    pub content_bytes: u64,
}

impl Group {
    /// The group as its log and store have left it.
    pub(crate) fn open(
        home: &Path,
        store: Arc<Store>,
        content: Arc<Content>,
        clock: Clock,
        inbox: Arc<Mailbox<Post>>,
        membership: Membership,
        neighbours: Arc<Neighbours>,
    ) -> Result<Group, Failure> {
        let key = key::read(&home.join("key"))?;
        let identity = membership.identity(&key);
        let me = (key.public(), membership.client);
        let policy = Policy { gives_all_to_one: true, ..Policy::default() };
        let settings = Settings { is_stored: true, terms: terms(), policy, ..Settings::default() };
        let checkpoint = store.checkpoint()?;
        let mark = checkpoint.as_ref().map_or(0, |(mark, _)| *mark);
        let first = Tip::pinned(&membership.pin).ok_or_else(|| {
            let what = "the members that this machine was told to believe are none";
            Failure::Unfit(format!("{what}; put `cell` back from a copy"))
        })?;
        let base = match &checkpoint {
            Some((_, state)) => Base::Stored(state),
            None => Base::First(&first),
        };
        let group = group::Settings::default();
        let mut recovery = Recovery::new(settings, group, identity, base, mark, clock.now())?;
        let stored = Stored { mark, height: recovery.height() };
        let limits = Limits::planned(group::Settings::default());
        let (log, mut recovered) = Log::open(&home.join("log"))?;
        let torn = Torn {
            log_bytes: recovered.torn().map_or(0, |torn| torn.bytes),
            content_bytes: content.torn_bytes(),
        };
        torn.say();
        store.check_reach(mark, log.first())?;
        store.check_end(mark, log.next())?;
        recovered.pass_before(mark + 1);
        let mut log_bytes = 0;
        while let Some((_, record)) = recovered.next()? {
            log_bytes += record.len() as u64;
            let mut absent = recovery.replay(&record)?;
            while let Some(wanted) = absent {
                absent = recovery.supply(store.load(&wanted)?);
            }
        }
        let mut out = Vec::new();
        let mut member = recovery.finish(&mut out);
        if member.book().is_revoked(&me.0) {
            return Err(Failure::Unfit(SENT_AWAY.into()));
        }
        let join = membership.own_join(&key);
        let authority = membership.authority;
        let decreeing = match membership.listen {
            Some(_) => Some(Decreeing::open(home, authority, me.0)?),
            None => None,
        };
        let known = member.book().client(&me.0).and_then(|client| member.book().machine(client));
        let expires = join.certificate.verify(&membership.authority, 0).map(|good| good.expires);
        let has_moved = known.is_none_or(|known| {
            known.whereabouts.addresses != join.whereabouts.addresses
                || expires.is_ok_and(|expires| expires > known.expires)
        });
        let is_alone = member.replica().is_alone();
        if is_alone && has_moved {
            // Whoever founds a cell is the first to join it.
            member.step(clock.now(), Input::Join(Box::new(join.clone())), &mut out);
        }
        let peers = match membership.listen {
            Some(bind) => {
                let mail_back = Arc::clone(&inbox);
                let (inbox, content) = (Arc::clone(&inbox), Arc::clone(&content));
                let beside = Arc::clone(&neighbours);
                let mail = (inbox, limits);
                let mut peers = Peers::start(home, membership, bind, mail, content, neighbours)?;
                let gone = decreeing.iter().flat_map(Decreeing::gone);
                gone.for_each(|key| peers.send_away(&key));
                if has_moved || !is_alone {
                    announce::announce(peers.lookout(), beside, mail_back, join, None);
                }
                Some(peers)
            }
            None => None,
        };
        let standing = Arc::default();
        let mut group = Group {
            member,
            me,
            peers,
            decreeing,
            log,
            store,
            content,
            clock,
            inbox,
            standing,
            listed: Arc::default(),
            stored,
            log_bytes,
            log_used: 0,
            ballast: Ballast::of(home),
            torn,
            records_max: limits.records_max,
            is_waiting: false,
            is_full: false,
            decided: (0, clock.now()),
            renewer: Renewer::default(),
            rescuing: None,
            is_passed_over: false,
            fork_told: 0,
        };
        group.content.owe(group.owed_bytes());
        group.make_room();
        group.follow(out, &mut Vec::new())?;
        group.read_book();
        group.read_roll();
        group.tell_standing();
        Ok(group)
    }
}

impl Torn {
    /// Says it, a line for each.
    fn say(&self) {
        for (bytes, what) in [(self.log_bytes, "log"), (self.content_bytes, "pack of contents")] {
            if bytes > 0 {
                eprintln!(
                    "croft: a crash had torn {bytes} bytes off the end of the {what}; nobody was told that they were safe"
                );
            }
        }
    }
}
