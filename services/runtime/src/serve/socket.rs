//! A socket that reports its events to its [`Watch`], and is left to us when hyper has ended.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use super::targets::Targets;
use super::watch::Watch;

/// Bytes that a peer may still send after we have closed our side, before it is cut off: more than any head
/// we refuse.
const LINGER_BYTES: usize = 256 * 1024;

pub(super) struct Socket {
    /// Stream, which is taken when the socket is dropped.
    stream: Option<TcpStream>,
    watch: Arc<Watch>,
    tail: Tail,
    left: StreamSlot,
    /// Lines that have been read, where fragments are refused.
    targets: Option<Targets>,
}

/// Place that gets the stream of a dropped socket.
#[derive(Clone, Default)]
pub(super) struct StreamSlot(Arc<Mutex<Option<TcpStream>>>);

impl StreamSlot {
    /// Takes the stream, once.
    pub(super) fn take(&self) -> Option<TcpStream> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.take()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut left = self.left.0.lock().unwrap_or_else(PoisonError::into_inner);
        *left = self.stream.take();
    }
}

/// The last bytes that came in, the newest lowest.
#[derive(Default)]
struct Tail(u32);

impl Tail {
    fn follow(&mut self, bytes: &[u8]) {
        for byte in &bytes[bytes.len().saturating_sub(3)..] {
            self.0 = self.0 << 8 | u32::from(*byte);
        }
    }

    /// Whether the bytes are an empty line, with which every head ends.
    fn ends_a_head(&self) -> bool {
        self.0 & 0xffff == u32::from_be_bytes(*b"\0\0\n\n")
            || self.0 & 0xff_ffff == u32::from_be_bytes(*b"\0\n\r\n")
    }
}

impl Socket {
    pub(super) fn new(stream: TcpStream, watch: Arc<Watch>, left: StreamSlot) -> Self {
        Self {
            stream: Some(stream),
            watch,
            tail: Tail::default(),
            left,
            targets: None,
        }
    }

    /// Refuses fragments from the first byte on; requests must have no bodies.
    pub(super) fn refuse_fragments(&mut self) {
        self.targets = Some(Targets::default());
    }

    fn stream(&mut self) -> Pin<&mut TcpStream> {
        let stream = self.stream.as_mut();
        Pin::new(stream.expect("the stream is taken when the socket is dropped"))
    }

    fn note_write(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => self.watch.write_blocked(),
            Poll::Ready(_) => self.watch.wrote(),
        }
        written
    }
}

/// Closes our side and reads on until the peer has closed its own. A socket closed with unread input resets
/// the connection, and the peer may never see the answer with the reason.
pub(super) async fn linger(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut discarded = 0;
    while discarded <= LINGER_BYTES {
        stream.readable().await?;
        let mut scratch = [0; 4096];
        match stream.try_read(&mut scratch) {
            Ok(0) => break,
            Ok(read) => discarded += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.stream().poll_read(context, buffer))?;
        let read = &mut buffer.filled_mut()[before..];
        if !read.is_empty() {
            if let Some(targets) = &mut self.targets {
                targets.refuse_fragments(read);
            }
            self.tail.follow(read);
            self.watch.read(self.tail.ends_a_head());
        }
        Poll::Ready(Ok(()))
    }
}

/// Takes one piece at a time: hyper then copies a body behind its head, and one `send` costs no more
/// than a `writev` of both.
impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write(context, bytes);
        self.note_write(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.stream().poll_flush(context))?;
        self.watch.flushed();
        Poll::Ready(Ok(()))
    }

    /// A peer that is gone already is no error: the connection's end has its own reason.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context).map(|_| Ok(()))
    }
}
