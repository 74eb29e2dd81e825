//! A TCP proxy before a server, through which a test makes the network fail: it delays, slows,
//! loses and cuts what passes, and counts it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

/// Behaviour of the network, from the moment it is set, on old and new connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// Passes everything.
    Good,
    /// Passes nothing. It is delivered once the network is good again, as TCP sends it again.
    BlackHole,
    /// Resets every connection, new ones as soon as they are made.
    Reset,
    /// Answers come this much later, any number of them at once.
    Delay(Duration),
    /// Bytes of answers a second that a connection brings.
    Rate(usize),
    /// A connection brings this many bytes more of answers and is then closed.
    Truncate(usize),
}

/// Pause between bytes where the network has a rate.
const PIECE: Duration = Duration::from_millis(50);

/// A running proxy; dropping it ends its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    counts: Arc<Counts>,
    accepting: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    network: Network,
    /// Connections before this one are dead; neither end hears of it.
    first_alive: u64,
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    answers: AtomicU64,
}

impl Proxy {
    /// Starts a proxy before `server`, with a good network. Its tasks live on the calling runtime.
    pub async fn before(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("open the proxy's port")?;
        let address = listener.local_addr()?;
        let state = watch::Sender::new(State {
            network: Network::Good,
            first_alive: 0,
        });
        let counts = Arc::<Counts>::default();
        let accepting = tokio::spawn(accept(listener, server, state.subscribe(), counts.clone()));
        Ok(Self {
            address,
            state,
            counts,
            accepting,
        })
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the network from now on.
    pub fn set(&self, network: Network) {
        self.state.send_modify(|state| state.network = network);
    }

    /// Leaves every present connection half open: both ends believe in it, and nothing ever passes
    /// on it again. New ones are good.
    pub fn half_open(&self) {
        let next = self.connections();
        self.state.send_modify(|state| state.first_alive = next);
    }

    /// Returns the connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::Acquire)
    }

    /// Returns the bytes of answers delivered so far.
    pub fn answers(&self) -> u64 {
        self.counts.answers.load(Ordering::Acquire)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    state: watch::Receiver<State>,
    counts: Arc<Counts>,
) {
    // Dropped with this task, and with it every connection.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let link = Link {
            number: counts.connections.fetch_add(1, Ordering::AcqRel),
            state: state.clone(),
            counts: counts.clone(),
        };
        connections.spawn(link.carry(client, server));
        while connections.try_join_next().is_some() {}
    }
}

/// A connection through the proxy.
#[derive(Clone)]
struct Link {
    number: u64,
    state: watch::Receiver<State>,
    counts: Arc<Counts>,
}

impl Link {
    /// Carries bytes both ways until both ends are closed or the network cuts it.
    async fn carry(self, client: TcpStream, server: SocketAddr) -> Result<()> {
        let (mut requests, mut to_client) = client.into_split();
        let mut state = self.state.clone();
        let both_ways = async {
            self.open().await;
            let (mut answers, mut to_server) = TcpStream::connect(server).await?.into_split();
            answers.as_ref().set_nodelay(true)?;
            tokio::try_join!(
                self.pump(&mut requests, &mut to_server, false),
                self.pump(&mut answers, &mut to_client, true)
            )
        };
        tokio::select! {
            ended = both_ways => return ended.map(drop),
            _ = state.wait_for(|state| state.network == Network::Reset) => {}
        }
        requests.as_ref().set_zero_linger()?;
        // Dropped, it would say good-bye first.
        to_client.forget();
        Ok(())
    }

    /// Reads all the time and writes when it is due, so that a delay delays only.
    async fn pump(
        &self,
        from: &mut OwnedReadHalf,
        to: &mut OwnedWriteHalf,
        answers: bool,
    ) -> Result<()> {
        let (sender, mut waiting) = mpsc::unbounded_channel();
        let reading = async move {
            loop {
                let mut chunk = vec![0; 16 * 1024];
                let length = from.read(&mut chunk).await?;
                if length == 0 {
                    return anyhow::Ok(());
                }
                chunk.truncate(length);
                let delay = match self.network() {
                    Network::Delay(delay) if answers => delay,
                    _ => Duration::ZERO,
                };
                sender.send((Instant::now() + delay, chunk))?;
            }
        };
        let writing = async {
            let mut left = None;
            while let Some((due, mut chunk)) = waiting.recv().await {
                sleep_until(due).await;
                self.open().await;
                if let (Network::Truncate(bytes), true) = (self.network(), answers) {
                    let left = left.get_or_insert(bytes);
                    chunk.truncate(*left);
                    *left -= chunk.len();
                }
                if answers {
                    self.deliver(&chunk, to).await?;
                } else {
                    to.write_all(&chunk).await?;
                }
                anyhow::ensure!(left != Some(0), "truncated");
            }
            self.open().await;
            Ok(to.shutdown().await?)
        };
        tokio::try_join!(reading, writing).map(drop)
    }

    /// Brings bytes of an answer to the client, and counts them.
    async fn deliver(&self, mut bytes: &[u8], to: &mut OwnedWriteHalf) -> Result<()> {
        while !bytes.is_empty() {
            let mut piece = bytes.len();
            if let Network::Rate(rate) = self.network() {
                sleep(PIECE).await;
                self.open().await;
                let due = (rate as f64 * PIECE.as_secs_f64()).ceil();
                piece = piece.min(due as usize).max(1);
            }
            let (now, later) = bytes.split_at(piece);
            to.write_all(now).await?;
            let delivered = now.len() as u64;
            self.counts.answers.fetch_add(delivered, Ordering::AcqRel);
            bytes = later;
        }
        Ok(())
    }

    /// Waits until something may pass; for ever on a dead connection.
    async fn open(&self) {
        let mut state = self.state.clone();
        let passes =
            |state: &State| self.number >= state.first_alive && state.network != Network::BlackHole;
        if state.wait_for(passes).await.is_err() {
            std::future::pending().await
        }
    }

    fn network(&self) -> Network {
        self.state.borrow().network
    }
}
