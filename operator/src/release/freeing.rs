//! Takes the finalizer off ApiKeys whose keys nobody accepts any more.

use futures::{StreamExt, stream};
use kube::api::ObjectMeta;
use kube::{Api, Client};
use water_resources::ApiKey;

use super::finalized::FinalizedKey;
use crate::keys::finalizer;

const AT_ONCE: usize = 16;
/// Tries while somebody else writes the same ApiKey.
const TRIES: usize = 5;

/// What became of the ApiKeys that had the finalizer.
#[derive(Debug, Default)]
pub struct Released {
    /// How many are free.
    pub freed: usize,
    /// Which are not, each with the reason.
    pub kept: Vec<String>,
}

/// Frees the ApiKeys; one that cannot be freed stops no other.
pub async fn free<'a>(client: &Client, keys: impl Iterator<Item = &'a FinalizedKey>) -> Released {
    let outcomes = stream::iter(keys)
        .map(async |key| {
            let freed = free_one(client, key.meta.clone()).await;
            freed.map_err(|error| format!("{}: {error}", key.path()))
        })
        .buffer_unordered(AT_ONCE);
    let mut released = Released::default();
    for outcome in outcomes.collect::<Vec<_>>().await {
        match outcome {
            Ok(()) => released.freed += 1,
            Err(kept) => released.kept.push(kept),
        }
    }
    released
}

async fn free_one(client: &Client, mut key: ObjectMeta) -> kube::Result<()> {
    let keys: Api<ApiKey> =
        Api::namespaced(client.clone(), key.namespace.as_deref().unwrap_or_default());
    let mut tries = 1;
    loop {
        match finalizer::remove(&key, &keys).await {
            Err(kube::Error::Api(status)) if status.is_conflict() && tries < TRIES => tries += 1,
            freed => return freed,
        }
        match keys
            .get_metadata_opt(&key.name.clone().unwrap_or_default())
            .await?
        {
            Some(live) if finalizer::is_on(&live.metadata) => key = live.metadata,
            _ => return Ok(()),
        }
    }
}
