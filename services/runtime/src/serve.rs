//! Our own accept loop before hyper's HTTP/1 connection: every connection has deadlines.
//!
//! hyper's one timer runs while a connection is idle as well, so the deadlines are kept by a
//! wrapper around the socket. HTTP/1 only; `TCP_NODELAY`; head and body leave in one write.

mod connection;
mod connections;
mod pieces;
mod socket;
mod targets;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use http::{Request, Response};
use hyper::body::{Body, Bytes, Incoming};
use hyper::service::Service;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::shutdown::Stage;
use crate::{BoxError, Shutdown};
pub use connections::{ConnectionLimits, Connections};

/// Rest after an accept that failed for want of descriptors or memory: long enough to free some, too short
/// for a client to notice.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// Rest after an idle connection was closed: its descriptor is free by then, and if that did not help, the
/// idle ones are closed one by one and not all at once.
const FREED_REST: Duration = Duration::from_millis(5);

/// Peer of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Address of the socket's peer: the client, or a proxy.
    pub address: SocketAddr,
}

/// Result of draining.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DrainOutcome {
    /// Connections that were still answering at the deadline, and were cut. 0: draining ended in time.
    pub cut: usize,
}

impl DrainOutcome {
    /// Adds the two results.
    pub fn and(self, other: Self) -> Self {
        Self {
            cut: self.cut + other.cut,
        }
    }
}

/// State that all accept loops of a process share. Cloned into each worker.
#[derive(Clone, Debug)]
pub struct Server {
    connections: Connections,
    shutdown: Shutdown,
    drain: Duration,
}

impl Server {
    /// Makes a server that stops by `shutdown` and then takes at most `drain` to end what is under way.
    pub fn new(connections: Connections, shutdown: Shutdown, drain: Duration) -> Self {
        Self {
            connections,
            shutdown,
            drain,
        }
    }

    /// Accepts connections, each with its own service, until [`Stage::Draining`]; then drains.
    pub async fn serve<F, S, B>(&self, listener: TcpListener, service: F) -> DrainOutcome
    where
        F: Fn(Peer) -> S,
        S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let mut running = JoinSet::new();
        let mut stopping = pin!(self.shutdown.reached(Stage::Stopping).fuse());
        let mut draining = pin!(self.shutdown.reached(Stage::Draining));
        let mut failing = false;
        loop {
            tokio::select! {
                () = &mut draining => break,
                () = &mut stopping => self.connections.close_after_answers(),
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => {
                        failing = false;
                        self.start(accepted, &service, &mut running);
                    }
                    Err(error) => self.survive(error, &mut failing).await,
                },
                Some(_) = running.join_next() => {}
            }
        }
        // Closing a listener resets what the kernel has accepted for us: answer these clients too.
        while let Some(Ok(accepted)) = listener.accept().now_or_never() {
            self.start(accepted, &service, &mut running);
        }
        drop(listener);
        self.connections.drain();
        let ended = async { while running.join_next().await.is_some() {} };
        match timeout(self.drain, ended).await {
            Ok(()) => DrainOutcome::default(),
            Err(_) => DrainOutcome { cut: running.len() },
        }
    }

    fn start<F, S, B>(
        &self,
        (stream, address): (TcpStream, SocketAddr),
        service: &F,
        running: &mut JoinSet<()>,
    ) where
        F: Fn(Peer) -> S,
        S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
    {
        let Some(admission) = self.connections.admit(address.ip()) else {
            return;
        };
        // Without it an answer waits for the acknowledgement of the one before; a socket that
        // refuses it works all the same.
        let _ = stream.set_nodelay(true);
        running.spawn(connection::serve(
            stream,
            admission,
            service(Peer { address }),
        ));
    }

    /// Handles a failed accept. A client that went away before it was accepted costs nothing. Anything else
    /// is a shortage: close an idle connection, rest, and go on.
    async fn survive(&self, error: io::Error, failing: &mut bool) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(
            error.kind(),
            ConnectionAborted | ConnectionReset | Interrupted
        ) {
            return;
        }
        if !std::mem::replace(failing, true) {
            warn!(%error, "cannot accept connections; trying again until it works");
        }
        let freed = self.connections.close_longest_idle();
        sleep(if freed { FREED_REST } else { ACCEPT_REST }).await;
    }
}
