//! Task that keeps this gate's copy of the key directory, from the first load to the end of its lease.

use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::warn;
use water_keystore::Replica;
use water_runtime::Process;
use water_runtime::telemetry::chain;

/// The running task.
#[derive(Debug)]
pub struct Directory {
    leave: oneshot::Sender<()>,
    left: oneshot::Receiver<()>,
}

impl Directory {
    /// Loads and follows the directory as a background task of the process, which is ready once the
    /// copy is complete and the feed has replied.
    pub fn follow(replica: Arc<Replica>, process: &mut Process) -> Self {
        let latch = process.readiness.latch("key directory");
        let loaded = Arc::clone(&replica);
        process
            .tasks
            .spawn("readiness of the key directory", async move {
                loaded.completed().await;
                latch.set();
                std::future::pending().await
            });
        let (leave, asked) = oneshot::channel();
        let (done, left) = oneshot::channel();
        process.tasks.spawn("key directory", async move {
            tokio::select! {
                never = replica.run() => match never {},
                Ok(()) = asked => {}
            }
            if let Err(error) = replica.leave().await {
                warn!(
                    error = chain(&error),
                    "the lease could not be given back; it runs out by itself"
                );
            }
            // Nobody waits any longer if the process is ended early.
            let _ = done.send(());
            std::future::pending().await
        });
        Self { leave, left }
    }

    /// Returns the lease. Requests must be drained.
    pub async fn leave(self) {
        // An error means that the task is gone, and the process is ending because of it.
        if self.leave.send(()).is_ok() {
            let _ = self.left.await;
        }
    }
}
