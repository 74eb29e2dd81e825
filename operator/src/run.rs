//! `water-operator run`: stand for election, lead while elected, release the Lease at the end.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use kube::Client;
use tokio::time::timeout;
use tracing::info;
use water_runtime::{BoxError, Drained, Process, Shutdown, shutdown::Stage};

use crate::config::OperatorConfig;
use crate::events::Events;
use crate::lease::{Election, Leadership};
use crate::metrics::Metrics;
use crate::{client, events, leading};

/// Events that wait when the process stops are written for this long.
const LAST_EVENTS_WITHIN: Duration = Duration::from_secs(1);

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
    let (events, queue) = events::queue(&config.pod_name);
    let server = async move {
        tokio::select! {
            () = election.reachable() => reached.set(),
            () = shutdown.reached(Stage::Draining) => return Ok(Drained::default()),
        }
        let mut writing = pin!(events::write(&client, queue));
        let served = serve(&client, &config, &election, events, &metrics, &shutdown);
        // The queue outlives a leadership; `served` ends first, since it holds the queue open.
        let (served, writing) = match select(pin!(served), writing.as_mut()).await {
            Either::Left((served, writing)) => (served, writing),
            Either::Right(((), served)) => return served.await,
        };
        // What is left stands in the log.
        let _ = timeout(LAST_EVENTS_WITHIN, writing).await;
        served
    };
    process.finish(Duration::ZERO, server).await
}

/// Leads whenever it is elected, until the process stops.
async fn serve(
    client: &Client,
    config: &OperatorConfig,
    election: &Election,
    events: Events,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> Result<Drained, BoxError> {
    loop {
        let mut leadership: Leadership = tokio::select! {
            leadership = election.win() => leadership,
            () = shutdown.reached(Stage::Draining) => return Ok(Drained::default()),
        };
        metrics.leading.set(1);
        // In this order: a process that was held for longer than its lease does not go on with what it
        // was doing.
        let end = tokio::select! {
            biased;
            () = leadership.lost() => End::Lost,
            () = shutdown.reached(Stage::Draining) => End::Stopping,
            () = leading::lead(client, config, election, &events, metrics) => End::Hopeless,
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
