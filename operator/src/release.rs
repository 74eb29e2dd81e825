//! `water-operator release --all`: lets ApiKeys go when no operator runs that could revoke them.
//!
//! Their keys are taken out of the key directories first, and no finalizer goes before every gate has
//! acknowledged that. ApiKeys are read as they are stored and what fails is counted, so that neither one
//! that cannot be decoded nor a conflict keeps the others. It holds the Lease meanwhile: an operator that
//! runs is not worked against.

mod directory;
pub mod ending;
mod finalized;
mod freeing;

use std::time::Duration;

use futures::future::{FutureExt, pending, select_all};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::time::timeout;

use crate::lease::{self, Election, Leadership};
use directory::ClearError;
use finalized::{by_api, finalized};
pub use freeing::Released;
use freeing::free;

/// Twice as long as it takes a Lease that nobody renews to become free.
const LEADING_WITHIN: Duration = Duration::from_secs(2 * lease::DURATION.as_secs());

/// Why nothing more was released.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The API server refused or was away.
    #[error("asking the API server: {0}")]
    Kube(#[from] kube::Error),
    /// An operator runs.
    #[error(
        "an operator leads in namespace {0}: stop it first, or delete the ApiKeys and let it revoke them"
    )]
    Leading(String),
    /// Keys may still be accepted, so that nothing was freed.
    #[error(
        "the WaterDataApi {namespace}/{name}: {source}; nothing was freed: run this where its Redis can be \
         reached, or delete the WaterDataApi and let its gates end"
    )]
    Accepted {
        /// The WaterDataApi's namespace.
        namespace: String,
        /// The WaterDataApi's name.
        name: String,
        /// Why.
        source: ClearError,
    },
    /// An operator has started meanwhile.
    #[error("an operator has taken the Lease meanwhile: stop it, and run this again")]
    Overtaken,
}

/// Frees every ApiKey, or those of one namespace. `identity` is this run's, in the Lease of each
/// operator that may look after them.
pub async fn all(
    client: &Client,
    namespace: Option<&str>,
    identity: &str,
) -> Result<Released, ReleaseError> {
    let mut leaderships = Vec::new();
    let released = lead(client, namespace, identity, &mut leaderships).await;
    for leadership in leaderships {
        leadership.release().await;
    }
    released
}

/// The same, in the place of every operator: the Leases are won one after another, and those that are
/// won already are renewed meanwhile. They are the caller's to give back.
async fn lead(
    client: &Client,
    namespace: Option<&str>,
    identity: &str,
    leaderships: &mut Vec<Leadership>,
) -> Result<Released, ReleaseError> {
    for led in led_namespaces(client, namespace).await? {
        let election = Election::new(client.clone(), &led, identity.into());
        let won = tokio::select! {
            won = timeout(LEADING_WITHIN, election.win()) => won,
            () = any_lost(leaderships) => return Err(ReleaseError::Overtaken),
        };
        leaderships.push(won.map_err(|_| ReleaseError::Leading(led))?);
    }
    tokio::select! {
        released = release(client, namespace) => released,
        () = any_lost(leaderships) => Err(ReleaseError::Overtaken),
    }
}

/// Where operators have led. A namespace without a Lease never had one, or is terminating and takes none.
async fn led_namespaces(client: &Client, namespace: Option<&str>) -> kube::Result<Vec<String>> {
    let leases: Api<Lease> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let named = ListParams::default().fields(&format!("metadata.name={}", lease::NAME));
    let leases = leases.list_metadata(&named).await?;
    Ok(leases.iter().filter_map(ResourceExt::namespace).collect())
}

async fn any_lost(leaderships: &mut [Leadership]) {
    if leaderships.is_empty() {
        return pending().await;
    }
    select_all(
        leaderships
            .iter_mut()
            .map(|leadership| leadership.lost().boxed()),
    )
    .await;
}

async fn release(client: &Client, namespace: Option<&str>) -> Result<Released, ReleaseError> {
    let finalized = finalized(client, namespace).await?;
    for (api, keys) in by_api(&finalized) {
        let cleared = directory::clear(client, api, &keys, namespace.is_none()).await;
        cleared.map_err(|source| ReleaseError::Accepted {
            namespace: api.namespace.clone(),
            name: api.name.clone(),
            source,
        })?;
    }
    Ok(free(client, finalized.iter()).await)
}
