//! A single HTTP/1.1 connection to a service, driven by the request that uses it.
//!
//! hyper's client drives each connection from a separate task, and hands over an answer in pieces. One request at a
//! time, written at once and its answer read whole, needs none of that: it was a fifth of the gate's own instructions
//! (callgrind, `cargo dev bench`'s load).

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderName, Response};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::answer::{Body, Head, MalformedAnswer, read_chunk, read_head};
use super::attempts::{EVERY, first_of};
use super::request::Request;
use super::{Resolver, UpstreamFailure};

/// Buffer for an answer with one record, head and body, so that it is read at once.
const CAPACITY: usize = 4 * 1024;
/// Longest line before a chunk, and most bytes of trailers after the last; they are discarded.
const MAX_LINES: usize = 4 * 1024;

/// Time without acknowledgement after which the kernel closes the connection: the answer may take seconds, but the
/// other kernel acknowledges at once. Linux begins to count when it sends the bytes for the third time, 0.43 s after
/// the first: 0.68 s in all (measured).
const UNACKNOWLEDGED: Duration = Duration::from_millis(250);
/// Silence after which the kernel probes the other end, and the interval of its probes, during a request and between
/// requests. The shortest possible.
const SILENT: Duration = Duration::from_secs(1);

/// A connection that carries one request at a time.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    /// Bytes received and not yet read.
    received: BytesMut,
    /// Whether the connection has carried a request before.
    pub(super) reused: bool,
    /// Whether a byte has arrived since the last request was sent.
    heard: bool,
    /// Time of connecting: a connection stays with one pod while it lives.
    pub(super) opened: Instant,
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct WholeAnswer {
    pub(super) response: Response<Bytes>,
    /// Whether the connection may carry another request.
    pub(super) keeps_open: bool,
}

/// Reason that an answer broke off.
#[derive(Debug, thiserror::Error)]
pub enum Break {
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The answer is not HTTP as our services use it.
    #[error(transparent)]
    Malformed(#[from] MalformedAnswer),
    /// The answer's body is larger than the bound.
    #[error("the answer is too large")]
    TooLarge,
}

impl Connection {
    /// Connects within so many intervals of attempts; a name that has never been resolved is waited for as long.
    pub(super) async fn open(resolver: &Resolver, intervals: u32) -> Result<Self, UpstreamFailure> {
        let addresses = timeout(EVERY * intervals, resolver.addresses())
            .await
            .map_err(|_| UpstreamFailure::ConnectTooSlow)?;
        let stream = first_of(&addresses, intervals, TcpStream::connect).await?;
        Ok(Self {
            stream: prepared(stream).map_err(UpstreamFailure::Connect)?,
            received: BytesMut::with_capacity(CAPACITY),
            reused: false,
            heard: false,
            opened: Instant::now(),
        })
    }

    /// Whether the service has closed the connection, or has sent something unasked. Costs a system call only if
    /// something has arrived.
    pub(super) fn is_closed(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        !read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a request and reads the whole answer, with the fields named in `keep`.
    pub(super) async fn exchange(
        &mut self,
        request: Request,
        host: &str,
        keep: &[HeaderName],
        bound: usize,
    ) -> Result<WholeAnswer, UpstreamFailure> {
        let without_body = request.asks_for_head;
        self.heard = false;
        let outcome = match self.stream.write_all(&request.into_bytes(host)).await {
            Ok(()) => self.read_answer(keep, without_body, bound).await,
            Err(error) => Err(error.into()),
        };
        outcome.map_err(|reason| match reason {
            Break::TooLarge => UpstreamFailure::TooLarge,
            Break::Socket(error) if is_gone(&error) && !self.heard => UpstreamFailure::Gone(error),
            Break::Socket(error) if self.reused && !self.heard => UpstreamFailure::Stale(error),
            reason => UpstreamFailure::Broken(reason),
        })
    }

    async fn read_answer(
        &mut self,
        keep: &[HeaderName],
        without_body: bool,
        bound: usize,
    ) -> Result<WholeAnswer, Break> {
        let head = loop {
            self.read().await?;
            if let Some(head) = read_head(&self.received, keep, without_body)? {
                break head;
            }
        };
        let Head { size, closes, .. } = head;
        let body = match head.body {
            Body::Length(length) => {
                let length = within(bound, 0, length)?;
                self.fill(size + length).await?;
                self.take(size);
                self.take(length).freeze()
            }
            Body::Chunked => {
                self.take(size);
                self.read_chunks(bound).await?
            }
        };
        if body.len() > CAPACITY && self.received.is_empty() {
            // The rest of the buffer would keep all of the answer's memory.
            self.received = BytesMut::new();
        }
        let mut response = Response::new(body);
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        Ok(WholeAnswer {
            response,
            // Bytes after an answer belong to no request: they could be mistaken for the next answer.
            keeps_open: !closes && self.received.is_empty(),
        })
    }

    /// Reads a chunked body; proxies between the gate and a service may chunk one.
    async fn read_chunks(&mut self, bound: usize) -> Result<Bytes, Break> {
        let mut body = BytesMut::new();
        loop {
            let chunk = loop {
                match read_chunk(&self.received)? {
                    Some(chunk) => break chunk,
                    None => self.read_line().await?,
                }
            };
            self.take(chunk.line);
            let size = within(bound, body.len(), chunk.size)?;
            if size == 0 {
                self.skip_trailers().await?;
                return Ok(body.freeze());
            }
            self.fill(size + 2).await?;
            body.extend_from_slice(&self.take(size));
            if self.take(2) != b"\r\n"[..] {
                return Err(MalformedAnswer.into());
            }
        }
    }

    /// Skips the fields after the last chunk, up to an empty line.
    async fn skip_trailers(&mut self) -> Result<(), Break> {
        let mut passed = 0;
        loop {
            let line = loop {
                match self.received.windows(2).position(|pair| pair == b"\r\n") {
                    Some(end) => break end,
                    None => self.read_line().await?,
                }
            };
            self.take(line + 2);
            passed += line;
            if line == 0 {
                return Ok(());
            }
            if passed > MAX_LINES {
                return Err(MalformedAnswer.into());
            }
        }
    }

    /// Reads more of an incomplete line.
    async fn read_line(&mut self) -> Result<(), Break> {
        if self.received.len() < MAX_LINES {
            self.read().await
        } else {
            Err(MalformedAnswer.into())
        }
    }

    /// Reads until `length` bytes have arrived.
    async fn fill(&mut self, length: usize) -> Result<(), Break> {
        self.received
            .reserve(length.saturating_sub(self.received.len()));
        while self.received.len() < length {
            self.read().await?;
        }
        Ok(())
    }

    /// Reads the available bytes, at least one.
    async fn read(&mut self) -> Result<(), Break> {
        self.received.reserve(CAPACITY / 4);
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(Break::Socket(io::ErrorKind::UnexpectedEof.into())),
            _ => {
                self.heard = true;
                Ok(())
            }
        }
    }

    fn take(&mut self, length: usize) -> BytesMut {
        self.received.split_to(length)
    }
}

/// Sets the options of a socket: send at once, and notice when the other end is down.
fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    let asking = TcpKeepalive::new().with_time(SILENT).with_interval(SILENT);
    socket.set_tcp_keepalive(&asking)?;
    Ok(stream)
}

/// Whether the kernel has given up the other end, with the network's reason if it has one.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkUnreachable, TimedOut};
    matches!(
        error.kind(),
        TimedOut | HostUnreachable | NetworkUnreachable
    )
}

/// Returns the length as a size in memory, if it and `held` bytes are not more than `bound`.
fn within(bound: usize, held: usize, length: u64) -> Result<usize, Break> {
    let length = usize::try_from(length).map_err(|_| Break::TooLarge)?;
    match held.checked_add(length) {
        Some(whole) if whole <= bound => Ok(length),
        _ => Err(Break::TooLarge),
    }
}
