//! A socket that tells its [`Watch`] what happens on it, and closes without losing the answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::watch::{Phase, Watch};

/// What a peer may still send after we have closed our side, before it is cut off: more than any
/// head we refuse.
const LINGER_BYTES: usize = 256 * 1024;

pub(super) struct Socket {
    /// Taken when the socket is dropped.
    stream: Option<TcpStream>,
    watch: Arc<Watch>,
    /// Bytes thrown away since our side was closed; none while it is open.
    discarded: Option<usize>,
    left: Left,
}

/// Where the stream of a socket goes that was dropped before our side was closed.
#[derive(Clone, Default)]
pub(super) struct Left(Arc<Mutex<Option<TcpStream>>>);

impl Left {
    /// The stream, once.
    pub(super) fn take(&self) -> Option<TcpStream> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.take()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.discarded.is_none() {
            let mut left = self.left.0.lock().unwrap_or_else(PoisonError::into_inner);
            *left = self.stream.take();
        }
    }
}

impl Socket {
    pub(super) fn new(stream: TcpStream, watch: Arc<Watch>, left: Left) -> Self {
        Self {
            stream: Some(stream),
            watch,
            discarded: None,
            left,
        }
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

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.stream().poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.watch.read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write(context, bytes);
        self.note_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write_vectored(context, slices);
        self.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.stream().poll_flush(context))?;
        self.watch.flushed();
        Poll::Ready(Ok(()))
    }

    /// Closes our side and reads on until the peer has closed its own. A socket closed with unread
    /// input resets the connection, and the peer may never see the answer that told it why.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.discarded.is_none() {
            ready!(self.stream().poll_shutdown(context))?;
            self.discarded = Some(0);
            self.watch.enter(Phase::Closing);
        }
        let mut scratch = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            ready!(self.stream().poll_read(context, &mut buffer))?;
            let discarded = self.discarded.unwrap_or(0) + buffer.filled().len();
            if buffer.filled().is_empty() || discarded > LINGER_BYTES {
                return Poll::Ready(Ok(()));
            }
            self.discarded = Some(discarded);
        }
    }
}
