//! A proxy before PostgreSQL that knows where messages begin and end. It counts what clients send,
//! and at a chosen message it holds everything up or cuts the connection.
//!
//! It reads the protocol without TLS
//! (<https://www.postgresql.org/docs/current/protocol-message-formats.html>): a client's first
//! message has a length only, every other one has a type before its length.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// A running proxy; dropping it ends its connections.
#[derive(Debug)]
pub struct PostgresProxy {
    address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    accepting: JoinHandle<()>,
}

/// A message that clients send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// The message of this number, counted from 1 over all connections.
    Number(u64),
    /// The first message that has this text in it, such as `COMMIT`.
    Text(&'static str),
}

/// Side of a message's delivery on which something happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The server never gets the message.
    Before,
    /// The server has got it, and no answer to it passes.
    After,
}

/// Fault at the chosen message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Holds everything up, so that a test can kill the client there, or let it go on.
    Hold,
    /// Closes the connection on both sides.
    Cut,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    messages: u64,
    /// Questions that the server has not answered to their end.
    unanswered: u64,
    stop: Option<(Point, Moment, Fault)>,
    reached: bool,
    held: bool,
    rewritten: Option<(&'static str, &'static str)>,
}

/// Verdict on one message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Stop(Moment, Fault),
}

impl PostgresProxy {
    /// Starts a proxy before `server` that lets everything pass. Its tasks live on the calling runtime.
    pub async fn before(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("open the proxy's port")?;
        let address = listener.local_addr()?;
        let state = Arc::new(watch::Sender::default());
        let accepting = tokio::spawn(accept(listener, server, Arc::clone(&state)));
        Ok(Self {
            address,
            state,
            accepting,
        })
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts from 0 again, and lets `fault` happen at this point, once.
    pub fn stop_at(&self, point: Point, moment: Moment, fault: Fault) {
        self.state.send_modify(|state| {
            *state = State {
                stop: Some((point, moment, fault)),
                messages: 0,
                reached: false,
                ..*state
            }
        });
    }

    /// Replaces from now on a text in what clients say by another of the same length, such as a long
    /// timeout by a short one.
    pub fn rewrite(&self, text: &'static str, with: &'static str) {
        assert_eq!(text.len(), with.len(), "a message keeps its length");
        self.state
            .send_modify(|state| state.rewritten = Some((text, with)));
    }

    /// Returns the messages that clients sent since the count began.
    pub fn messages(&self) -> u64 {
        self.state.borrow().messages
    }

    /// Whether the chosen message came.
    pub fn is_reached(&self) -> bool {
        self.state.borrow().reached
    }

    /// Waits for the chosen message.
    pub async fn reached(&self) {
        let mut state = self.state.subscribe();
        // The sender lives as long as this.
        let _ = state.wait_for(|state| state.reached).await;
    }

    /// Whether nothing passes.
    pub fn is_held(&self) -> bool {
        self.state.borrow().held
    }

    /// Lets everything pass that is held up.
    pub fn go_on(&self) {
        self.state.send_modify(|state| state.held = false);
    }

    /// Whether the server works on a question: it has got all of it, and its answer has not ended.
    pub fn is_working(&self) -> bool {
        self.state.borrow().unanswered > 0
    }
}

impl Drop for PostgresProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, state: Arc<watch::Sender<State>>) {
    // Dropped with this task, and with it every connection.
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let link = Link {
            state: Arc::clone(&state),
            unanswered: AtomicU64::new(0),
        };
        connections.spawn(link.carry(client, server));
        while connections.try_join_next().is_some() {}
    }
}

/// A connection through the proxy.
struct Link {
    state: Arc<watch::Sender<State>>,
    /// Part of [`State::unanswered`] that is this connection's.
    unanswered: AtomicU64,
}

impl Link {
    /// Carries messages both ways until one end is closed or the connection is cut.
    async fn carry(self, client: TcpStream, server: SocketAddr) -> Result<()> {
        client.set_nodelay(true)?;
        let server = TcpStream::connect(server).await?;
        server.set_nodelay(true)?;
        let (mut requests, mut to_client) = client.into_split();
        let (mut answers, mut to_server) = server.into_split();
        let ended = tokio::try_join!(
            self.requests(&mut requests, &mut to_server),
            self.answers(&mut answers, &mut to_client)
        );
        // Before the server can hear of the end: a test that asks the server afterwards finds the proxy
        // idle.
        self.state.send_modify(|state| {
            state.unanswered -= self.unanswered.load(Ordering::Relaxed);
            state.held = false;
        });
        ended.map(drop)
    }

    async fn requests(&self, from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) -> Result<()> {
        let (mut received, mut started) = (BytesMut::new(), false);
        loop {
            while let Some(message) = message(&mut received, usize::from(started))? {
                let asks = !started || matches!(message[0], b'Q' | b'S' | b'F');
                started = true;
                let verdict = self.judge(&message);
                if let Verdict::Stop(Moment::Before, fault) = verdict {
                    self.stop(fault, from, &mut received).await?;
                }
                if asks {
                    self.unanswered.fetch_add(1, Ordering::Relaxed);
                    self.state.send_modify(|state| state.unanswered += 1);
                }
                to.write_all(&self.rewritten(message)).await?;
                if let Verdict::Stop(Moment::After, fault) = verdict {
                    self.stop(fault, from, &mut received).await?;
                }
            }
            if from.read_buf(&mut received).await? == 0 {
                bail!("the client has gone");
            }
        }
    }

    async fn answers(&self, from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) -> Result<()> {
        let mut received = BytesMut::new();
        loop {
            while let Some(message) = message(&mut received, 1)? {
                let mut state = self.state.subscribe();
                state.wait_for(|state| !state.held).await?;
                // ReadyForQuery: the server has nothing left to do.
                if message[0] == b'Z' {
                    self.unanswered.fetch_sub(1, Ordering::Relaxed);
                    self.state.send_modify(|state| state.unanswered -= 1);
                }
                to.write_all(&message).await?;
            }
            if from.read_buf(&mut received).await? == 0 {
                bail!("the server has gone");
            }
        }
    }

    /// Counts a client's message, and returns the verdict on it.
    fn judge(&self, message: &[u8]) -> Verdict {
        let mut verdict = Verdict::Pass;
        self.state.send_modify(|state| {
            state.messages += 1;
            let here = |point| match point {
                Point::Number(number) => number == state.messages,
                Point::Text(text) => contains(message, text.as_bytes()),
            };
            if let Some((point, moment, fault)) = state.stop
                && here(point)
            {
                // An answer could pass before the message is said to be delivered.
                state.held = fault == Fault::Hold;
                state.stop = None;
                verdict = Verdict::Stop(moment, fault);
            }
        });
        verdict
    }

    fn rewritten(&self, message: Bytes) -> Bytes {
        let rewritten = self.state.borrow().rewritten;
        let found = rewritten.and_then(|(text, with)| {
            let length = text.len();
            let at = message
                .windows(length)
                .position(|part| part == text.as_bytes())?;
            Some([&message[..at], with.as_bytes(), &message[at + length..]].concat())
        });
        found.map_or(message, Bytes::from)
    }

    /// Carries a fault out; while it holds everything up, a client that goes ends the connection.
    async fn stop(
        &self,
        fault: Fault,
        from: &mut OwnedReadHalf,
        received: &mut BytesMut,
    ) -> Result<()> {
        self.state.send_modify(|state| state.reached = true);
        if fault == Fault::Cut {
            bail!("the connection is cut");
        }
        let mut state = self.state.subscribe();
        loop {
            tokio::select! {
                _ = state.wait_for(|state| !state.held) => return Ok(()),
                length = from.read_buf(received) => if length? == 0 {
                    bail!("the client has gone");
                },
            }
        }
    }
}

/// Takes a whole message, which has `kind` bytes before the length.
fn message(received: &mut BytesMut, kind: usize) -> Result<Option<Bytes>> {
    let Some(length) = received.get(kind..kind + 4) else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(length.try_into()?) as usize;
    if length < 4 {
        bail!("a message says that it is {length} bytes long");
    }
    let whole = received.len() >= kind + length;
    Ok(whole.then(|| received.split_to(kind + length).freeze()))
}

fn contains(message: &[u8], text: &[u8]) -> bool {
    message.windows(text.len()).any(|part| part == text)
}
