//! `water-operator run`: fill the caches, take part in the election, lead while elected, release the Lease at the end,
//! and release ApiKeys if the operator's namespace is being deleted.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use kube::Client;
use tokio::time::timeout;
use tracing::info;
use water_runtime::{BoxError, DrainOutcome, Latch, Process, Shutdown, shutdown::Stage};

use crate::caches::{CacheChanges, Caches};
use crate::config::OperatorConfig;
use crate::directories::Directories;
use crate::leading::{LeaderResources, lead};
use crate::lease::Election;
use crate::metrics::Metrics;
use crate::release::ending;
use crate::watches::health::Health;
use crate::{client, events};

/// Time for which events that wait when the process stops are written.
const LAST_EVENTS_WITHIN: Duration = Duration::from_secs(1);

/// Failure of all watches for minutes, or the end of one.
#[derive(Debug, thiserror::Error)]
#[error("the API server's watches have failed for minutes; a new process begins afresh")]
struct WatchesFailed;

/// Runs until the process is asked to stop.
pub async fn run(config: OperatorConfig, process: &mut Process) -> Result<(), BoxError> {
    let client = client::connect().await?;
    let metrics = Metrics::default();
    metrics.register(&mut process.metrics);
    process.open_admin(config.admin, |admin| admin)?;
    // A rollout ends no leader before its successor is ready to take over: one whose caches are empty
    // would act only seconds later.
    let ready = ["lease read", "caches filled"].map(|name| process.readiness.latch(name));
    info!(admin = %config.admin, pod = config.pod_name, scope = ?config.scope, "operator started");

    let election = Election::new(
        client.clone(),
        &config.pod_namespace,
        config.pod_name.clone(),
    );
    let shutdown = process.shutdown.clone();
    let server = async {
        let served = work(&client, &config, &election, &metrics, ready, &shutdown).await?;
        ending::let_go(&client, &config.pod_namespace, &election).await;
        Ok::<_, BoxError>(served)
    };
    process.finish(Duration::ZERO, server).await
}

/// Runs until the process is asked to stop; returns an error before that.
async fn work(
    client: &Client,
    config: &OperatorConfig,
    election: &Election,
    metrics: &Metrics,
    [reached, filled]: [Latch; 2],
    shutdown: &Shutdown,
) -> Result<DrainOutcome, BoxError> {
    tokio::select! {
        () = election.reachable() => reached.set(),
        () = shutdown.reached(Stage::Draining) => return Ok(DrainOutcome::default()),
    }
    let (events, queue) = events::queue(&config.pod_name);
    let mut writing = pin!(events::write(client, queue));
    let health = Health::new(metrics.clone());
    let (caches, told) = Caches::new(
        client,
        config.scope,
        &config.pod_namespace,
        &config.secret_scope(),
        &health,
    );
    let resources = LeaderResources {
        client,
        config,
        election,
        caches: &Arc::new(caches),
        health: &health,
        events: &events,
        metrics,
    };
    let served = serve(resources, told, filled, shutdown);
    // The queue outlives a leadership; `served` ends first, since it holds the queue open.
    let (served, writing) = match select(pin!(served), writing.as_mut()).await {
        Either::Left((served, writing)) => (served, writing),
        Either::Right(((), served)) => return served.await,
    };
    // Closes the queue. What is left in it is in the log.
    drop(events);
    let _ = timeout(LAST_EVENTS_WITHIN, writing).await;
    served
}

/// Keeps the caches and leads whenever it is elected, until the process stops.
async fn serve(
    resources: LeaderResources<'_>,
    told: CacheChanges,
    filled: Latch,
    shutdown: &Shutdown,
) -> Result<DrainOutcome, BoxError> {
    let fill = async {
        let caches = resources.caches;
        caches.filled().await;
        filled.set();
        info!(
            api_keys = caches.keys.store.len(),
            installations = caches.apis.store.len(),
            "the watches have told of everything"
        );
        pending().await
    };
    tokio::select! {
        biased;
        served = stand(resources, shutdown) => served,
        () = resources.caches.keep(told) => Err(WatchesFailed.into()),
        never = fill => never,
    }
}

async fn stand(
    resources: LeaderResources<'_>,
    shutdown: &Shutdown,
) -> Result<DrainOutcome, BoxError> {
    loop {
        let mut leadership = tokio::select! {
            leadership = resources.election.win() => leadership,
            () = shutdown.reached(Stage::Draining) => return Ok(DrainOutcome::default()),
            () = resources.health.until_hopeless() => return Err(WatchesFailed.into()),
        };
        let (election, metrics) = (resources.election.clone(), resources.metrics.clone());
        let (directories, opened) =
            Directories::new(election, metrics, leadership.left_positions());
        let directories = Arc::new(directories);
        // The release leaves them, too, when the controllers have ended.
        let carried = Arc::clone(&directories);
        leadership.carry(move || carried.positions());
        resources.metrics.leading.set(1);
        // In this order: a process that was held for longer than its lease does not go on with what it
        // was doing.
        let ended = tokio::select! {
            biased;
            () = leadership.lost() => None,
            () = shutdown.reached(Stage::Draining) => Some(Ok(DrainOutcome::default())),
            () = lead(resources, directories, opened) => Some(Err(WatchesFailed.into())),
        };
        resources.metrics.leading.set(0);
        if let Some(served) = ended {
            leadership.release().await;
            return served;
        }
        // The API server may have been restored from an older state: a watch would go on after the state that is lost,
        // and never report what comes before that.
        resources.caches.begin_anew();
    }
}
