//! What programs do: they open files, read and write them, ask how large they are, sync and close them.

use base::{Duration, FileId};
use client::{Call, Modes, Reply};
use content::{Body, Need};
use directory::{Act, Birth};
use lease::Name;

use super::{
    actor::{Answer, Deed, Note},
    errands::written,
    house::House,
    shell::{No, SMALL_MAX, Slot},
    tamper::Tamper,
};

/// How a program behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    /// How long it thinks on average.
    pub(crate) pace: Duration,
    /// How many files there are.
    pub(crate) files: u64,
    /// How often it changes something.
    pub(crate) writes: f64,
    /// How often it syncs.
    pub(crate) syncs: f64,
    /// How long files get, about.
    pub(crate) long: u64,
}

/// A file that a program has open.
struct Held {
    open: Slot,
    handle: u64,
    writes: bool,
    /// The kernel uses it by itself under this handle.
    passes: bool,
}

impl<T: Tamper> House<T> {
    /// Does what a program does, for ever.
    pub(crate) async fn work(self, habit: Habit) {
        let mut held: Option<Held> = None;
        loop {
            let pause = {
                let mut state = self.state();
                let unit = state.rng.unit();
                habit.pace.mul_f64(2.0 * unit).max(Duration::from_micros(1))
            };
            self.pause_until(self.now() + pause).await;
            if self.state().is_resting {
                if let Some(held) = held.take() {
                    self.close(held).await;
                }
                continue;
            }
            held = match held {
                None => self.begin(habit).await.ok(),
                Some(held) => self.go_on(habit, held).await,
            };
        }
    }

    async fn begin(&self, habit: Habit) -> Result<Held, No> {
        let (number, writes, truncates) = {
            let mut state = self.state();
            let number = state.rng.below(habit.files);
            let writes = state.rng.chance(habit.writes);
            (number, writes, writes && state.rng.chance(0.15))
        };
        let name = Name::new(format!("f{number}").as_bytes()).expect("a name");
        let found = self.call(Call::Lookup { directory: FileId::ROOT, name: name.clone() }).await;
        match found {
            Ok(Reply::Entry(entry, _)) => self.open_file(&entry.file, writes, truncates).await,
            Ok(_) => Err(No::Io),
            Err(_) => self.create(name).await,
        }
    }

    async fn open_handle(&self, file: &FileId, writes: bool) -> Result<u64, No> {
        let modes = Modes::posix(true, writes);
        match self.call(Call::Open { file: file.clone(), modes }).await? {
            Reply::Handle(handle) => Ok(handle),
            _ => Err(No::Io),
        }
    }

    async fn create(&self, name: Name) -> Result<Held, No> {
        let (directory, birth) = (FileId::ROOT, Birth::default());
        let act = Act::Create { directory, name, mode: 0o644, birth };
        let Reply::Entry(entry, _) = self.call(Call::Do(act)).await? else { return Err(No::Io) };
        let record = self.record(&entry.file).await?;
        let open = self.hold(&entry.file, record.serial);
        let Ok(handle) = self.open_handle(&entry.file, true).await else {
            self.let_go(&open).await;
            return Err(No::Again);
        };
        let is_large = self.state().rng.chance(0.5);
        let won = self.settle_new_home(&open, is_large).await;
        let locked = self.lock(&open).await;
        if locked.is_open() {
            // Somebody was faster.
            if won.is_some() {
                locked.open().bytes.give_up_bid();
            }
            locked.open().handles.push((handle, true));
            return Ok(Held { open: open.clone(), handle, writes: true, passes: false });
        }
        locked.open().bytes.begin(Vec::new(), Some(record.content.clone()));
        if let Some(content) = won {
            locked.open().bytes.become_home(content, &self.said(&entry.file));
            self.pass_through(&locked);
        }
        locked.open().handles.push((handle, true));
        let passes = locked.open().passes;
        Ok(Held { open: open.clone(), handle, writes: true, passes })
    }

    async fn open_file(&self, file: &FileId, writes: bool, truncates: bool) -> Result<Held, No> {
        let serial = self.record(file).await?.serial;
        let open = self.hold(file, serial);
        let opened = match self.open_handle(file, writes).await {
            Ok(handle) => match self.open_way(&open, handle, writes, truncates).await {
                Ok(passes) => Ok(Held { open: open.clone(), handle, writes, passes }),
                Err(no) => {
                    _ = self.call(Call::Close { handle }).await;
                    Err(no)
                }
            },
            Err(no) => Err(no),
        };
        if opened.is_err() {
            self.let_go(&open).await;
        }
        opened
    }

    /// Opens a file; whether the kernel uses it by itself.
    async fn open_way(
        &self,
        open: &Slot,
        handle: u64,
        writes: bool,
        truncates: bool,
    ) -> Result<bool, No> {
        let file = open.borrow().file.clone();
        loop {
            let mut record = self.record(&file).await?;
            let is_rumour = open.borrow().bytes.is_rumour(&record.content, &self.said(&file));
            if is_rumour {
                self.look(&file, false).await?;
                record = self.record(&file).await?;
            }
            let is_remote = {
                let inner = open.borrow();
                inner.bytes.must_be_done_elsewhere(&record.content, &self.said(&file))
            };
            if is_remote {
                let tag = self.tag();
                let done = match truncates {
                    true => self.do_at_home(open, &Deed::Resize { tag, size: 0 }).await?,
                    false => Some(Answer::Done),
                };
                if done.is_none() {
                    continue;
                }
                self.lock(open).await.open().handles.push((handle, writes));
                return Ok(false);
            }
            let settled = self.settle_home(open, &record, writes).await;
            let at_home = match settled {
                Some(content) => self.become_home(open, content).await,
                None => None,
            };
            let locked = match at_home {
                Some(locked) => locked,
                None if truncates => match self.ready(open, Need::Replace).await {
                    Err(No::Remote) => continue,
                    locked => locked?,
                },
                None => self.lock(open).await,
            };
            if truncates {
                self.empty(&locked).await?;
            }
            let mut inner = locked.open();
            inner.handles.push((handle, writes));
            return Ok(inner.passes);
        }
    }

    /// A file gets the size 0, whatever was in it.
    async fn empty(&self, locked: &super::house::Locked) -> Result<(), No> {
        let is_at_rest = locked.open().bytes.body().is_at_rest();
        if is_at_rest {
            locked.open().bytes.empty(Vec::new(), None);
            // What was there need not be known: the directory says that all of it goes.
            self.note(Note::Emptied { file: locked.file() });
            return self.settle(locked).await.map(drop);
        }
        self.resize(locked, 0, self.tag()).await
    }

    async fn resize(&self, locked: &super::house::Locked, size: u64, tag: u64) -> Result<(), No> {
        let (file, is_home) = (locked.file(), locked.is_home());
        let Some(before) = locked.all() else { return Err(No::Io) };
        let mut after = before.clone();
        after.resize(size as usize, 0);
        let is_memory = matches!(locked.open().bytes.body(), Body::Memory(_));
        if !is_memory || after.len() > SMALL_MAX {
            self.spill(locked);
        }
        let is_file = locked.open().bytes.body().is_file();
        if is_file {
            if let Body::File { file, .. } = locked.open().bytes.body() {
                file.borrow_mut().set(after.clone());
            }
            locked.open().bytes.must_tell();
        } else if let Some(held) = locked.open().bytes.resize(true, true) {
            held.clone_from(&after);
        }
        self.note(Note::Wrote { file, is_home, tag, before, after });
        self.settle(locked).await.map(drop)
    }

    async fn go_on(&self, habit: Habit, held: Held) -> Option<Held> {
        let (what, is_change) = {
            let mut state = self.state();
            let is_change = held.writes && state.rng.chance(habit.writes);
            (state.rng.unit(), is_change)
        };
        let done = match what {
            _ if what < 0.15 => {
                self.close(held).await;
                return None;
            }
            _ if what < 0.15 + habit.syncs => self.sync(&held).await,
            _ if what > 0.93 => self.stat(&held).await,
            _ if is_change => self.change(habit, &held).await,
            _ => self.read(&held).await,
        };
        match done {
            Ok(()) => self.mark("a program does something"),
            Err(_) => self.mark("a program is refused"),
        }
        Some(held)
    }

    async fn close(&self, held: Held) {
        let locked = self.lock(&held.open).await;
        locked.open().handles.retain(|(handle, _)| *handle != held.handle);
        let is_last = !locked.is_open() && locked.is_home();
        if held.writes && !is_last {
            _ = self.settle(&locked).await;
        }
        drop(locked);
        _ = self.call(Call::Close { handle: held.handle }).await;
        self.let_go(&held.open).await;
    }

    /// Bytes as a program finds them that has a file open by way of the kernel alone.
    fn passed(&self, held: &Held) -> Option<Vec<u8>> {
        House::<T>::bytes_at_home(&held.open.borrow()).filter(|_| held.passes)
    }

    async fn read(&self, held: &Held) -> Result<(), No> {
        let file = held.open.borrow().file.clone();
        if let Some(bytes) = self.passed(held) {
            self.note(Note::Read { file, is_home: true, bytes });
            return Ok(());
        }
        loop {
            if self.do_at_home(&held.open, &Deed::Read).await?.is_some() {
                return Ok(());
            }
            let locked = match self.ready(&held.open, Need::Read).await {
                Err(No::Remote) => continue,
                locked => locked?,
            };
            let is_home = locked.is_home();
            let Some(bytes) = locked.all() else { return Err(No::Io) };
            self.note(Note::Read { file, is_home, bytes });
            return Ok(());
        }
    }

    async fn change(&self, habit: Habit, held: &Held) -> Result<(), No> {
        let file = held.open.borrow().file.clone();
        let (tag, deed) = self.draw(habit);
        if let Some(before) = self.passed(held) {
            let after = changed(&before, &deed);
            if let Body::File { file, .. } = held.open.borrow().bytes.body() {
                file.borrow_mut().set(after.clone());
            }
            self.mark("the kernel writes by itself");
            self.note(Note::Wrote { file, is_home: true, tag, before, after });
            return Ok(());
        }
        loop {
            if self.do_at_home(&held.open, &deed).await?.is_some() {
                return Ok(());
            }
            let locked = match self.ready(&held.open, Need::Write).await {
                Err(No::Remote) => continue,
                locked => locked?,
            };
            let is_home = locked.is_home();
            let Some(before) = locked.all() else { return Err(No::Io) };
            let after = changed(&before, &deed);
            if matches!(deed, Deed::Resize { .. }) {
                return self.resize(&locked, after.len() as u64, tag).await;
            }
            let is_memory = matches!(locked.open().bytes.body(), Body::Memory(_));
            if !is_memory || after.len() > SMALL_MAX {
                self.spill(&locked);
            }
            if let Some(held) = locked.open().bytes.memory_mut() {
                held.clone_from(&after);
            }
            if let Body::File { file, .. } = locked.open().bytes.body() {
                file.borrow_mut().set(after.clone());
            }
            self.note(Note::Wrote { file, is_home, tag, before, after });
            return Ok(());
        }
    }

    /// Something to do to bytes.
    fn draw(&self, habit: Habit) -> (u64, Deed) {
        let tag = self.tag();
        let rng = &mut self.state().rng;
        let deed = match rng.below(10) {
            0 => Deed::Resize { tag, size: rng.below(habit.long) },
            of => {
                let count = 1 + rng.index(4);
                let bytes = (0..count).map(|_| 1 + rng.below(255) as u8).collect();
                let offset = (of > 4).then(|| rng.below(habit.long));
                Deed::Write { tag, offset, bytes }
            }
        };
        (tag, deed)
    }

    async fn sync(&self, held: &Held) -> Result<(), No> {
        let file = held.open.borrow().file.clone();
        let ticket = self.tag();
        let is_remote = {
            let now = self.holds(&file, false);
            now.is_some_and(|now| content::live_elsewhere(&now, &self.said(&file)).is_some())
        };
        if !is_remote {
            self.note(Note::Syncing { file: file.clone(), ticket });
        }
        let there = self.do_at_home(&held.open, &Deed::Sync).await?;
        if there.is_none() {
            self.make_safe(&held.open).await?;
        }
        self.call(Call::Sync { handle: Some(held.handle) }).await?;
        if there.is_none() && !is_remote {
            self.mark("what was written is safe");
            self.note(Note::Synced { file, ticket });
        }
        Ok(())
    }

    async fn stat(&self, held: &Held) -> Result<(), No> {
        let file = held.open.borrow().file.clone();
        let ticket = self.tag();
        self.note(Note::Sizing { file: file.clone(), ticket });
        let size = self.size(&file).await?;
        self.note(Note::Sized { file, ticket, size });
        Ok(())
    }
}

fn changed(before: &[u8], deed: &Deed) -> Vec<u8> {
    match deed {
        Deed::Write { offset, bytes, .. } => written(before, *offset, bytes),
        Deed::Resize { size, .. } => {
            let mut after = before.to_vec();
            after.resize(*size as usize, 0);
            after
        }
        Deed::Read | Deed::Sync | Deed::Tell => before.to_vec(),
    }
}
