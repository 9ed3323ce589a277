//! How the group's thread begins: from its log and its store, with the machines that it knew.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use base::Machine;
use group::{Ed25519, Tip};
use lease::Policy;
use node::{
    Base, Limits, Recovery, Server, Settings,
    server::{Input, Others},
};
use wire::Ear;

use super::{Group, Mailbox, Peers, Post, SENT_AWAY, Stored, decreeing, terms};
use crate::{
    Content, Failure, Log, Neighbours, Store,
    ballast::Ballast,
    cell::{Membership, seconds_now},
    clock::Clock,
    key,
};

/// A client asks again, and then all, after this time.
const REPEAT: Duration = Duration::from_millis(500);

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
        let mut wanted = Vec::new();
        let member = recovery.finish(&mut wanted);
        if member.book().is_revoked(&me.0) {
            return Err(Failure::Unfit(SENT_AWAY.into()));
        }
        let join = membership.own_join(&key);
        let known = member.book().client(&me.0).and_then(|client| member.book().machine(client));
        let expires = join.certificate.verify(&membership.authority, 0).map(|good| good.expires);
        let has_moved = known.is_none_or(|known| {
            known.whereabouts.addresses != join.whereabouts.addresses
                || expires.is_ok_and(|expires| expires > known.expires)
        });
        // Whoever founds a cell is the first to join it.
        let has_news = !member.replica().is_alone() || has_moved;
        let (peers, others) = match membership.listen {
            Some(bind) => {
                let decrees = decreeing::open(home, membership.authority, me.0)?;
                let (roll, notary) = (membership.roll.clone(), Ed25519::new(key.clone()));
                let ear = Ear::new(me.1, membership.charter(), roll, notary, REPEAT);
                let ear = ear.ok_or_else(|| {
                    let what = "the members of the group are none; put `cell` back from a copy";
                    Failure::Unfit(what.into())
                })?;
                let (authority, founder) = (membership.authority, membership.founder.key);
                let gone = decreeing::gone(&decrees);
                let machines = membership.machines.iter().map(|machine| machine.key);
                let machines = machines.filter(|key| !gone.contains(key)).collect();
                let expires = membership.expires()?;
                let (mail, content) = (Arc::clone(&inbox), Arc::clone(&content));
                let mut peers = Peers::start(home, membership, bind, mail, content, neighbours)?;
                gone.iter().for_each(|key| peers.send_away(key));
                (Some(peers), Some(Others { ear, authority, founder, decrees, machines, expires }))
            }
            None => (None, None),
        };
        let (now, mut out) = (clock.now(), Vec::new());
        let mut server = Server::new(me, member, others);
        server.step(now, Input::Seconds(seconds_now()), &mut out);
        server.begin(now, wanted, &mut out);
        if has_news {
            server.step(now, Input::Own { join: Box::new(join), token: None }, &mut out);
        }
        let standing = Arc::default();
        let mut group = Group {
            server,
            me,
            peers,
            replies: BTreeMap::new(),
            token: 0,
            home: home.into(),
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
            rescuing: None,
            is_passed_over: false,
            fork_told: 0,
        };
        group.content.owe(group.owed_bytes());
        group.make_room();
        group.follow(out, &mut Vec::new())?;
        group.read_book();
        group.inbox.seat(group.server.seated());
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
