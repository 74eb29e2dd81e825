//! Worker threads: one thread, one single-threaded runtime and one listener per core.
//!
//! Measured against one multi-threaded runtime this was the largest gain of all: no task moves between cores
//! and no lock is contended.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::thread;

use futures::future::try_join_all;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::BoxError;
use crate::listener::listen_shared;
use crate::serve::DrainOutcome;

/// Start values of one worker thread.
#[derive(Debug)]
pub struct Worker {
    /// Number from 0.
    pub index: usize,
    /// Listener on the port that all workers share.
    pub listener: TcpListener,
}

/// Worker threads under way.
#[derive(Debug)]
pub struct Workers {
    address: SocketAddr,
    ends: Vec<oneshot::Receiver<DrainOutcome>>,
}

/// A worker thread that panicked; the panic's message went to standard error.
#[derive(Debug, thiserror::Error)]
#[error("worker {index} of the request threads died")]
pub struct WorkerDied {
    /// Number of the worker.
    pub index: usize,
}

impl Workers {
    /// Starts `count` threads that all listen on `address`; each runs `work` to its end.
    pub fn start<F, R>(count: NonZeroUsize, address: SocketAddr, work: F) -> Result<Self, BoxError>
    where
        F: Fn(Worker) -> R + Clone + Send + 'static,
        R: Future<Output = DrainOutcome>,
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

    /// Returns the address of the workers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until all have drained; the first death ends the wait.
    pub async fn finish(self) -> Result<DrainOutcome, WorkerDied> {
        let ends = self.ends.into_iter().enumerate();
        let drained = try_join_all(
            ends.map(|(index, end)| async move { end.await.map_err(|_| WorkerDied { index }) }),
        );
        Ok(drained
            .await?
            .into_iter()
            .fold(DrainOutcome::default(), DrainOutcome::and))
    }
}
