//! A small disk of one's own: a file with a file system in it, mounted by a loop device.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::cell::{Scratch, can_mount, needs_root, skip, text};

/// A disk that is mounted. It goes at the end.
pub struct Image {
    pub file: PathBuf,
    pub path: PathBuf,
    _scratch: Scratch,
}

impl Image {
    /// An empty one; nothing if this computer has no such disks.
    pub fn new(mebibytes: u64) -> Option<Image> {
        if !can_mount() || !needs_root() {
            return None;
        }
        let image = Image::idle();
        fs::File::create(&image.file).unwrap().set_len(mebibytes << 20).unwrap();
        let made =
            Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image.file).output();
        match made {
            Ok(output) if output.status.success() => image.mounted(),
            Ok(output) => refuse("mkfs.ext4", &output),
            Err(error) => {
                skip(&format!("mkfs.ext4 can't be started ({error})"));
                None
            }
        }
    }

    /// One with these bytes, as if it were taken out of one computer and put into another.
    pub fn of_bytes(bytes: &[u8]) -> Option<Image> {
        let image = Image::idle();
        fs::write(&image.file, bytes).unwrap();
        image.mounted()
    }

    fn idle() -> Image {
        // In memory it is the same and faster.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let scratch = Scratch::within(&place);
        let (file, path) = (scratch.0.join("image"), scratch.0.join("disk"));
        fs::create_dir(&path).unwrap();
        Image { file, path, _scratch: scratch }
    }

    fn mounted(self) -> Option<Image> {
        let mut command = Command::new("mount");
        let output = command.args(["-o", "loop"]).arg(&self.file).arg(&self.path).output().unwrap();
        if output.status.success() { Some(self) } else { refuse("a loop device", &output) }
    }

    pub fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// Takes away all the room that is left, as somebody else might.
    pub fn fill(&self) {
        let ballast = self.path.join("ballast");
        let mut command = Command::new("sh");
        let line = "cat /dev/zero > \"$0\" 2> /dev/null; sync -f \"$0\"; cat /dev/zero >> \"$0\"";
        let _ = command.args(["-c", line]).arg(ballast).output().unwrap();
    }

    /// Gives it back.
    pub fn relieve(&self) {
        fs::remove_file(self.path.join("ballast")).unwrap();
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).output();
    }
}

fn refuse(what: &str, output: &Output) -> Option<Image> {
    skip(&format!("{what} can't be had here ({})", text(&output.stderr).trim()));
    None
}
