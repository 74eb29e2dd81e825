//! `water-operator run`: stand for election, lead while elected, release the Lease at the end.

use std::time::Duration;

use kube::Client;
use tracing::info;
use water_runtime::{BoxError, Drained, Process, Shutdown, shutdown::Stage};

use crate::config::OperatorConfig;
use crate::lease::{Election, Leadership};
use crate::metrics::Metrics;
use crate::{client, leading};

/// The watches of a leader have failed for minutes.
#[derive(Debug, thiserror::Error)]
#[error("the API server's watches have failed for minutes; a new process begins afresh")]
struct WatchesFailed;

/// Runs until the process is asked to stop.
pub async fn run(config: OperatorConfig, process: &mut Process) -> Result<(), BoxError> {
    let client = client::connect().await?;
    let metrics = Metrics::default();
    metrics.register(&mut process.metrics);
    process.open_admin(config.admin, |admin| admin)?;
    let reached = process.readiness.latch("lease read");
    info!(admin = %config.admin, pod = config.pod_name, scope = ?config.scope, "operator started");

    let election = Election::new(
        client.clone(),
        &config.pod_namespace,
        config.pod_name.clone(),
    );
    let shutdown = process.shutdown.clone();
    let server = async move {
        tokio::select! {
            () = election.reachable() => reached.set(),
            () = shutdown.reached(Stage::Draining) => return Ok(Drained::default()),
        }
        serve(&client, &config, &election, &metrics, &shutdown).await
    };
    process.finish(Duration::ZERO, server).await
}

/// Leads whenever it is elected, until the process stops.
async fn serve(
    client: &Client,
    config: &OperatorConfig,
    election: &Election,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> Result<Drained, BoxError> {
    loop {
        let mut leadership: Leadership = tokio::select! {
            leadership = election.win() => leadership,
            () = shutdown.reached(Stage::Draining) => return Ok(Drained::default()),
        };
        metrics.leading.set(1);
        let end = tokio::select! {
            () = leading::lead(client, config, election, metrics) => End::Hopeless,
            () = leadership.lost() => End::Lost,
            () = shutdown.reached(Stage::Draining) => End::Stopping,
        };
        metrics.leading.set(0);
        match end {
            End::Lost => {}
            End::Stopping => {
                leadership.release().await;
                return Ok(Drained::default());
            }
            End::Hopeless => {
                leadership.release().await;
                return Err(WatchesFailed.into());
            }
        }
    }
}

/// Why a leadership ended.
enum End {
    /// Somebody else leads, or nobody can tell.
    Lost,
    /// The process stops.
    Stopping,
    /// The watches do not come back.
    Hopeless,
}
