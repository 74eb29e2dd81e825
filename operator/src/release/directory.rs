//! Takes the keys of ApiKeys that are let go out of a key directory, and waits for its gates: with
//! tombstones for those that are being deleted, without for the others, so that an operator that runs
//! again publishes them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use tokio::time::{Instant, sleep};
use tracing::info;
use water_keystore::connection::Purpose;
use water_keystore::{
    Contents, Declaration, Directory, Instance, Origin, Position, WriteError, Writer,
};
use water_resources::WaterDataApi;
use water_resources::api_key::ApiName;

use super::finalized::FinalizedKey;
use super::{AT_ONCE, asking};
use crate::client::stored;
use crate::directories::gates::{GatePod, Gates, MissingLeases, missed, unproven};
use crate::gate_pods;
use crate::installation::render::Part;
use crate::installation::secrets::{self, Redis};
use crate::keys::changes;
use crate::keys::record;

/// Between two looks at the gates.
const LOOK: Duration = Duration::from_millis(200);
/// A gate that is silent has stopped serving by then, with the grace that the operator gives it.
const WITHIN: Duration = Duration::from_secs(150);

/// Returns once no gate of the WaterDataApi accepts a key of these. `is_all`: no other ApiKey has keys
/// there.
pub async fn clear(
    client: &Client,
    api: &ApiName,
    keys: &[&FinalizedKey],
    is_all: bool,
) -> anyhow::Result<()> {
    let apis = stored::<WaterDataApi>(client, &api.namespace);
    let Some(found) = apis.get_opt(&api.name).await.map_err(asking)? else {
        // Another one of that name begins with a rebuild from the cluster.
        return match gates(client, api).await?.as_slice() {
            [] => Ok(()),
            names => bail!(
                "it is gone and gates of it still run, which accept its keys: delete {}",
                names.join(", ")
            ),
        };
    };
    // As it is stored: one that cannot be decoded names its Redis, too.
    let secret = found.data["spec"]["redis"]["secretRef"]["name"].as_str();
    let secret = secret
        .context("its spec.redis.secretRef.name is not a text: name the Secret of its Redis")?;
    let redis = secrets::redis(&found.metadata, secret, client).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get(&api.namespace).await.map_err(asking)?;
    let connection = redis.settings.connect(Purpose::Directory);
    let instance = Instance::new(&api.namespace, &api.name)?;
    let directory = Directory::new(connection, instance);
    let owner = namespace.uid().unwrap_or_default();
    let uid = found.uid().unwrap_or_default();
    let (writer, _) = directory.claim(&owner, &uid, None).await?;
    if directory.observe().await?.needs_rebuild() {
        if !is_all {
            // Keys of other namespaces would be lost.
            bail!(
                "the key directory is not complete: let an operator rebuild it, or release all namespaces"
            );
        }
        let plans = directory.plans().await?;
        let entries = Vec::new();
        writer.rebuild(|| Contents { plans, entries }).await?;
    }
    let written = stream::iter(keys)
        .map(|key| declare(&directory, &writer, key))
        .buffer_unordered(AT_ONCE);
    let written: Vec<Position> = written.try_collect().await?;
    match written.into_iter().max_by_key(|applied| applied.seq) {
        Some(last) => acknowledged(client, api, &redis, &directory, last).await,
        None => Ok(()),
    }
}

/// From here on the directory holds nothing of the ApiKey.
async fn declare(
    directory: &Directory,
    writer: &Writer,
    key: &FinalizedKey,
) -> anyhow::Result<Position> {
    let owner = record::owner(&key.meta);
    let hashes: Vec<_> = key.hashes.iter().copied().collect();
    let origin = key.origin.clone().unwrap_or(Origin::Generated);
    let snapshot = directory
        .owner_snapshot(&owner.uid, &origin, &hashes)
        .await?;
    if snapshot.is_gone {
        // An operator has revoked it for good.
        return Ok(snapshot.position.ok_or(WriteError::Unverified)?);
    }
    let held: BTreeSet<_> = snapshot.records.keys().copied().collect();
    let is_revoked = key.is_deleting && key.origin.is_some();
    let (withdrawn, revoked) = if is_revoked {
        (BTreeSet::new(), held.union(&key.hashes).copied().collect())
    } else {
        (held, BTreeSet::new())
    };
    let declaration = Declaration {
        owner,
        number: snapshot.number,
        records: BTreeMap::new(),
        withdrawn,
        revoked,
        reinstated: BTreeMap::new(),
        origin,
        is_last: key.is_deleting,
    };
    let declared = writer.declare(&declaration).await?;
    changes::told(&snapshot.records, &declaration, &declared.refused);
    Ok(declared.applied)
}

/// Waits until no gate acts on what was there before.
async fn acknowledged(
    client: &Client,
    api: &ApiName,
    redis: &Redis,
    directory: &Directory,
    change: Position,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let (mut known, mut told) = (MissingLeases::default(), String::new());
    loop {
        let leases = directory.leases().await?;
        let mut pods = pods(client, api, redis.gate_store.as_deref()).await?;
        if redis.gate_store.as_ref() != Some(&redis.store) {
            pods = unproven(pods, &leases);
        }
        let now = Instant::now();
        known = missed(&known, &leases, &pods, now);
        let missed = known.clone();
        let gates = Gates {
            leases,
            pods,
            missed,
        };
        let awaited = gates.awaited(&change, now);
        let names = awaited.pods.into_iter().collect::<Vec<_>>().join(", ");
        if names.is_empty() {
            return Ok(());
        }
        if begin.elapsed() >= WITHIN {
            bail!("gates that have not acknowledged: {names}");
        }
        if names != told {
            info!(gates = names, "waiting for gates to refuse the keys");
            told = names;
        }
        sleep(LOOK).await;
    }
}

/// The names of its gates' pods that have not ended.
pub async fn gates(client: &Client, api: &ApiName) -> anyhow::Result<Vec<String>> {
    let pods = pods(client, api, None).await?;
    Ok(pods.into_iter().map(|pod| pod.name).collect())
}

async fn pods(client: &Client, api: &ApiName, store: Option<&str>) -> anyhow::Result<Vec<GatePod>> {
    let pods = gate_pods::list(client, api, Part::Gate)
        .await
        .map_err(asking)?;
    let pods = pods.iter().filter_map(|pod| GatePod::of(pod, store));
    Ok(pods.collect())
}
