//! What there is to do: a build, mail, a bank, a ring, an editor, a hot file, anything.

use base::Rng;
use client::{Modes, Ways};
use directory::operation::{Changes, Moment, Over, When};

use super::{Line, Program, Word};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plot {
    /// A tree of its own: unpacked, read, changed, thrown away.
    Build,
    /// Mail is put into a box under a new name and moved in; somebody reads and deletes it.
    Mail,
    /// Tokens move between accounts; none is lost or forged.
    Bank,
    /// Directories move into one another, never into themselves.
    Ring,
    /// A file is saved as editors do: a new one beside it, renamed over it.
    Editor,
    /// One file that everybody opens, locks, writes and looks at.
    Hot,
    /// Anything at all.
    Random,
}

impl Plot {
    pub(crate) const ALL: [Plot; 7] =
        [Plot::Build, Plot::Mail, Plot::Bank, Plot::Ring, Plot::Editor, Plot::Hot, Plot::Random];

    /// The next few lines.
    pub(super) fn write(self, program: &Program, rng: &mut Rng) -> Vec<Line> {
        match self {
            Plot::Build => build(program, rng),
            Plot::Mail => mail(program, rng),
            Plot::Bank => bank(program, rng),
            Plot::Ring => ring(program, rng),
            Plot::Editor => editor(program, rng),
            Plot::Hot => hot(program, rng),
            Plot::Random => random(program, rng),
        }
    }
}

fn bytes(rng: &mut Rng) -> Vec<u8> {
    let len = 1 + rng.index(24);
    // No zeros: the reference does not tell them from holes.
    (0..len).map(|_| 1 + rng.below(255) as u8).collect()
}

/// New content: mostly a few bytes, sometimes none, sometimes with a hole behind them.
fn write(file: &str, rng: &mut Rng) -> Line {
    let file = file.to_owned();
    let bytes = bytes(rng);
    let size = bytes.len() as u64;
    match rng.below(12) {
        0 => Line::Write { file, bytes: Vec::new(), size: 0 },
        1 => Line::Write { file, bytes, size: size + rng.below(100) },
        2 => Line::Write { file, bytes, size: size + (1 << rng.below(41)) },
        _ => Line::Write { file, bytes, size },
    }
}

/// As open(2) does it, or with share modes.
fn modes(writes: bool, rng: &mut Rng) -> Modes {
    let mut modes = Modes::posix(true, writes);
    if rng.chance(0.4) {
        modes.access.delete = rng.chance(0.2);
        let (read, write, delete) = (rng.chance(0.1), rng.chance(0.3), rng.chance(0.2));
        modes.deny = Some(Ways { read, write, delete });
    }
    modes
}

fn range(rng: &mut Rng) -> (u64, u64) {
    let (start, span) = (rng.below(4), rng.below(4));
    (start, start + span)
}

/// Finds a directory of this name, or makes it.
fn settle(dir: &str, name: &str) -> [Line; 2] {
    let (dir, name) = (dir.to_owned(), name.to_owned());
    [
        Line::Mkdir { dir: dir.clone(), name: name.clone(), mode: 0o777, as_word: name.clone() },
        Line::Lookup { dir, name: name.clone(), as_word: name },
    ]
}

fn create(dir: &str, name: &str) -> Line {
    let (dir, name) = (dir.to_owned(), name.to_owned());
    Line::Create { dir, mode: 0o644, as_word: name.clone(), name }
}

fn lookup(dir: &str, name: &str) -> Line {
    Line::Lookup { dir: dir.to_owned(), name: name.to_owned(), as_word: name.to_owned() }
}

fn rename(from: &str, from_name: &str, to: &str, to_name: &str, over: Over) -> Line {
    let [from, from_name, to, to_name] = [from, from_name, to, to_name].map(str::to_owned);
    Line::Rename { from, from_name, to, to_name, over }
}

fn unlink(dir: &str, name: &str) -> Line {
    Line::Unlink { dir: dir.to_owned(), name: name.to_owned() }
}

fn build(program: &Program, rng: &mut Rng) -> Vec<Line> {
    let top = format!("build{}", program.number);
    let mut lines = settle("root", &top).to_vec();
    let dirs = 1 + rng.index(3);
    for d in 0..dirs {
        let dir = format!("{top}-d{d}");
        lines.extend(settle(&top, &dir));
        for f in 0..1 + rng.index(6) {
            let file = format!("{dir}-f{f}");
            lines.push(create(&dir, &file));
            lines.push(write(&file, rng));
            if rng.chance(0.3) {
                let changes = Changes { mode: Some(0o755), ..Changes::default() };
                lines.push(Line::SetAttr { file: file.clone(), changes });
            }
            if rng.chance(0.5) {
                lines.push(Line::Stat(file));
            }
        }
        lines.push(Line::List(dir));
    }
    if rng.chance(0.3) {
        lines.push(Line::Sync);
    }
    if rng.chance(0.5) {
        for d in 0..dirs {
            let dir = format!("{top}-d{d}");
            for f in 0..6 {
                lines.push(unlink(&dir, &format!("{dir}-f{f}")));
            }
            lines.push(Line::Rmdir { dir: top.clone(), name: dir });
        }
    }
    lines
}

fn mail(program: &Program, rng: &mut Rng) -> Vec<Line> {
    let mut lines = Vec::new();
    for dir in ["mail-tmp", "mail-new"] {
        lines.extend(settle("root", dir));
    }
    let letter = format!("m{}-{}", program.number, program.round);
    lines.push(create("mail-tmp", &letter));
    lines.push(write(&letter, rng));
    if rng.chance(0.3) {
        lines.push(Line::Sync);
    }
    lines.push(rename("mail-tmp", &letter, "mail-new", &letter, Over::Refuse));
    if rng.chance(0.3) {
        let count = 1 + rng.index(3);
        for _ in 0..3 {
            lines.push(Line::Page { dir: "mail-new".to_owned(), count });
        }
    }
    if rng.chance(0.4) {
        lines.push(Line::List("mail-new".to_owned()));
        let other = format!("m{}-{}", rng.below(8), 1 + rng.below(program.round));
        lines.push(lookup("mail-new", &other));
        lines.push(Line::Stat(other.clone()));
        lines.push(unlink("mail-new", &other));
    }
    lines
}

fn bank(program: &Program, rng: &mut Rng) -> Vec<Line> {
    let account = |index: usize| format!("account{index}");
    let mut lines = Vec::new();
    let (from, to) = (account(rng.index(3)), account(rng.index(3)));
    for account in [&from, &to] {
        lines.extend(settle("root", account));
    }
    if program.round == 1 {
        let token = format!("token{}", program.number);
        lines.push(create(&from, &token));
    }
    for _ in 0..3 {
        let token = format!("token{}", rng.below(8));
        lines.push(rename(&from, &token, &to, &token, Over::Refuse));
    }
    lines.push(Line::List(to));
    lines
}

fn ring(program: &Program, rng: &mut Rng) -> Vec<Line> {
    let dir = |rng: &mut Rng| format!("ring{}", rng.index(4));
    let mut lines = Vec::new();
    if program.round == 1 {
        for index in 0..4 {
            lines.extend(settle("root", &format!("ring{index}")));
        }
    }
    let (moved, into, other) = (dir(rng), dir(rng), dir(rng));
    let over = *rng.pick(&[Over::Refuse, Over::Replace, Over::Exchange]);
    lines.push(rename("root", &moved, &into, &moved, over));
    lines.push(rename(&into, &moved, &other, &moved, Over::Refuse));
    lines.push(rename(&other, &moved, "root", &moved, Over::Refuse));
    lines.push(Line::List(into));
    lines
}

fn editor(program: &Program, rng: &mut Rng) -> Vec<Line> {
    let mut lines = settle("root", "desk").to_vec();
    let (text, swap) = (format!("text{}", rng.below(2)), format!("swap{}", program.number));
    lines.push(create("desk", &swap));
    lines.push(write(&swap, rng));
    if rng.chance(0.3) {
        lines.push(unlink("desk", &text));
    }
    if rng.chance(0.3) {
        lines.push(Line::Link { file: text.clone(), dir: "desk".into(), name: format!("{text}~") });
    }
    lines.push(rename("desk", &swap, "desk", &text, Over::Replace));
    lines.push(lookup("desk", &text));
    lines.push(Line::Stat(text));
    lines
}

fn hot(program: &Program, rng: &mut Rng) -> Vec<Line> {
    let name = "hot".to_owned();
    let writes = rng.chance(0.5);
    let mut lines = vec![
        Line::Create { dir: "root".into(), name: name.clone(), mode: 0o666, as_word: name.clone() },
        lookup("root", "hot"),
        Line::Open { file: name.clone(), modes: modes(writes, rng) },
    ];
    if rng.chance(0.3) {
        let (start, end) = range(rng);
        lines.push(Line::Lock { start, end, hold: Some(writes && rng.chance(0.5)) });
        lines.push(Line::Stat(name.clone()));
        // Otherwise it ends with the handle.
        if rng.chance(0.6) {
            lines.push(Line::Lock { start: 0, end: i64::MAX as u64, hold: None });
        }
    }
    if rng.chance(0.2) {
        let (start, end) = range(rng);
        lines.push(Line::TestLock { start, end, is_exclusive: rng.chance(0.5) });
    }
    if rng.chance(0.3) {
        lines.push(write(&name, rng));
    }
    if rng.chance(0.1) {
        lines.push(unlink("root", "hot"));
        lines.push(Line::Stat(name.clone()));
    }
    if rng.chance(0.3) {
        let value = rng.chance(0.7).then(|| format!("{}", program.round));
        let (name, attribute) = (name.clone(), "user.note".to_owned());
        lines.push(Line::SetXattr { file: name, name: attribute, value, when: When::Always });
    }
    lines.push(Line::Stat(name.clone()));
    lines.push(Line::GetXattr { file: name.clone(), name: "user.note".to_owned() });
    lines.push(Line::ListXattr(name));
    lines.push(Line::Close);
    lines
}

/// One line about anything that it has seen, under names that collide.
fn random(program: &Program, rng: &mut Rng) -> Vec<Line> {
    let words: Vec<&Word> = program.words.keys().collect();
    let any = |rng: &mut Rng| (*rng.pick(&words)).clone();
    let name = |rng: &mut Rng| (*rng.pick(&["a", "b", "c", "d", "e"])).to_owned();
    let (dir, file, word) = (any(rng), any(rng), format!("w{}", rng.below(12)));
    let line = match rng.below(26) {
        0 | 1 => Line::Lookup { dir, name: name(rng), as_word: word },
        2 => Line::Stat(file),
        3 => Line::List(dir),
        4 | 5 => {
            let mode = *rng.pick(&[0o644, 0o600, 0o666, 0o4755, 0o2755]);
            Line::Create { dir, name: name(rng), mode, as_word: word }
        }
        6 | 7 => {
            let mode = *rng.pick(&[0o755, 0o777, 0o700, 0o1777, 0o2777]);
            Line::Mkdir { dir, name: name(rng), mode, as_word: word }
        }
        8 => Line::Symlink { dir, name: name(rng), target: name(rng), as_word: word },
        9 => Line::ReadLink(file),
        10 => Line::Link { file, dir, name: name(rng) },
        11 => unlink(&dir, &name(rng)),
        12 => Line::Rmdir { dir, name: name(rng) },
        13 | 14 => {
            let over = *rng.pick(&[Over::Replace, Over::Replace, Over::Refuse, Over::Exchange]);
            rename(&dir, &name(rng), &any(rng), &name(rng), over)
        }
        15 => Line::SetAttr { file, changes: changes(rng) },
        16 => {
            let value = rng.chance(0.7).then(|| name(rng));
            let when = *rng.pick(&[When::Always, When::Absent, When::Present]);
            Line::SetXattr { file, name: format!("user.{}", name(rng)), value, when }
        }
        17 => Line::GetXattr { file, name: format!("user.{}", name(rng)) },
        18 => write(&file, rng),
        19 => {
            let writes = rng.chance(0.5);
            Line::Open { file, modes: modes(writes, rng) }
        }
        20 => Line::Close,
        21 => Line::ListXattr(file),
        22 => Line::Page { dir, count: rng.index(3) },
        23 => {
            let (start, end) = range(rng);
            let hold = rng.chance(0.7).then(|| rng.chance(0.5));
            Line::Lock { start, end, hold }
        }
        24 => {
            let (start, end) = range(rng);
            Line::TestLock { start, end, is_exclusive: rng.chance(0.5) }
        }
        _ => Line::Sync,
    };
    vec![line]
}

fn changes(rng: &mut Rng) -> Changes {
    let none = Changes::default();
    match rng.below(3) {
        0 => {
            let mode = *rng.pick(&[0o777, 0o700, 0o640, 0o1777, 0o2775, 0o4711, 0]);
            Changes { mode: Some(mode), ..none }
        }
        1 => {
            let (uid, gid) = (1_000 + rng.below(2) as u32, 100 + rng.below(2) as u32);
            Changes { uid: rng.chance(0.5).then_some(uid), gid: Some(gid), ..none }
        }
        _ => {
            let mut moment = || {
                let chosen = *rng.pick(&[Moment::Now, Moment::Now, Moment::At(7)]);
                rng.chance(0.8).then_some(chosen)
            };
            // One of them at least: nothing at all is no change.
            let modified = moment().or(Some(Moment::Now));
            Changes { accessed: moment(), modified, ..none }
        }
    }
}
