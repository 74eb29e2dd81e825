//! One thread, one single-threaded runtime and one listener per core.
//!
//! Measured against one multi-threaded runtime this was the largest gain of all: no task moves
//! between cores and no lock is contended.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::thread;

use futures::future::try_join_all;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::BoxError;
use crate::listener::listen_shared;
use crate::serve::Drained;

/// What one worker thread starts with.
#[derive(Debug)]
pub struct Worker {
    /// 0 and up.
    pub index: usize,
    /// Its own listener on the port that all workers share.
    pub listener: TcpListener,
}

/// Worker threads under way.
#[derive(Debug)]
pub struct Workers {
    address: SocketAddr,
    ends: Vec<oneshot::Receiver<Drained>>,
}

/// A worker thread that panicked; the panic's message went to standard error.
#[derive(Debug, thiserror::Error)]
#[error("worker {index} of the request threads died")]
pub struct WorkerDied {
    /// Which.
    pub index: usize,
}

impl Workers {
    /// Starts `count` threads that all listen on `address`; each runs `work` to its end.
    pub fn start<F, R>(count: NonZeroUsize, address: SocketAddr, work: F) -> Result<Self, BoxError>
    where
        F: Fn(Worker) -> R + Clone + Send + 'static,
        R: Future<Output = Drained>,
    {
        // The first listener decides the port when 0 was asked for.
        let first = listen_shared(address)?;
        let address = first.local_addr()?;
        let mut listeners = vec![first];
        for _ in 1..count.get() {
            listeners.push(listen_shared(address)?);
        }
        let mut ends = Vec::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            let listener = listener.into_std()?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let (end, ended) = oneshot::channel();
            let work = work.clone();
            thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || {
                    let drained = runtime.block_on(async move {
                        let listener = TcpListener::from_std(listener)
                            .expect("a listener moves from one runtime to another");
                        work(Worker { index, listener }).await
                    });
                    // Nobody is there to hear it when the process is ending for another reason.
                    let _ = end.send(drained);
                })?;
            ends.push(ended);
        }
        Ok(Self { address, ends })
    }

    /// Where the workers listen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until all have drained; the first death ends the wait.
    pub async fn finish(self) -> Result<Drained, WorkerDied> {
        let ends = self.ends.into_iter().enumerate();
        let drained = try_join_all(
            ends.map(|(index, end)| async move { end.await.map_err(|_| WorkerDied { index }) }),
        );
        Ok(drained
            .await?
            .into_iter()
            .fold(Drained::default(), Drained::and))
    }
}
