//! One HTTP/1.1 connection to a service.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderMap, Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::UpstreamFailure;

/// A connection that carries one request at a time.
#[derive(Debug)]
pub(super) struct Connection {
    requests: SendRequest<Empty<Bytes>>,
    /// Whether a byte has arrived since the last request was sent.
    heard: Arc<AtomicBool>,
    /// Whether it has carried a request before.
    reused: bool,
    /// When it was made: it stays with one pod for as long as it lives.
    pub(super) opened: Instant,
}

impl Connection {
    /// Connects to `host:port`. The name is resolved each time: a service may have moved.
    pub(super) async fn open(address: &str, deadline: Duration) -> Result<Self, UpstreamFailure> {
        let stream = timeout(deadline, TcpStream::connect(address))
            .await
            .map_err(|_| UpstreamFailure::ConnectTooSlow)?
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .map_err(UpstreamFailure::Connect)?;
        let heard = Arc::new(AtomicBool::new(false));
        let stream = Listening {
            stream,
            heard: Arc::clone(&heard),
        };
        let (requests, driver) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(UpstreamFailure::Broken)?;
        // Its end is seen by the next request on this connection, with the same error.
        tokio::spawn(driver);
        Ok(Self {
            requests,
            heard,
            reused: false,
            opened: Instant::now(),
        })
    }

    /// Sends a request and reads the answer's head.
    pub(super) async fn send(
        &mut self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, UpstreamFailure> {
        self.heard.store(false, Ordering::Relaxed);
        let outcome = self.requests.send_request(request).await;
        outcome.map_err(|error| {
            if self.reused && !self.heard.load(Ordering::Relaxed) {
                UpstreamFailure::Stale(error)
            } else {
                UpstreamFailure::Broken(error)
            }
        })
    }

    /// Waits until the last answer's end has been handled; `None` if the connection is closed.
    pub(super) async fn reuse(mut self) -> Option<Self> {
        self.requests.ready().await.ok()?;
        self.reused = true;
        Some(self)
    }

    /// Whether the other side has closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }
}

/// Whether an answer says that its connection ends with it, as draining servers do.
pub(super) fn asks_to_close(headers: &HeaderMap) -> bool {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|field| field.as_bytes().split(|byte| *byte == b','))
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// A socket that notes whether anything has arrived: hyper's errors do not tell an answer that
/// never began from one that broke off in its head.
struct Listening {
    stream: TcpStream,
    heard: Arc<AtomicBool>,
}

impl AsyncRead for Listening {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.heard.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for Listening {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
