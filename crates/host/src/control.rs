//! The socket by which other commands speak to a machine that runs: one line of JSON each way.

use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::net::{Shutdown, shutdown};
use serde::{Serialize, de::DeserializeOwned};

use crate::Failure;

/// The longest line.
const LINE_MAX: u64 = 1 << 20;
/// Whoever asks has to do so within this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a failure to listen.
const PAUSE: Duration = Duration::from_millis(20);

/// The listening side. Only the owner of the machine's directory can reach it.
pub struct Control {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    /// The same one that the thread listens at.
    listener: UnixListener,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Listens in a machine's directory; each line is answered by what `answer` makes of it.
    pub fn listen(
        directory: &Path,
        answer: impl Fn(&str) -> String + Send + 'static,
    ) -> Result<Control, Failure> {
        let path = directory.join("control");
        // Whoever runs the machine holds its lock, so nobody listens there.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Failure::of("can't remove", &path)(error));
            }
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(Failure::of("can't listen at", &path))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let closer = listener.try_clone().map_err(Failure::of("can't listen at", &path))?;
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                // One at a time; whoever has gone meanwhile does not matter.
                match stream {
                    Ok(stream) => _ = serve(stream, &answer),
                    // Out of descriptors, perhaps: whoever waits is still there a little later.
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        });
        Ok(Control { path, is_over, listener: closer, thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // So that the thread notices, even if nobody can reach the path any more.
        _ = shutdown(&self.listener, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
        _ = fs::remove_file(&self.path);
    }
}

fn serve(stream: UnixStream, answer: &impl Fn(&str) -> String) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LINE_MAX)).read_line(&mut line)?;
    let mut reply = answer(line.trim_end());
    reply.push('\n');
    (&stream).write_all(reply.as_bytes())
}

/// Asks the machine that runs in a directory for something.
pub fn ask<Q: Serialize, A: DeserializeOwned>(
    directory: &Path,
    question: &Q,
) -> Result<A, Failure> {
    let path = directory.join("control");
    let stream = UnixStream::connect(&path).map_err(|error| {
        let is_silent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused);
        match is_silent {
            true => Failure::Unfit(format!(
                "no machine runs in {}; start it with `croft run --dir {0}`",
                directory.display()
            )),
            false => Failure::of("can't reach", &path)(error),
        }
    })?;
    let failed = |error| Failure::of("can't speak with", &path)(error);
    let mut line = serde_json::to_string(question).expect("questions are plain data");
    line.push('\n');
    (&stream).write_all(line.as_bytes()).map_err(failed)?;
    let mut reply = String::new();
    let read = BufReader::new((&stream).take(LINE_MAX)).read_line(&mut reply);
    read.map_err(|error| Failure::of("can't hear from", &path)(error))?;
    serde_json::from_str(&reply).map_err(|error| Failure::Damaged {
        path: path.clone(),
        what: format!("an answer that makes no sense ({error}); is it another version of croft?"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_and_after_the_end_nobody_is_there() {
        let directory = std::env::temp_dir().join(format!("croft-control-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let control = Control::listen(&directory, |line| format!("[{line}, 2]")).unwrap();
        assert_eq!(ask::<u8, Vec<u8>>(&directory, &1).unwrap(), [1, 2]);
        drop(control);
        let failure = ask::<u8, Vec<u8>>(&directory, &1).unwrap_err().to_string();
        assert!(failure.contains("no machine runs"), "{failure}");
        fs::remove_dir_all(&directory).unwrap();
    }
    #[test]
    fn it_ends_even_if_its_file_was_removed() {
        let directory = std::env::temp_dir().join(format!("croft-removed-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let control = Control::listen(&directory, str::to_owned).unwrap();
        fs::remove_file(directory.join("control")).unwrap();
        drop(control);
        fs::remove_dir_all(&directory).unwrap();
    }
}
