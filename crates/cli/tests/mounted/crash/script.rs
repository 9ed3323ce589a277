//! Operations of a program, drawn so that most of them succeed.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt, symlink},
    path::Path,
};

use rustix::io::Errno;

use super::model::Model;
use crate::draw::Draw;

/// One operation, by paths below the mount.
#[derive(Clone, Debug)]
pub enum Step {
    Create(String),
    Mkdir(String),
    Symlink(String, String),
    Link(String, String),
    Write(String, u64, Vec<u8>),
    Truncate(String, u64),
    Chmod(String, u32),
    Rename(String, String),
    Unlink(String),
    Rmdir(String),
    /// `fsync` of a file, or of a directory.
    Sync(String),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Write(path, at, bytes) => write!(f, "write {path} {at} + {}", bytes.len()),
            step => write!(f, "{step:?}"),
        }
    }
}

/// How it ended.
pub enum Outcome {
    /// With this errno, or well.
    Done(Result<(), i32>),
    /// The machine died meanwhile, or had died before.
    Dead,
}

/// Few names, so that they meet.
const NAMES: &[&str] = &["a", "b", "c", "d", "e", "f"];

impl Step {
    pub fn draw(draw: &mut Draw, model: &Model) -> Step {
        let (files, directories) = (model.files(), model.directories());
        let all = [&files[..], &directories[..]].concat();
        // The root can't be moved or removed; its name is empty.
        let below: Vec<String> = all.iter().filter(|path| !path.is_empty()).cloned().collect();
        let file = draw.pick(&files).cloned();
        let Some(file) = file else { return Step::Create(fresh(draw, &directories)) };
        match draw.below(100) {
            0..14 => Step::Create(fresh(draw, &directories)),
            14..22 => Step::Mkdir(fresh(draw, &directories)),
            22..25 => Step::Symlink(file, fresh(draw, &directories)),
            25..31 => Step::Link(file, fresh(draw, &directories)),
            31..51 => {
                let (offset, len) = match draw.below(8) {
                    // Past what is kept in memory.
                    0 => (draw.below(100_000), draw.below(200_000)),
                    _ => (draw.below(2_000), draw.below(3_000)),
                };
                Step::Write(file, offset, draw.bytes(len as usize + 1))
            }
            51..55 => Step::Truncate(file, draw.below(4_000)),
            55..60 => {
                let path = draw.pick(&all).cloned().unwrap_or_default();
                Step::Chmod(path, 0o600 + draw.below(0o200) as u32)
            }
            60..75 => {
                let source = draw.pick(&below).cloned().unwrap_or_default();
                Step::Rename(source, fresh(draw, &directories))
            }
            75..82 => Step::Unlink(file),
            82..86 => Step::Rmdir(draw.pick(&below).cloned().unwrap_or_default()),
            86..95 => Step::Sync(file),
            _ => Step::Sync(draw.pick(&directories).cloned().unwrap_or_default()),
        }
    }

    /// Does it for real.
    pub fn perform(&self, root: &Path) -> Outcome {
        let at = |path: &String| root.join(path);
        let open = |path: &String| OpenOptions::new().write(true).open(at(path));
        let result = match self {
            Step::Create(path) => {
                let mut how = OpenOptions::new();
                how.write(true).create_new(true).mode(0o644).open(at(path)).map(drop)
            }
            Step::Mkdir(path) => DirBuilder::new().mode(0o755).create(at(path)),
            Step::Symlink(target, path) => symlink(target, at(path)),
            Step::Link(old, new) => fs::hard_link(at(old), at(new)),
            Step::Write(path, offset, bytes) => {
                open(path).and_then(|file| file.write_all_at(bytes, *offset))
            }
            Step::Truncate(path, size) => open(path).and_then(|file| file.set_len(*size)),
            Step::Chmod(path, mode) => {
                fs::set_permissions(at(path), fs::Permissions::from_mode(*mode))
            }
            Step::Rename(old, new) => fs::rename(at(old), at(new)),
            Step::Unlink(path) => fs::remove_file(at(path)),
            Step::Rmdir(path) => fs::remove_dir(at(path)),
            Step::Sync(path) => File::open(at(path)).and_then(|file| file.sync_all()),
        };
        judge(result)
    }
}

fn judge(result: io::Result<()>) -> Outcome {
    match result {
        Ok(()) => Outcome::Done(Ok(())),
        Err(error) => {
            let errno = Errno::from_io_error(&error).expect("the kernel says why");
            let dead = [Errno::NOTCONN, Errno::CONNABORTED];
            if dead.contains(&errno) {
                Outcome::Dead
            } else {
                Outcome::Done(Err(errno.raw_os_error()))
            }
        }
    }
}

/// A path in one of these, which may be in use.
fn fresh(draw: &mut Draw, directories: &[String]) -> String {
    let parent = draw.pick(directories).cloned().unwrap_or_default();
    let name = draw.pick(NAMES).copied().unwrap_or("a");
    if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
}
