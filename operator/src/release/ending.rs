//! Release of ApiKeys by an operator that was asked to stop while its own namespace is being deleted: it revokes the
//! keys of the ApiKeys there and removes their finalizers.
//!
//! From Kubernetes 1.33 on, a namespace's pods have ended before anything else in it is deleted (KEP-5080). Until then
//! the operator has its ServiceAccount, its rights and its Lease, and afterwards they are gone. Every operator of the
//! namespace is asked to stop at the same time; the Lease decides which one acts. The others wait, and take over if it
//! dies.

use std::time::Duration;

use anyhow::anyhow;
use kube::Client;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};
use water_resources::api_key::ApiName;

use super::finalized::{FinalizedKey, by_api, finalized};
use super::{directory, free, search};
use crate::client;
use crate::lease::Election;

/// Time limit of questions to the API server. A pod of an ordinary rollout ends at most this much later because the API
/// server does not answer.
const ASK_WITHIN: Duration = Duration::from_secs(5);
/// Longest time that a stopping operator takes for this. The chart gives its pod ten seconds more. Without Redis the
/// gates have to end first, which are killed after 35.
pub const WITHIN: Duration = Duration::from_secs(50);
/// Longest try to take keys out of a directory. After it the gates may have ended.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Pause between two tries.
const AGAIN: Duration = Duration::from_secs(1);

/// Returns at once unless the namespace, which is the operator's own, is being deleted. Otherwise
/// returns when no ApiKey there has the finalizer, or in time before the pod is killed. Leads
/// meanwhile, so this candidate must not lead already.
pub async fn let_go(client: &Client, namespace: &str, election: &Election) {
    match timeout(ASK_WITHIN, client::is_terminating(client, namespace)).await {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => return,
        Ok(Err(error)) => {
            return warn!(error = %error, "cannot ask whether the namespace is being deleted");
        }
        Err(_) => return warn!("the API server does not answer about the namespace"),
    }
    info!(
        namespace,
        "the namespace is being deleted: its ApiKeys are revoked and let go before this pod ends"
    );
    match timeout(WITHIN, lead(client, namespace, election)).await {
        Ok(()) => info!(namespace, "no ApiKey holds the namespace any more"),
        Err(_) => warn!(
            namespace,
            "ApiKeys are left, and the namespace waits for them: run `water-operator release --all`"
        ),
    }
}

async fn lead(client: &Client, namespace: &str, election: &Election) {
    loop {
        let mut leadership = election.win().await;
        tokio::select! {
            biased;
            () = leadership.lost() => {}
            () = until_none_is_held(client, namespace) => return leadership.release().await,
        }
    }
}

async fn until_none_is_held(client: &Client, namespace: &str) {
    loop {
        // A finalizer that was on its way when this process stopped leading shows in the next list.
        let is_done = match finalized(client, Some(namespace)).await {
            Ok(finalized) if finalized.is_empty() => return,
            Ok(finalized) => revoke_and_free(client, namespace, finalized).await,
            Err(error) => {
                warn!(error = %error, "cannot list the ApiKeys");
                false
            }
        };
        if !is_done {
            sleep(AGAIN).await;
        }
    }
}

/// Revokes and frees what it can, and returns whether that was everything.
async fn revoke_and_free(client: &Client, namespace: &str, finalized: Vec<FinalizedKey>) -> bool {
    // They are not marked as deleted before the pods have ended, and nothing can save them.
    let deleted = |key| FinalizedKey {
        is_deleting: true,
        ..key
    };
    let mut finalized: Vec<FinalizedKey> = finalized.into_iter().map(deleted).collect();
    let found = search::find_holders(client, Some(namespace), &mut finalized);
    let found = timeout(ATTEMPT, found).await;
    if let Err(error) = found.unwrap_or_else(|_| Err(anyhow!("this took longer than {ATTEMPT:?}")))
    {
        warn!(error = %error, "the key directories of this namespace cannot be searched");
        return false;
    }
    let (unknown, finalized): (Vec<_>, Vec<_>) =
        finalized.into_iter().partition(|key| key.unknown.is_some());
    for key in &unknown {
        warn!(
            key = key.path(),
            error = key.unknown,
            "a key directory that may hold keys of this ApiKey cannot be read: it is not let go yet"
        );
    }
    let mut is_everything = unknown.is_empty();
    let mut freeable: Vec<&FinalizedKey> =
        finalized.iter().filter(|key| key.api.is_none()).collect();
    for (api, keys) in by_api(&finalized) {
        match refused(client, namespace, api, &keys).await {
            Ok(()) => freeable.extend(keys),
            Err(error) => {
                is_everything = false;
                warn!(
                    namespace = api.namespace, name = api.name, error = %error,
                    "gates of this WaterDataApi may accept keys, whose ApiKeys are not let go yet"
                );
            }
        }
    }
    let released = free(client, freeable.into_iter()).await;
    for kept in &released.kept {
        warn!(error = kept, "an ApiKey could not be let go");
    }
    if released.freed > 0 {
        info!(
            count = released.freed,
            "ApiKeys revoked and let go, as their namespace is deleted"
        );
    }
    is_everything && released.kept.is_empty()
}

async fn refused(
    client: &Client,
    namespace: &str,
    api: &ApiName,
    keys: &[&FinalizedKey],
) -> anyhow::Result<()> {
    let cleared = timeout(ATTEMPT, directory::clear(client, api, keys, false)).await;
    let cleared = cleared.unwrap_or_else(|_| Err(anyhow!("this took longer than {ATTEMPT:?}")));
    let Err(error) = cleared else {
        return Ok(());
    };
    // Nothing can be created where a namespace is being deleted: a gate that has ended was the last
    // one, and another namespace of that name begins with a rebuild.
    if api.namespace == namespace && directory::gates(client, api).await?.is_empty() {
        warn!(
            name = api.name, error = %error,
            "keys stay in the key directory of a WaterDataApi whose gates have all ended"
        );
        return Ok(());
    }
    Err(error)
}
