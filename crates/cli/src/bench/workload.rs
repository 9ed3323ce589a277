//! What is done to both file systems.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};

/// One thing to measure.
pub struct Workload {
    /// What it is called.
    pub name: &'static str,
    /// How many operations it is.
    pub count: u64,
    /// Makes what it needs in an empty directory.
    pub prepare: fn(&Path) -> anyhow::Result<()>,
    /// Does it.
    pub run: fn(&Path) -> anyhow::Result<()>,
}

const FILES: u64 = 5_000;
pub const TREE: u64 = 20_000;
const BIG: u64 = 256 << 20;
const RANDOM: u64 = 50_000;
const BLOCK: usize = 4_096;

/// All of them.
pub const WORKLOADS: &[Workload] = &[
    Workload { name: "create", count: FILES, prepare: nothing, run: create },
    Workload { name: "stat warm", count: FILES * 4, prepare: create_and_stat, run: stat_often },
    Workload { name: "stat absent", count: FILES, prepare: nothing, run: stat_absent },
    Workload { name: "rename", count: FILES, prepare: create, run: rename },
    Workload { name: "unlink", count: FILES, prepare: create, run: unlink },
    Workload { name: "mkdir", count: FILES, prepare: nothing, run: mkdir },
    Workload { name: "rmdir", count: FILES, prepare: mkdir, run: rmdir },
    Workload { name: "create 4 KiB", count: FILES, prepare: nothing, run: create_small },
    Workload { name: "open read", count: FILES, prepare: create_small, run: read_small },
    Workload { name: "readdir", count: FILES, prepare: create, run: readdir },
    Workload { name: "untar", count: TREE, prepare: make_archive, run: untar },
    Workload { name: "cp -r", count: TREE, prepare: make_tree, run: copy },
    Workload { name: "grep -r", count: TREE, prepare: make_tree, run: grep },
    Workload { name: "rm -rf", count: TREE, prepare: make_tree, run: remove },
    Workload { name: "git add", count: TREE, prepare: make_repository, run: git_add },
    Workload { name: "write 1 MiB", count: BIG >> 20, prepare: nothing, run: write_big },
    Workload { name: "dd 1 MiB", count: BIG >> 20, prepare: nothing, run: write_once },
    Workload { name: "write again", count: BIG >> 20, prepare: write_big, run: write_again },
    Workload { name: "read 1 MiB", count: BIG >> 20, prepare: write_big, run: read_big },
    Workload { name: "read again", count: BIG >> 20, prepare: write_and_read, run: read_big },
    Workload { name: "write 4 KiB", count: RANDOM, prepare: write_big, run: write_random },
    Workload { name: "read 4 KiB", count: RANDOM, prepare: write_and_read, run: read_random },
];

fn nothing(_: &Path) -> anyhow::Result<()> {
    Ok(())
}

fn each(at: &Path, act: impl Fn(&Path) -> std::io::Result<()>) -> anyhow::Result<()> {
    for number in 0..FILES {
        act(&at.join(format!("file-{number}")))?;
    }
    Ok(())
}

fn create(at: &Path) -> anyhow::Result<()> {
    each(at, |path| File::create_new(path).map(drop))
}

fn create_small(at: &Path) -> anyhow::Result<()> {
    each(at, |path| File::create_new(path)?.write_all(&[7; BLOCK]))
}

fn read_small(at: &Path) -> anyhow::Result<()> {
    each(at, |path| File::open(path)?.read_exact(&mut [0; BLOCK]))
}

fn create_and_stat(at: &Path) -> anyhow::Result<()> {
    create(at)?;
    each(at, |path| fs::metadata(path).map(drop))
}

fn stat_often(at: &Path) -> anyhow::Result<()> {
    (0..4).try_for_each(|_| each(at, |path| fs::metadata(path).map(drop)))
}

fn stat_absent(at: &Path) -> anyhow::Result<()> {
    each(at, |path| match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map(drop),
    })
}

fn rename(at: &Path) -> anyhow::Result<()> {
    each(at, |path| fs::rename(path, path.with_extension("new")))
}

fn unlink(at: &Path) -> anyhow::Result<()> {
    each(at, |path| fs::remove_file(path))
}

fn mkdir(at: &Path) -> anyhow::Result<()> {
    each(at, |path| fs::create_dir(path))
}

fn rmdir(at: &Path) -> anyhow::Result<()> {
    each(at, |path| fs::remove_dir(path))
}

fn readdir(at: &Path) -> anyhow::Result<()> {
    let count = fs::read_dir(at)?.try_fold(0, |count, entry| entry.map(|_| count + 1))?;
    ensure!(count == FILES, "{count} entries instead of {FILES}");
    Ok(())
}

/// Small files in many directories: sizes as in a source tree, from 0 to 16 KiB, most of them small.
fn make_tree(at: &Path) -> anyhow::Result<()> {
    let tree = at.join("tree");
    let text: Vec<u8> = (0..16 << 10).map(|n: u32| b' ' + (n * n % 89) as u8).collect();
    for number in 0..TREE {
        let directory = tree.join(format!("directory-{}", number / 40));
        if number % 40 == 0 {
            fs::create_dir_all(&directory)?;
        }
        let draw = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let size = (draw % 129) * (draw / 129 % 129);
        let file = directory.join(format!("file-{number}.txt"));
        fs::write(file, &text[..usize::try_from(size)?.min(text.len())])?;
    }
    Ok(())
}

/// The archive lies outside, so that both read it from the same place.
pub fn make_archive(at: &Path) -> anyhow::Result<()> {
    let place = at.parent().and_then(Path::parent).context("a directory of its own")?;
    let archive = place.join("tree.tar");
    if archive.exists() {
        return Ok(());
    }
    make_tree(place)?;
    command("tar", &["-cf", "tree.tar", "tree"], place)?;
    Ok(fs::remove_dir_all(place.join("tree"))?)
}

pub fn untar(at: &Path) -> anyhow::Result<()> {
    command("tar", &["-xf", "../../tree.tar"], at)
}

fn copy(at: &Path) -> anyhow::Result<()> {
    command("cp", &["-r", "tree", "copy"], at)
}

fn grep(at: &Path) -> anyhow::Result<()> {
    // It finds nothing, and says so with 1.
    let mut grep = Command::new("grep");
    let status = grep.args(["-r", "no such words", "tree"]).current_dir(at).status()?;
    ensure!(status.code() == Some(1), "grep: {status}");
    Ok(())
}

fn remove(at: &Path) -> anyhow::Result<()> {
    command("rm", &["-rf", "tree"], at)
}

fn make_repository(at: &Path) -> anyhow::Result<()> {
    make_tree(at)?;
    command("git", &["init", "--quiet", "tree"], at)
}

fn git_add(at: &Path) -> anyhow::Result<()> {
    command("git", &["-C", "tree", "-c", "gc.auto=0", "add", "."], at)
}

fn command(program: &str, args: &[&str], at: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    let status = command.args(args).current_dir(at).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("can't start {program}"))?;
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

fn write_big(at: &Path) -> anyhow::Result<()> {
    write_all(File::create(at.join("big"))?)
}

/// By a process of which nobody knows yet what it writes.
fn write_once(at: &Path) -> anyhow::Result<()> {
    let count = format!("count={}", BIG >> 20);
    command("dd", &["if=/dev/zero", "of=big", "bs=1M", &count, "status=none"], at)
}

fn write_again(at: &Path) -> anyhow::Result<()> {
    write_all(File::options().write(true).open(at.join("big"))?)
}

fn write_all(mut file: File) -> anyhow::Result<()> {
    let block = vec![5; 1 << 20];
    for _ in 0..BIG >> 20 {
        file.write_all(&block)?;
    }
    Ok(())
}

fn read_big(at: &Path) -> anyhow::Result<()> {
    let mut file = File::open(at.join("big"))?;
    let mut block = vec![0; 1 << 20];
    for _ in 0..BIG >> 20 {
        file.read_exact(&mut block)?;
    }
    Ok(())
}

fn write_and_read(at: &Path) -> anyhow::Result<()> {
    write_big(at)?;
    read_big(at)
}

fn write_random(at: &Path) -> anyhow::Result<()> {
    let file = File::options().write(true).open(at.join("big"))?;
    places().try_for_each(|place| Ok(file.write_all_at(&[9; BLOCK], place)?))
}

fn read_random(at: &Path) -> anyhow::Result<()> {
    let mut file = File::open(at.join("big"))?;
    let mut block = [0; BLOCK];
    places().try_for_each(|place| {
        file.seek(SeekFrom::Start(place))?;
        Ok(file.read_exact(&mut block)?)
    })
}

/// Places of blocks in the big file, as if at random.
fn places() -> impl Iterator<Item = u64> {
    let blocks = BIG / BLOCK as u64;
    (0..RANDOM)
        .map(move |number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % blocks * BLOCK as u64)
}
