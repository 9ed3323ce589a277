//! Frames on a stream: a length of 32 bits, little endian, and so many bytes.

use quinn::{ConnectionError, ReadError, RecvStream, SendStream, WriteError};

use super::room::Room;

/// Set aside at most before the bytes of a frame are there.
const AHEAD: usize = 64 << 10;

/// Why no more can be read.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The other end breaks the rules; the text says how.
    Garbage(String),
    /// A frame is longer than its lane allows.
    Oversized { size: usize, size_max: usize },
    /// There is no room for what all connections together send.
    Crowded,
    /// The connection is gone, or the stream given up.
    Gone,
}

impl From<ReadError> for Stop {
    fn from(_: ReadError) -> Stop {
        Stop::Gone
    }
}

impl From<ConnectionError> for Stop {
    fn from(_: ConnectionError) -> Stop {
        Stop::Gone
    }
}

/// The next frame; none if the stream ends before it.
pub(crate) async fn read(
    stream: &mut RecvStream,
    size_max: usize,
    room: &Room,
) -> Result<Option<Vec<u8>>, Stop> {
    let mut header = [0; 4];
    match fill(stream, &mut header).await? {
        0 => return Ok(None),
        4 => {}
        _ => return Err(Stop::Garbage("a stream ends within a length".into())),
    }
    let size = u32::from_le_bytes(header) as usize;
    if size > size_max {
        return Err(Stop::Oversized { size, size_max });
    }
    let mut bytes = Vec::with_capacity(size.min(AHEAD));
    let mut share = room.share();
    while bytes.len() < size {
        match stream.read_chunk(size - bytes.len(), true).await? {
            Some(chunk) if share.grow(chunk.bytes.len()) => bytes.extend_from_slice(&chunk.bytes),
            Some(_) => return Err(Stop::Crowded),
            None => return Err(Stop::Garbage("a stream ends within a frame".into())),
        }
    }
    Ok(Some(bytes))
}

/// Reads as many bytes as fit, or up to the end. How many those were.
pub(crate) async fn fill(stream: &mut RecvStream, bytes: &mut [u8]) -> Result<usize, ReadError> {
    let mut count = 0;
    while count < bytes.len() {
        match stream.read(&mut bytes[count..]).await? {
            Some(more) => count += more,
            None => break,
        }
    }
    Ok(count)
}

/// Writes a frame. It is on its way when this returns, and no more is known.
pub(crate) async fn write(stream: &mut SendStream, frame: &[u8]) -> Result<(), WriteError> {
    let size = u32::try_from(frame.len()).expect("an outbox takes no frame that is so large");
    stream.write_all(&size.to_le_bytes()).await?;
    stream.write_all(frame).await
}
