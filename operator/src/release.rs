//! `water-operator release --all`: releases ApiKeys when no operator runs that could revoke them.
//!
//! Their keys are taken out of the key directories first, and no finalizer is removed before every gate has
//! acknowledged that. ApiKeys are read as they are stored and what fails is counted, so that neither one that cannot be
//! decoded nor a conflict keeps the others. It holds the Lease meanwhile: an operator that runs is not worked against.

mod directory;
pub mod ending;
mod finalized;
mod search;

use std::time::Duration;

use anyhow::{anyhow, bail};
use futures::future::pending;
use futures::{StreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, ObjectMeta};
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use water_resources::ApiKey;
use water_resources::api_key::{ApiName, FINALIZER};

use crate::client::words;
use crate::keys::finalizer;
use crate::lease::{self, Election, Leadership};
use finalized::{FinalizedKey, by_api, finalized};

/// Twice as long as it takes a Lease that nobody renews to become free.
const LEADING_WITHIN: Duration = Duration::from_secs(2 * lease::DURATION.as_secs());
/// ApiKeys, and declarations to a key directory, that are under way at a time.
const AT_ONCE: usize = 16;
/// Tries while somebody else writes the same ApiKey.
const TRIES: usize = 5;
const OVERTAKEN: &str = "an operator has taken the Lease meanwhile: stop it, and run this again";

/// Result for the ApiKeys that had the finalizer.
#[derive(Debug, Default)]
pub struct ReleaseReport {
    /// Number of ApiKeys that are free.
    pub freed: usize,
    /// ApiKeys that are not free, each with the reason.
    pub kept: Vec<String>,
}

/// Frees every ApiKey, or those of one namespace. `identity` is this run's, in the Lease of each
/// operator that may look after them.
pub async fn all(
    client: &Client,
    namespace: Option<&str>,
    identity: &str,
) -> anyhow::Result<ReleaseReport> {
    let mut won = WonLeases::default();
    let released = lead(client, namespace, identity, &mut won).await;
    won.give_back().await;
    released
}

/// Leases that were won, each renewed by a separate task.
#[derive(Default)]
struct WonLeases {
    renewing: JoinSet<()>,
    ends: watch::Sender<()>,
}

impl WonLeases {
    fn add(&mut self, mut leadership: Leadership) {
        let mut ends = self.ends.subscribe();
        self.renewing.spawn(async move {
            tokio::select! {
                () = leadership.lost() => {}
                _ = ends.changed() => leadership.release().await,
            }
        });
    }

    /// Returns once one of them is lost.
    async fn any_lost(&mut self) {
        if self.renewing.join_next().await.is_none() {
            pending().await
        }
    }

    async fn give_back(mut self) {
        self.ends.send_replace(());
        while self.renewing.join_next().await.is_some() {}
    }
}

/// Wins the Lease of every operator, one after another, then frees the ApiKeys.
async fn lead(
    client: &Client,
    namespace: Option<&str>,
    identity: &str,
    leases: &mut WonLeases,
) -> anyhow::Result<ReleaseReport> {
    for led in led_namespaces(client, namespace).await? {
        let election = Election::new(client.clone(), &led, identity.into());
        let won = tokio::select! {
            won = timeout(LEADING_WITHIN, election.win()) => won,
            () = leases.any_lost() => bail!(OVERTAKEN),
        };
        let Ok(leadership) = won else {
            bail!(
                "an operator leads in namespace {led}: stop it first, or delete the ApiKeys and let it revoke them"
            );
        };
        leases.add(leadership);
    }
    tokio::select! {
        released = release(client, namespace) => released,
        () = leases.any_lost() => bail!(OVERTAKEN),
    }
}

/// Namespaces in which operators have led. A namespace without a Lease never had one, or is terminating and takes none.
async fn led_namespaces(client: &Client, namespace: Option<&str>) -> anyhow::Result<Vec<String>> {
    let leases: Api<Lease> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let named = ListParams::default().fields(&format!("metadata.name={}", lease::NAME));
    let leases = leases.list_metadata(&named).await.map_err(asking)?;
    Ok(leases.iter().filter_map(ResourceExt::namespace).collect())
}

async fn release(client: &Client, namespace: Option<&str>) -> anyhow::Result<ReleaseReport> {
    let mut finalized = finalized(client, namespace).await.map_err(asking)?;
    search::find_holders(client, namespace, &mut finalized).await?;
    let mut unknown = finalized
        .iter()
        .filter_map(|key| Some((key, key.unknown.as_ref()?)));
    if let Some((key, unknown)) = unknown.next() {
        bail!(
            "it is not known where the ApiKey {} has keys: {unknown}; nothing was freed: run this where its Redis can \
             be reached, or delete the WaterDataApi and let its gates end",
            key.path()
        );
    }
    for (api, keys) in by_api(&finalized) {
        let cleared = directory::clear(client, api, &keys, namespace.is_none()).await;
        if let Err(error) = cleared {
            let ApiName { namespace, name } = api;
            bail!(
                "the WaterDataApi {namespace}/{name}: {error}; nothing was freed: run this where its Redis can be \
                 reached, or delete the WaterDataApi and let its gates end"
            );
        }
    }
    Ok(free(client, finalized.iter()).await)
}

fn asking(error: kube::Error) -> anyhow::Error {
    anyhow!("asking the API server: {}", words(&error))
}

/// Takes the finalizer off ApiKeys whose keys nobody accepts any more; one that cannot be freed stops no other.
async fn free<'a>(client: &Client, keys: impl Iterator<Item = &'a FinalizedKey>) -> ReleaseReport {
    let outcomes = stream::iter(keys)
        .map(async |key| {
            let freed = free_one(client, key.meta.clone()).await;
            freed.map_err(|error| format!("{}: {error}", key.path()))
        })
        .buffer_unordered(AT_ONCE);
    let mut released = ReleaseReport::default();
    for outcome in outcomes.collect::<Vec<_>>().await {
        match outcome {
            Ok(()) => released.freed += 1,
            Err(kept) => released.kept.push(kept),
        }
    }
    released
}

async fn free_one(client: &Client, mut key: ObjectMeta) -> anyhow::Result<()> {
    let keys: Api<ApiKey> =
        Api::namespaced(client.clone(), key.namespace.as_deref().unwrap_or_default());
    let mut further = 1..TRIES;
    loop {
        match finalizer::remove(&key, &keys).await {
            Err(kube::Error::Api(status)) if status.is_conflict() && further.next().is_some() => {}
            Err(error) => return Err(asking(error)),
            Ok(true) => return Ok(()),
            Ok(false) => bail!(
                "a webhook puts its finalizer {} back: exempt ApiKeys from that webhook, and run this again",
                FINALIZER
            ),
        }
        let name = key.name.clone().unwrap_or_default();
        match keys.get_metadata_opt(&name).await.map_err(asking)? {
            Some(live) if finalizer::is_on(&live.metadata) => key = live.metadata,
            _ => return Ok(()),
        }
    }
}
