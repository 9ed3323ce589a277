//! The other machines of the cell, for whoever needs bytes that are there.
//!
//! The machine that last changed a content has it, and is asked for it piece by piece. Whoever asks holds a lease
//! on the content meanwhile, or starts again: so all pieces are of one version.

mod judge;

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::FileExt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use base::{Digest, Domain, FileId, Hasher, PublicKey};
use group::Roll;
use lease::Client;
use node::Book;
use overlay::{Profile, Users};
use wire::{Answer, Io, IoReply, Neighbour, Person, Query, Whom};

use crate::{Content, Desk, Failure, Network, cell::IoRequest};

const CONTENT: Domain = Domain::new("content of a file v1");
/// The most bytes that are asked for at once: an answer has room for them.
const PIECE: u64 = 512 << 10;
/// Whoever sends fewer bytes a second is not waited for.
const RATE_MIN: u64 = 256 << 10;
/// How long to wait for a piece.
const PATIENCE: Duration = Duration::from_secs(10);

/// So many requests are served at a time. Each may wait for the group or a disk, and of the threads that answer others
/// there is one more, for whoever wants something else.
const REQUESTS_MAX: usize = 3;

/// How long a machine that is not connected is waited for by whoever can do without.
const DIAL_MAX: Duration = Duration::from_millis(300);

/// After so long it is asked again for whom a machine acts.
const USERS_AGE_MAX: Duration = Duration::from_secs(60);

/// For so long a machine may not have heard yet what others know.
const HEARSAY_MAX: Duration = Duration::from_secs(2);
/// It is asked again as often as this.
const PAUSE: Duration = Duration::from_millis(50);

/// The other machines, by the clients that they are.
#[derive(Default)]
pub struct Neighbours {
    known: Mutex<Known>,
    /// How many requests are just being served. At most [`REQUESTS_MAX`].
    requests: AtomicUsize,
}

/// One of those who may serve a request at a time.
struct Turn<'a>(&'a AtomicUsize);

impl Turn<'_> {
    fn of(count: &AtomicUsize) -> Option<Turn<'_>> {
        let turn = Turn(count);
        (count.fetch_add(1, Ordering::AcqRel) < REQUESTS_MAX).then_some(turn)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// As many as the cell has machines.
#[derive(Default)]
struct Known {
    network: Weak<Network>,
    /// What the group is known by, once this machine can have others beside it.
    group: Option<Digest>,
    machines: BTreeMap<Client, Neighbour>,
    members: Vec<PublicKey>,
    /// When it was last asked for whom these machines act. One for each machine at the most, and not for long.
    asked: BTreeMap<PublicKey, Instant>,
    /// Who may have the bytes of which file, and when that was found out. At most [`judge::JUDGED_MAX`].
    judged: BTreeMap<(PublicKey, u64), Instant>,
    /// Those who were sent away, whatever anybody says of them. As many as a cell remembers.
    gone: BTreeSet<PublicKey>,
    /// The users of the cell, if this machine has read the group's book.
    people: Vec<Person>,
    /// This machine's own client.
    desk: Weak<Desk>,
}

impl Known {
    fn group(&self) -> Result<Digest, Failure> {
        self.group.ok_or(Failure::Stopped)
    }
}

impl Neighbours {
    /// The hash of a content, for those who fetch it.
    pub fn digest(bytes: &[u8]) -> Digest {
        Digest::of(CONTENT, bytes)
    }

    /// Whether this machine has, or may come to have, others beside it.
    pub fn can_be(&self) -> bool {
        self.known().network.strong_count() > 0
    }

    /// Fetches the content of a file from its home and hands it over piece by piece, in order. If it is not what
    /// it should be, this is known only at the end, and its home is told to look.
    pub fn fetch(
        &self,
        (serial, file): (u64, &FileId),
        content: &directory::record::Content,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let nowhere = || Failure::Unfit("nobody has the bytes".into());
        let home = content.home.ok_or_else(nowhere)?;
        if content.lacks_digest() {
            // They are from when their home had nobody beside it. It tells what they are checked by.
            return Err(self.ask_to_look(home, file));
        }
        let mut hasher = Hasher::new(CONTENT);
        let mut offset = 0;
        let most = PATIENCE * 3 + Duration::from_secs(content.size / RATE_MIN);
        let start = Instant::now();
        while offset < content.size {
            let length = PIECE.min(content.size - offset);
            let query = Query::Read { serial, file: file.clone(), offset, length };
            let (key, answer) = self.ask_home(home, &query, PATIENCE, true)?;
            let amiss = |what: String| Failure::Peer { who: format!("{key:?}"), what };
            match answer {
                _ if start.elapsed() > most => {
                    let what = "it sends too slowly; look at the network between here and there";
                    return Err(amiss(what.into()));
                }
                Answer::Bytes(bytes) if bytes.len() as u64 == length => {
                    hasher.update(&bytes);
                    take(&bytes)?;
                }
                Answer::Refused(why) => return Err(amiss(why)),
                _ => return Err(amiss("it answers something else".into())),
            }
            offset += length;
        }
        match content.digest.is_some_and(|digest| digest != hasher.finish()) {
            // It may have died before the directory heard of what it had written.
            true => Err(self.ask_to_look(home, file)),
            false => Ok(()),
        }
    }

    /// The bytes of a file are not those that others could check. If its home does not answer, this is asked again.
    fn ask_to_look(&self, home: Client, file: &FileId) -> Failure {
        let looked = self.ask_home(home, &Query::Look(file.clone()), PATIENCE, false);
        let who = looked.map_or_else(|_| format!("{home:?}"), |(key, _)| format!("{key:?}"));
        Failure::Unlike { who }
    }

    /// Has something done to the bytes of a file that change at their home without a word, on behalf of a user and a
    /// group.
    pub fn do_at_home(
        &self,
        home: Client,
        (serial, file): (u64, &FileId),
        who: (u32, u32),
        io: &Io,
        patience: Duration,
    ) -> Result<IoReply, Failure> {
        let may_repeat = match io {
            // It is written once: it may have been done though nobody has heard of it.
            Io::Write { offset: None, .. } => false,
            // Whoever only looks can do without.
            Io::Tell => false,
            _ => true,
        };
        let query = Query::Io { serial, file: file.clone(), who, io: io.clone() };
        let (key, answer) = self.ask_home(home, &query, patience, may_repeat)?;
        let what = match answer {
            Answer::Io(done) => return Ok(done),
            Answer::Refused(what) => what,
            _ => "it answers something else".into(),
        };
        Err(Failure::Peer { who: format!("{key:?}"), what })
    }

    /// Asks the machine that is this client. It may hear later than others who may have something.
    fn ask_home(
        &self,
        home: Client,
        query: &Query,
        patience: Duration,
        may_repeat: bool,
    ) -> Result<(PublicKey, Answer), Failure> {
        let start = Instant::now();
        loop {
            let (key, answer) = self.ask_home_once(home, query, patience, may_repeat)?;
            if answer != Answer::Denied {
                return Ok((key, answer));
            }
            if start.elapsed() > HEARSAY_MAX {
                let what =
                    "it does not give it to this machine, which acts for nobody who may have it";
                return Err(Failure::Peer { who: format!("{key:?}"), what: what.into() });
            }
            thread::sleep(PAUSE);
        }
    }

    fn ask_home_once(
        &self,
        home: Client,
        query: &Query,
        patience: Duration,
        may_repeat: bool,
    ) -> Result<(PublicKey, Answer), Failure> {
        let key = match self.recall(Whom::Client(home)) {
            Some(machine) => machine.key,
            None => self.find(Whom::Client(home))?.key,
        };
        let network = self.known().network.upgrade().ok_or(Failure::Stopped)?;
        let bytes = wire::encode(query);
        let is_only_a_look = matches!(query, Query::Io { io: Io::Tell, .. });
        let patience = match is_only_a_look && !network.is_connected(&key) {
            true => patience.min(DIAL_MAX),
            false => patience,
        };
        let answer = match network.ask(&key, bytes.clone(), patience) {
            Err(failure) if may_repeat => {
                // It may be somewhere else by now.
                self.find(Whom::Client(home)).map_err(|_| failure)?;
                network.ask(&key, bytes, patience)
            }
            answer => answer,
        };
        Ok((key, wire::decode(&answer?)?))
    }

    /// The file with an inode number, for whoever has heard of that alone. Nobody has to be trusted with the answer:
    /// whoever asks sees whether a file that is named has that number. That there is none is believed when so many
    /// members say so that at least one of them does not lie.
    pub fn file(
        &self,
        serial: u64,
        has_number: impl Fn(&FileId) -> bool,
    ) -> Result<Option<FileId>, Failure> {
        let (network, desk, group, (members, others)) = {
            let known = self.known();
            let is_other = |key: &&PublicKey| known.machines.values().any(|one| one.key == **key);
            let others: Vec<_> = known.members.iter().filter(is_other).copied().collect();
            let members = (known.members.len(), others);
            (known.network.upgrade(), known.desk.upgrade(), known.group(), members)
        };
        let enough = members.saturating_sub(1) / 3 + 1;
        // A machine that listens to nobody has nobody to ask, and only what is here.
        let ask = |member: &PublicKey| -> Result<Answer, Failure> {
            let network = network.as_ref().ok_or(Failure::Stopped)?;
            let group = *group.as_ref().map_err(|_| Failure::Stopped)?;
            let answer =
                network.ask(member, wire::encode(&Query::Find { group, serial }), PATIENCE / 4)?;
            Ok(wire::decode(&answer)?)
        };
        let here = desk.into_iter().map(|desk| desk.find(serial));
        let mut denials = 0;
        for answer in here.chain(others.iter().map(ask)) {
            match answer {
                Ok(Answer::File(Some(file))) if has_number(&file) => return Ok(Some(file)),
                Ok(Answer::File(None)) => denials += 1,
                _ => {}
            }
        }
        match denials >= enough {
            true => Ok(None),
            false => {
                let what = "too few members of the group answer; look at `croft status`";
                Err(Failure::Unfit(what.into()))
            }
        }
    }

    /// Another machine knows a file only by its inode number.
    pub(crate) fn find_here(&self, serial: u64) -> Answer {
        let desk = self.known().desk.upgrade();
        let found = desk.ok_or(Failure::Stopped).and_then(|desk| desk.find(serial));
        found.unwrap_or_else(|failure| Answer::Refused(failure.to_string()))
    }

    /// Another machine wants something done to the bytes of a file here.
    pub(crate) fn serve(&self, from: &PublicKey, request: IoRequest<'_>) -> Answer {
        let Some(_turn) = Turn::of(&self.requests) else { return Answer::Io(IoReply::Busy) };
        let users = match request.io.is_change() {
            true => self.acts_for(from),
            false => Users::Any,
        };
        let desk = self.known().desk.upgrade();
        match desk.and_then(|desk| desk.serve_io(IoRequest { users: &users, ..request })) {
            Some(done) => Answer::Io(done),
            // Programs of before may still write it, and nobody here sees that.
            None => Answer::Refused(
                "nothing is mounted there, so nobody can look after the file".into(),
            ),
        }
    }

    /// For whom another machine acts, as it was at most [`USERS_AGE_MAX`] ago, or when the group last said.
    fn acts_for(&self, key: &PublicKey) -> Users {
        let nobody = || Users::These(BTreeMap::new());
        let is_old = {
            let mut known = self.known();
            let now = Instant::now();
            let asked = known.asked.get(key).copied();
            let is_old = asked.is_none_or(|asked| now - asked > USERS_AGE_MAX);
            if is_old {
                known.asked.retain(|_, asked| now - *asked <= USERS_AGE_MAX);
                known.asked.insert(*key, now);
            }
            is_old
        };
        let found = match is_old {
            true => self.find(Whom::Key(*key)).ok(),
            false => None,
        };
        found.or_else(|| self.recall(Whom::Key(*key))).map_or_else(nobody, |machine| machine.users)
    }

    /// Says a line for people, unless there were too many.
    pub(crate) fn say(&self, line: &str) {
        let network = self.known().network.upgrade();
        if let Some(network) = network {
            network.say(line);
        }
    }

    pub(crate) fn meet(&self, network: &Arc<Network>, group: Digest) {
        let mut known = self.known();
        (known.network, known.group) = (Arc::downgrade(network), Some(group));
    }

    /// Another machine has found bytes of a file here that are not what the directory says.
    pub(crate) fn look(&self, file: FileId) -> Answer {
        let desk = self.known().desk.upgrade();
        match desk.is_some_and(|desk| desk.look(vec![file])) {
            true => Answer::Looking,
            false => Answer::Refused("nothing is mounted here, so nobody can look".into()),
        }
    }

    pub(crate) fn know_desk(&self, desk: &Arc<Desk>) {
        self.known().desk = Arc::downgrade(desk);
    }

    pub(crate) fn read_book(&self, machines: impl Iterator<Item = Neighbour>) {
        self.known().machines = machines.map(|machine| (machine.client, machine)).collect();
    }

    /// A machine is of the cell no more, whoever says something else.
    pub(crate) fn send_away(&self, key: &PublicKey) {
        let mut known = self.known();
        known.machines.retain(|_, machine| machine.key != *key);
        known.gone.insert(*key);
    }

    pub(crate) fn read_people(&self, book: &Book) {
        let person =
            |user: &Profile| Person { user: user.clone(), is_removed: book.is_revoked(&user.key) };
        self.known().people = book.people().iter().map(person).collect();
    }

    /// This machine acts for these users from now on; for any, if none are named.
    pub(crate) fn serve_users(&self, users: Option<Vec<Profile>>) {
        let desk = self.known().desk.upgrade();
        if let Some(desk) = desk {
            desk.serve(users);
        }
    }

    /// The users of the cell, as the members say if they are asked, else as far as this machine knows.
    pub(crate) fn people(&self, is_asking: bool) -> Result<Vec<Person>, Failure> {
        if !is_asking {
            return Ok(self.known().people.clone());
        }
        let people = self.hear(&Query::People, |answer| match answer {
            Answer::People(people) => Some(people),
            _ => None,
        })?;
        people.ok_or_else(|| {
            let what = "the members of the group do not say who the users are; try again when `croft status` \
                        is well";
            Failure::Unfit(what.into())
        })
    }

    pub(crate) fn read_members(&self, roll: &Roll) {
        self.known().members = roll.seats.iter().map(|seat| seat.key).collect();
    }

    /// All machines that are known here.
    pub(crate) fn keys(&self) -> Vec<PublicKey> {
        self.known().machines.values().map(|machine| machine.key).collect()
    }

    /// A machine that is known here.
    pub(crate) fn recall(&self, whom: Whom) -> Option<Neighbour> {
        let known = self.known();
        match whom {
            Whom::Client(client) => known.machines.get(&client).cloned(),
            Whom::Key(key) => known.machines.values().find(|machine| machine.key == key).cloned(),
        }
    }

    /// Asks the members of the group for a machine.
    pub(crate) fn find(&self, whom: Whom) -> Result<Neighbour, Failure> {
        let is_meant = |machine: &Neighbour| match whom {
            Whom::Client(client) => machine.client == client,
            Whom::Key(key) => machine.key == key,
        };
        let found = self.hear(&Query::Who(whom), |answer| match answer {
            Answer::Machine(machine) => Some(machine).filter(is_meant),
            _ => None,
        })?;
        let Some(machine) = found.filter(|machine| !self.known().gone.contains(&machine.key))
        else {
            let what = "the members of the group don't know the machine that was asked for";
            return Err(Failure::Unfit(what.into()));
        };
        let network = self.known().network.upgrade();
        if let Some(network) = network {
            network.know(&machine.key, &machine.addresses);
        }
        self.known().machines.insert(machine.client, machine.clone());
        Ok(machine)
    }

    /// Asks the members of the group. They are believed when so many say the same that at least one of them does not
    /// lie.
    fn hear<T: Ord>(
        &self,
        query: &Query,
        pick: impl Fn(Answer) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let (network, members) = {
            let known = self.known();
            (known.network.upgrade().ok_or(Failure::Stopped)?, known.members.clone())
        };
        let enough = members.len().saturating_sub(1) / 3 + 1;
        let mut said: BTreeMap<T, usize> = BTreeMap::new();
        for member in &members {
            let answer = network.ask(member, wire::encode(query), PATIENCE / 4);
            let answer = answer.and_then(|bytes| Ok(wire::decode(&bytes)?));
            let Some(what) = answer.ok().and_then(&pick) else { continue };
            *said.entry(what).or_default() += 1;
            let believed = said.iter().any(|(_, count)| *count >= enough);
            if believed {
                return Ok(said.into_iter().find(|(_, count)| *count >= enough).map(|one| one.0));
            }
        }
        Ok(None)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece of a content that this machine has. What is beyond the end of the bytes is zeros: it was cut off, or
/// never written.
pub(crate) fn piece(content: &Content, serial: u64, offset: u64, length: u64) -> Answer {
    let Some(end) = offset.checked_add(length).filter(|_| length <= PIECE) else {
        return Answer::Refused("more was asked for than goes into an answer".into());
    };
    match read(content, serial, offset, end) {
        Ok(Some(mut bytes)) => {
            bytes.resize(length as usize, 0);
            Answer::Bytes(bytes)
        }
        Ok(None) => Answer::Refused(format!("the bytes of inode {serial} are not here")),
        Err(failure) => Answer::Refused(failure.to_string()),
    }
}

fn read(content: &Content, serial: u64, offset: u64, end: u64) -> Result<Option<Vec<u8>>, Failure> {
    if let Some(file) = content.backing(serial)? {
        let mut bytes = vec![0; (end - offset) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            let read = file.read_at(&mut bytes[filled..], offset + filled as u64);
            match read.map_err(Failure::of("can't read", "a backing file"))? {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        return Ok(Some(bytes));
    }
    let Some(mut bytes) = content.get(serial)? else { return Ok(None) };
    let clip = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let (start, end) = (clip(offset), clip(end));
    bytes.truncate(end);
    bytes.drain(..start);
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, log::scratch::Scratch};

    fn content(scratch: &Scratch) -> Content {
        let store = Store::open(&scratch.path.join("store")).unwrap();
        Content::open(&scratch.path.join("content"), &store).unwrap()
    }

    fn bytes(answer: Answer) -> Vec<u8> {
        match answer {
            Answer::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_piece_is_as_long_as_asked_for_and_zeros_beyond_the_end_packed_or_backed() {
        let scratch = Scratch::new("neighbours");
        let content = content(&scratch);
        content.put(7, b"0123456789").unwrap();
        content.make_backing(8, b"0123456789").unwrap();
        for serial in [7, 8] {
            assert_eq!(bytes(piece(&content, serial, 0, 10)), b"0123456789");
            assert_eq!(bytes(piece(&content, serial, 4, 3)), b"456");
            assert_eq!(bytes(piece(&content, serial, 8, 4)), b"89\0\0");
            assert_eq!(bytes(piece(&content, serial, 1 << 40, 2)), b"\0\0");
        }
    }

    #[test]
    fn what_is_not_here_and_what_is_too_much_is_refused() {
        let scratch = Scratch::new("neighbours-refuse");
        let content = content(&scratch);
        content.put(7, b"0123456789").unwrap();
        for (serial, offset, length) in [(9, 0, 1), (7, 0, PIECE + 1), (7, u64::MAX, 2)] {
            assert!(matches!(piece(&content, serial, offset, length), Answer::Refused(_)));
        }
    }
}
