//! The other machines of the cell, as the shell of a member sees them: what comes from them and goes there.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, mpsc::SyncSender},
    time::{Duration, Instant},
};

use base::{Digest, PublicKey};
use group::{Ed25519, Roll};
use node::{
    Book,
    mailroom::{Kind, Sender},
};
use overlay::{Consent, Decree, Patrons, Profile, Renewal, Renewer, Users};
use wire::{Answer, Audience, Ear, Join, Neighbour, Query, Ticket, Whom};

use crate::{
    Asker, Content, Failure, Lane, Limits, Neighbours, Network, NetworkSettings, Reception,
    Welcome,
    authority::issuer_path,
    cell::{IoRequest, Membership, seconds_now},
    key,
    mailbox::Mailbox,
    neighbours,
    net::Lookout,
};

use super::Post;

/// A client asks again, and then all, after this time.
const REPEAT: Duration = Duration::from_millis(500);
/// Up to this size a frame counts as small.
const URGENT_BYTES_MAX: usize = 64 << 10;
/// How long whoever wants to join is kept waiting.
const JOIN_MAX: Duration = Duration::from_secs(8);
/// How long whoever asks how much this machine has is kept waiting.
const SURVIVOR_MAX: Duration = Duration::from_secs(3);
/// After so long without a word that can be believed all machines are asked who the members are, and again after
/// as long.
const UNHEARD: Duration = Duration::from_secs(5);
/// The most machines that are asked.
const ASKED_MAX: usize = 64;

/// The other machines.
pub(crate) struct Peers {
    directory: PathBuf,
    membership: Membership,
    /// When this machine's certificate expires, in seconds since 1970.
    expires: u64,
    /// Who waits until then to hear whether a machine has joined. At most `joining_max`. These go before the
    /// network, which waits for them.
    joining: BTreeMap<PublicKey, (SyncSender<Answer>, Instant)>,
    /// Who waits until then to hear what came of the authority's word on somebody. At most `joining_max`.
    decreeing: BTreeMap<PublicKey, (SyncSender<Answer>, Instant)>,
    network: Arc<Network>,
    neighbours: Arc<Neighbours>,
    /// When to look next for certificates that have expired, in seconds since 1970.
    expires_next: u64,
    ear: Ear<Ed25519>,
    /// When all machines were last asked who the members are.
    asked_at: Option<base::Instant>,
    door: Arc<Door>,
    /// Says other things instead, in tests.
    #[cfg(test)]
    pub(super) liar: Option<std::cell::RefCell<super::liar::Liar>>,
}

/// Lets in who is of the cell, and passes on what they say.
pub(super) struct Door {
    inbox: Arc<Mailbox<Post>>,
    limits: node::Limits,
    content: Arc<Content>,
    neighbours: Arc<Neighbours>,
    /// Where this machine lives.
    directory: PathBuf,
    /// Where an issuer's key is, if it is here.
    issuer: PathBuf,
    /// The root key of the cell.
    authority: PublicKey,
    /// What the group is known by.
    group: Digest,
    /// Those who are of the cell, and when their certificates expire.
    known: Mutex<BTreeMap<PublicKey, u64>>,
    /// Those who were sent away. As many as the group remembers.
    gone: Mutex<BTreeSet<PublicKey>>,
    /// Held by whoever asks the members for a stranger: one thread at a time, so that strangers never keep all of
    /// them waiting.
    looking: Mutex<()>,
    /// Whether it answers wrongly, in tests.
    #[cfg(test)]
    misanswers: std::sync::atomic::AtomicBool,
}

impl Door {
    /// Whether somebody is of the cell: whoever is no member of the group hears of a new machine only when that
    /// comes.
    fn is_neighbour(&self, from: &Asker) -> bool {
        let find = || {
            let _looking = self.looking.try_lock().ok()?;
            self.neighbours.find(Whom::Key(from.key)).ok()
        };
        if from.is_known {
            return true;
        }
        let found = find().filter(|machine| machine.expires > seconds_now());
        if let Some(machine) = &found {
            self.known().insert(from.key, machine.expires);
        }
        found.is_some()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<PublicKey, u64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self) -> std::sync::MutexGuard<'_, BTreeSet<PublicKey>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews the certificate of a machine whose certificate ends soon enough, if an issuer's key is here.
    fn renew(&self, from: &Asker) -> Answer {
        let expires = self.known().get(&from.key).copied().filter(|_| from.is_known);
        let refused = |why: &str| Answer::Refused(why.to_owned());
        match expires {
            None => refused("only machines of the cell may ask that"),
            Some(expires) if !Renewer::is_due(expires, seconds_now()) => {
                refused("it is too early, or too late, for a renewal")
            }
            Some(_) if !self.issuer.exists() => refused("no issuer's key is here"),
            Some(_) => match Membership::renewal(&self.issuer, &self.authority, from.key) {
                Ok(renewal) => Answer::Renewed(Box::new(renewal)),
                Err(failure) => Answer::Refused(failure.to_string()),
            },
        }
    }

    /// How much this machine has of what was decided.
    fn survivor(&self, from: Sender) -> Answer {
        let (reply, survivor) = std::sync::mpsc::sync_channel(1);
        self.inbox.post_from(from, Kind::Word, 0, Post::Survivor(reply));
        let late = "the group's thread does not answer; look at `croft status` there";
        let survivor = survivor.recv_timeout(SURVIVOR_MAX);
        survivor.map_or_else(|_| Answer::Refused(late.into()), |one| Answer::Survivor(one.into()))
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Has the group decide something, and waits for what comes of it.
    pub(super) fn submit(
        &self,
        from: Sender,
        post: impl FnOnce(SyncSender<Answer>) -> Post,
    ) -> Answer {
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        if !self.inbox.post_from(from, Kind::Wish, 0, post(reply)) {
            let what = "this machine has too much to do; try again in a moment";
            return Answer::Refused(what.into());
        }
        let late = "the group does not answer; look at `croft status` there, and try again";
        answer.recv_timeout(JOIN_MAX).unwrap_or_else(|_| Answer::Refused(late.into()))
    }
}

impl Reception for Door {
    fn welcome(&self, key: &PublicKey) -> Welcome {
        // Whoever has no vote hears of others by asking the members.
        let heard = || self.neighbours.recall(Whom::Key(*key)).map(|machine| machine.expires);
        let known = self.known().get(key).copied();
        let expires = known.or_else(heard);
        match expires {
            _ if self.gone().contains(key) => Welcome::Refused,
            Some(expires) if expires <= seconds_now() => Welcome::Expired,
            Some(_) => Welcome::Known,
            None => Welcome::Stranger,
        }
    }

    fn on_met(&self, key: &PublicKey) {
        // If there is no room, they meet again.
        self.inbox.post_from(Sender::Machine(*key), Kind::Word, 0, Post::Met(*key));
    }

    fn on_frame(&self, from: &PublicKey, _: Lane, bytes: Vec<u8>) -> Duration {
        let (sender, size) = (Sender::Machine(*from), bytes.len());
        let kind = match Audience::of(&bytes) {
            Some(Audience::Group(_)) => Kind::Wish,
            _ => Kind::Word,
        };
        self.inbox.post_from(sender, kind, size, Post::Frame { from: *from, bytes });
        self.inbox.rest_from(&sender)
    }

    fn rest(&self, from: &Asker) -> Duration {
        self.inbox.rest_from(&sender(from))
    }

    fn on_ask(&self, from: &Asker, bytes: Vec<u8>, is_awaited: &dyn Fn() -> bool) -> Vec<u8> {
        let sender = sender(from);
        let answer = match wire::decode(&bytes) {
            Ok(Query::Join(mut join)) if *join.certificate.machine() == from.key => {
                join.heard = seconds_now();
                self.submit(sender, |reply| Post::Join { join, reply })
            }
            Ok(Query::Invited(digest)) => self.lead(sender, &digest),
            Ok(Query::Decree(_)) if !from.is_known => {
                Answer::Refused("only machines of the cell may pass that on".into())
            }
            Ok(Query::Decree(decree)) => {
                self.submit(sender, |reply| Post::Decree { decree, reply })
            }
            Ok(Query::Survivor { .. } | Query::Changes { .. }) if !from.is_known => {
                Answer::Refused("only machines of the cell may say that".into())
            }
            Ok(ref query) if query.group().is_some_and(|group| *group != self.group) => {
                Answer::Refused("that is for a group of which nothing is here".into())
            }
            Ok(Query::Survivor { .. }) => self.survivor(sender),
            Ok(Query::Changes { changes, .. }) => {
                self.inbox.post_from(sender, Kind::Word, bytes.len(), Post::Changes(changes));
                Answer::Heard
            }
            Ok(Query::Read { .. } | Query::Find { .. } | Query::Look(_) | Query::Io { .. })
                if !self.is_neighbour(from) =>
            {
                Answer::Refused("only machines of the cell may read".into())
            }
            Ok(ref query) if !self.neighbours.may_ask(&from.key, query) => Answer::Denied,
            Ok(Query::Read { serial, offset, length, .. }) => {
                neighbours::piece(&self.content, serial, offset, length)
            }
            Ok(Query::Find { serial, .. }) => self.neighbours.find_here(serial),
            Ok(Query::Look(file)) => self.neighbours.look(file),
            Ok(Query::Io { serial, file, who, io }) => {
                let (users, file) = (&Users::Any, &file);
                let request = IoRequest { users, serial, file, who, io, is_awaited };
                self.neighbours.serve(&from.key, request)
            }
            Ok(Query::Who(_) | Query::People | Query::Rights { .. }) if !from.is_known => {
                Answer::Refused("only machines of the cell may ask that".into())
            }
            Ok(Query::Who(whom)) => match self.neighbours.recall(whom) {
                Some(machine) => Answer::Machine(machine),
                None => Answer::Refused("nobody here knows that machine".into()),
            },
            Ok(Query::Rights { machine, serial, file, .. }) => {
                self.neighbours.rights_here(&machine, serial, &file)
            }
            Ok(Query::People) => self
                .neighbours
                .people(false)
                .map_or_else(|failure| Answer::Refused(failure.to_string()), Answer::People),
            Ok(Query::Renew) => self.renew(from),
            Ok(Query::Join(_)) => Answer::Refused(
                "that is the certificate of another machine; join on that one".into(),
            ),
            Err(malformed) => Answer::Refused(malformed.to_string()),
        };
        if let Answer::Refused(why) = &answer
            && !from.is_known
        {
            self.neighbours.say(&format!("{:?} was refused: {why}", from.key));
        }
        #[cfg(test)]
        let answer = match self.misanswers.load(std::sync::atomic::Ordering::Relaxed) {
            true => super::liar::misanswer(&bytes, answer),
            false => answer,
        };
        wire::encode(&answer)
    }
}

fn sender(from: &Asker) -> Sender {
    if from.is_known { Sender::Machine(from.key) } else { Sender::Stranger }
}

impl Peers {
    pub(super) fn start(
        directory: &Path,
        membership: Membership,
        bind: SocketAddr,
        (inbox, limits): (Arc<Mailbox<Post>>, node::Limits),
        content: Arc<Content>,
        neighbours: Arc<Neighbours>,
    ) -> Result<Peers, Failure> {
        let key = key::read(&directory.join("key"))?;
        let (client, charter) = (membership.client, membership.charter());
        let expires = membership.expires()?;
        let ear =
            Ear::new(client, charter, membership.roll.clone(), Ed25519::new(key.clone()), REPEAT);
        let ear = ear.ok_or_else(|| {
            Failure::Unfit("the members of the group are none; put `cell` back from a copy".into())
        })?;
        let (known, gone) = (Mutex::default(), Mutex::default());
        let beside = Arc::clone(&neighbours);
        let door = Arc::new(Door {
            inbox,
            limits,
            content,
            neighbours: beside,
            directory: directory.into(),
            issuer: issuer_path(directory),
            authority: membership.authority,
            group: charter.group,
            known,
            gone,
            looking: Mutex::default(),
            #[cfg(test)]
            misanswers: Default::default(),
        });
        let settings = NetworkSettings { key, bind, limits: Limits::default() };
        let reception = Arc::clone(&door) as Arc<dyn Reception>;
        let network = Arc::new(Network::start(settings, reception)?);
        neighbours.meet(&network, charter.group);
        let peers = Peers {
            directory: directory.into(),
            membership,
            expires,
            joining: BTreeMap::new(),
            decreeing: BTreeMap::new(),
            network,
            neighbours,
            expires_next: 0,
            ear,
            asked_at: None,
            door,
            #[cfg(test)]
            liar: None,
        };
        for machine in &peers.membership.machines {
            peers.meet(machine);
        }
        peers.neighbours.read_book(peers.membership.machines.iter().cloned());
        peers.neighbours.read_members(&peers.membership.roll);
        Ok(peers)
    }

    /// Where this machine listens.
    pub(super) fn address(&self) -> Result<SocketAddr, Failure> {
        self.network.address()
    }

    /// The other machines, for whoever asks them.
    pub(super) fn neighbours(&self) -> Arc<Neighbours> {
        Arc::clone(&self.neighbours)
    }

    /// Who shows how the network stands.
    pub(super) fn lookout(&self) -> Lookout {
        self.network.lookout()
    }

    fn meet(&self, Neighbour { key, addresses, expires, .. }: &Neighbour) {
        self.door.known().insert(*key, *expires);
        self.network.know(key, addresses);
    }

    pub(super) fn ear(&mut self) -> &mut Ear<Ed25519> {
        &mut self.ear
    }

    /// If no member was heard for long, asks everybody else: they may be others by now, and whoever knows can show
    /// it.
    pub(super) fn ask_around(&mut self, now: base::Instant) {
        let is_asked = self.asked_at.is_some_and(|at| now.since(at) < UNHEARD);
        if is_asked || !self.ear.is_unheard(now, UNHEARD) {
            return;
        }
        self.asked_at = Some(now);
        let whose = self.ear.whose();
        for Neighbour { key, .. } in self.membership.machines.iter().take(ASKED_MAX) {
            self.send(key, whose.clone());
        }
    }

    pub(super) fn send(&self, to: &PublicKey, bytes: Vec<u8>) {
        #[cfg(test)]
        if let Some(liar) = &self.liar {
            let frames = liar.borrow_mut().outward(to, bytes);
            return frames.into_iter().for_each(|bytes| self.send_frame(to, bytes));
        }
        self.send_frame(to, bytes);
    }

    /// From now on whatever is asked out of turn is answered wrongly.
    #[cfg(test)]
    pub(super) fn misanswer(&self) {
        self.door.misanswers.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    pub(super) fn send_frame(&self, to: &PublicKey, bytes: Vec<u8>) {
        let lane = match bytes.len() <= URGENT_BYTES_MAX {
            true => Lane::Urgent,
            false => Lane::Ordinary,
        };
        // What does not get through is said again by whoever means it.
        _ = self.network.send(to, lane, bytes);
    }

    /// Somebody wants to join, and waits for the answer. Whether there is room for one more.
    pub(super) fn await_join(&mut self, join: &Join, reply: SyncSender<Answer>) -> bool {
        let count_max = self.door.limits.joining_max;
        wait(&mut self.joining, *join.certificate.machine(), reply, count_max)
    }

    /// Somebody passes on what the authority says, and waits for the answer. Whether there is room for one more.
    pub(super) fn await_decree(&mut self, decree: &Decree, reply: SyncSender<Answer>) -> bool {
        match decree.verify(&self.membership.authority) {
            Ok(subject) => wait(&mut self.decreeing, subject, reply, self.door.limits.joining_max),
            Err(refused) => {
                _ = reply.try_send(Answer::Refused(refused.to_string()));
                false
            }
        }
    }

    /// What the authority has said of somebody holds, or does not.
    pub(super) fn on_decreed(
        &mut self,
        subject: &PublicKey,
        outcome: Result<(), overlay::Refused>,
    ) {
        if let Some((reply, _)) = self.decreeing.remove(subject) {
            let refused = |refused: overlay::Refused| Answer::Refused(refused.to_string());
            // Whoever waited may be gone.
            _ = reply.try_send(outcome.map_or_else(refused, |()| Answer::Decreed));
        }
    }

    /// A user has agreed that this machine acts for them: what it has to say of itself now.
    pub(super) fn on_agreed(&mut self, consent: Consent) -> Result<Join, Failure> {
        let consents = &mut self.membership.consents;
        if !consents.contains(&consent) {
            if consents.len() >= Patrons::COUNT_MAX {
                let what = "this machine has as many consents as it may: invite it anew";
                return Err(Failure::Unfit(what.into()));
            }
            consents.push(consent);
            self.save();
        }
        self.own_join()
    }

    /// What this machine says of itself.
    pub(super) fn own_join(&self) -> Result<Join, Failure> {
        let key = key::read(&self.directory.join("key"))?;
        Ok(self.membership.own_join(&key))
    }

    /// When this machine's certificate expires, in seconds since 1970.
    pub(super) fn expires(&self) -> u64 {
        self.expires
    }

    /// Where other members may be.
    pub(super) fn members_at(&self) -> impl Iterator<Item = SocketAddr> {
        let roll = &self.membership.roll;
        let sits = |key| roll.seats.iter().any(|seat| seat.key == key);
        let members = self.membership.machines.iter().filter(move |machine| sits(machine.key));
        members.flat_map(|member| member.addresses.iter().copied())
    }

    /// Who has founded the cell.
    pub(super) fn founder(&self) -> PublicKey {
        self.membership.founder.key
    }

    /// Where an issuer's key is, if it is here.
    pub(super) fn issuer_path(&self) -> PathBuf {
        self.door.issuer.clone()
    }

    /// The root key of the cell.
    pub(super) fn authority(&self) -> PublicKey {
        self.membership.authority
    }

    /// Takes a renewal of this machine's certificate: what it has to say of itself now, if that lasts longer.
    pub(super) fn renew(&mut self, renewal: Renewal) -> Result<Option<Join>, Failure> {
        if !self.membership.renew(renewal)? {
            return Ok(None);
        }
        self.expires = self.membership.expires()?;
        self.save();
        self.own_join().map(Some)
    }

    /// The users that the machine acts for, as last known; none if it acts for any.
    pub(super) fn served(&self) -> &Option<Vec<Profile>> {
        &self.membership.users
    }

    /// The machine acts for these users from now on.
    pub(super) fn serve(&mut self, users: Option<Vec<Profile>>) {
        self.neighbours.serve_users(users.clone());
        if users != self.membership.users {
            self.membership.users = users;
            self.save();
        }
    }

    /// A machine that may be known says where it is, itself: nobody else could have asked to join with its key.
    pub(super) fn on_moved(&mut self, join: &Join) {
        let (key, addresses) = (join.certificate.machine(), &join.whereabouts.addresses);
        let mut machines = self.membership.machines.iter_mut();
        let Some(machine) = machines.find(|machine| machine.key == *key) else { return };
        if machine.addresses != *addresses {
            machine.addresses.clone_from(addresses);
            self.network.know(key, addresses);
            self.neighbours.read_book(self.membership.machines.iter().cloned());
            self.save();
        }
    }

    /// A machine has joined, or may not.
    pub(super) fn on_joined(
        &mut self,
        machine: &PublicKey,
        outcome: Result<lease::Client, overlay::Refused>,
        book: &Book,
    ) {
        let answer = match outcome {
            Err(refused) => Answer::Refused(refused.to_string()),
            Ok(client) => {
                let is_other = |(other, machine): &(_, &node::Machine)| {
                    *other != client && !book.is_revoked(&machine.key)
                };
                let others = book.machines().filter(is_other);
                let others = others.map(|(client, machine)| book.neighbour(client, machine));
                let users = book.machine(client).map(|machine| book.served(machine));
                let users = users.unwrap_or_else(|| Some(Vec::new()));
                if client == self.membership.client {
                    // Whoever waits for the answer may want something done at once.
                    self.serve(users.clone());
                }
                Answer::Joined(Box::new(Ticket { client, machines: others.collect(), users }))
            }
        };
        if let Some((reply, _)) = self.joining.remove(machine) {
            // Whoever waited may be gone.
            _ = reply.try_send(answer);
        }
    }

    /// The group's book of machines has changed, or may have.
    pub(super) fn read_book(&mut self, book: &Book, me: &PublicKey) {
        let others = book.machines().filter(|(_, machine)| machine.key != *me);
        let (gone, machines): (Vec<_>, Vec<_>) = others
            .map(|(client, machine)| book.neighbour(client, machine))
            .partition(|machine| book.is_revoked(&machine.key));
        for Neighbour { key, .. } in &gone {
            self.door.known().remove(key);
            if self.door.gone().insert(*key) {
                eprintln!(
                    "croft: the cell's authority has sent {key:?} away; it is not let in any more"
                );
            }
        }
        for machine in &machines {
            self.meet(machine);
        }
        self.expires_next = 0;
        self.network.reconsider();
        for Neighbour { key, .. } in &gone {
            self.network.forget(key);
        }
        self.neighbours.read_people(book);
        if let Some(own) = book.client(me).and_then(|client| book.machine(client)) {
            self.serve(book.served(own));
        }
        // An empty book is that of somebody who has not heard of anything yet.
        if machines != self.membership.machines && book.client(me).is_some() {
            self.neighbours.read_book(machines.iter().cloned());
            self.membership.machines = machines;
            self.save();
        }
    }

    /// The other machines that are known, and the members.
    pub(super) fn cell(&self) -> (&[Neighbour], &Roll) {
        (&self.membership.machines, &self.membership.roll)
    }

    /// With whom there is a connection.
    pub(super) fn connected(&self) -> Vec<PublicKey> {
        self.network.connected()
    }

    /// A machine is of the cell no more, or a user.
    pub(super) fn send_away(&mut self, key: &PublicKey) {
        let was_known = self.door.known().remove(key).is_some();
        if self.door.gone().insert(*key) && was_known {
            eprintln!(
                "croft: the cell's authority has sent {key:?} away; it is not let in any more"
            );
        }
        self.neighbours.send_away(key);
        self.network.reconsider();
        self.network.forget(key);
        let machines = &mut self.membership.machines;
        let count = machines.len();
        machines.retain(|machine| machine.key != *key);
        if machines.len() < count {
            self.save();
        }
    }

    /// Ends the connections of those whose certificates have expired.
    pub(super) fn expire(&mut self) {
        let now = seconds_now();
        if now < self.expires_next {
            return;
        }
        let later = |expires: &u64| *expires > now;
        self.expires_next =
            self.door.known().values().copied().filter(later).min().unwrap_or(u64::MAX);
        self.network.reconsider();
    }

    /// The members are others, or may be.
    pub(super) fn read_roll(&mut self) {
        let roll = self.ear.roll();
        if (roll.epoch, &roll.seats) != (self.membership.roll.epoch, &self.membership.roll.seats) {
            self.neighbours.read_members(&roll);
            self.membership.roll = roll;
            self.save();
        }
    }

    /// What is not saved is found out again after the next start, if only by asking more.
    fn save(&self) {
        if let Err(failure) = self.membership.save(&self.directory) {
            eprintln!("croft: {failure}; going on without");
        }
    }
}

/// Notes who waits for what comes of a machine. Whether there is room for one more.
fn wait(
    waiting: &mut BTreeMap<PublicKey, (SyncSender<Answer>, Instant)>,
    machine: PublicKey,
    reply: SyncSender<Answer>,
    count_max: usize,
) -> bool {
    let now = Instant::now();
    waiting.retain(|_, (_, until)| *until > now);
    let has_room = waiting.len() < count_max;
    if has_room {
        waiting.insert(machine, (reply, now + JOIN_MAX));
    } else {
        let what = "too many machines join or leave at once; try again in a moment".to_owned();
        _ = reply.try_send(Answer::Refused(what));
    }
    has_room
}
