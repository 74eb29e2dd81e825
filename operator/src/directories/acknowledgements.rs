//! Looking at the gates for as long as a change waits for them.

use std::convert::Infallible;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;
use water_keystore::{Owner, StoreError};

use super::OpenDirectory;
use super::gates::{GatePod, Gates, Missed, missed};
use crate::installation::render::Part;

/// Between a write and the first look: a gate on a healthy Redis has acknowledged by then.
const FIRST: Duration = Duration::from_millis(15);
/// Between two looks, in the end.
const LONGEST: Duration = Duration::from_millis(500);
/// A look is given up after this long.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// Why the gates could not be looked at. It is tried again.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("listing the gates' pods: {0}")]
    Kube(#[from] kube::Error),
    #[error("the look took longer than {LOOK_WITHIN:?}")]
    TooLong,
}

/// Looks whenever somebody waits, often at first, and tells whose changes have come into force.
pub async fn follow(open: &OpenDirectory, pods: &Api<Pod>, tell: impl Fn(&Owner)) -> Infallible {
    loop {
        open.waits.begun().await;
        // Whom nobody looked for meanwhile may have come and gone.
        let mut known = Missed::default();
        let mut pause = FIRST;
        while open.waits.is_anybody_waiting() {
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(LONGEST),
                () = open.waits.another() => {
                    sleep(FIRST).await;
                    pause = FIRST;
                }
            }
            let look = timeout(LOOK_WITHIN, look(open, pods, &mut known));
            match look.await.unwrap_or(Err(LookError::TooLong)) {
                Ok(in_force) => in_force.iter().for_each(&tell),
                Err(error) => {
                    debug!(error = %error, "cannot look at the gates that are waited for");
                }
            }
        }
    }
}

/// One look: leases after the write, pods after the leases.
async fn look(
    open: &OpenDirectory,
    pods: &Api<Pod>,
    known: &mut Missed,
) -> Result<Vec<Owner>, LookError> {
    let pending = open.waits.pending();
    let leases = open.directory.leases().await?;
    let pods = gate_pods(pods, &open.api.name).await?;
    let now = Instant::now();
    *known = missed(known, &leases, &pods, now);
    let gates = Gates {
        leases,
        pods,
        missed: known.clone(),
    };
    Ok(open.waits.judge(pending, &gates, now))
}

/// The pods of a WaterDataApi's gates that may run.
pub async fn gate_pods(pods: &Api<Pod>, api: &str) -> kube::Result<Vec<GatePod>> {
    let selector = format!(
        "app.kubernetes.io/name={},app.kubernetes.io/instance={api}",
        Part::Gate.program()
    );
    let listed = pods.list(&ListParams::default().labels(&selector)).await?;
    Ok(listed.iter().filter_map(GatePod::of).collect())
}
