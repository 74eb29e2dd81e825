//! Takes the keys of ApiKeys that are released out of a key directory, and waits for its gates: with tombstones for
//! those that are being deleted, without for the others, so that an operator that runs again publishes them.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DynamicObject;
use kube::{Api, Client, ResourceExt};
use tokio::time::{Instant, sleep};
use tracing::info;
use water_keystore::connection::Purpose;
use water_keystore::{Contents, Directory, Instance, Origin, Position, WriteError, Writer};
use water_resources::WaterDataApi;
use water_resources::api_key::ApiName;

use super::finalized::FinalizedKey;
use super::{AT_ONCE, asking};
use crate::client::stored;
use crate::directories::gates::{GatePod, Gates, MissingLeases, missed, unlisted, unproven};
use crate::gate_pods;
use crate::installation::secrets::{self, Redis};
use crate::installation::store_record::StoreRecord;
use crate::keys::changes;
use crate::keys::record;

/// Interval between two checks of the gates.
const LOOK: Duration = Duration::from_millis(200);
/// Time in which a silent gate has stopped serving, with the grace that the operator gives it.
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
    let (redis, directory) = open(client, &found).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get(&api.namespace).await.map_err(asking)?;
    let owner = namespace.uid().unwrap_or_default();
    let uid = found.uid().unwrap_or_default();
    // A directory that was left for another Redis and returned to has missed changes.
    let mut record = StoreRecord::from_object(&found);
    let is_behind = record.names.is_behind(&redis.store);
    if let Some(names) = record.names.before(&redis.store) {
        record.write(names, client).await.map_err(asking)?;
    }
    let (writer, _) = directory.claim(&owner, &uid, None).await?;
    if is_behind || directory.observe().await?.needs_rebuild() {
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

/// Opens the key directory of a WaterDataApi as it is stored: one that cannot be decoded names its Redis, too.
pub async fn open(client: &Client, api: &DynamicObject) -> anyhow::Result<(Redis, Directory)> {
    let secret = api.data["spec"]["redis"]["secretRef"]["name"].as_str();
    let secret = secret
        .context("its spec.redis.secretRef.name is not a text: name the Secret of its Redis")?;
    let redis = secrets::redis(&api.metadata, secret, client).await?;
    let connection = redis.settings.connect(Purpose::Directory);
    let instance = Instance::new(&api.namespace().unwrap_or_default(), &api.name_any())?;
    Ok((redis, Directory::new(connection, instance)))
}

/// Declares that the directory holds nothing of the ApiKey from here on.
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
        // An operator has revoked it permanently.
        return Ok(snapshot.position.ok_or(WriteError::Unverified)?);
    }
    let mut declaration = snapshot.declaration(owner, origin, BTreeMap::new());
    declaration.is_last = key.is_deleting;
    if key.is_deleting && key.origin.is_some() {
        declaration.revoked = &std::mem::take(&mut declaration.withdrawn) | &key.hashes;
    }
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
        let listed = pods(client, api, redis.gate_store.as_deref()).await?;
        let pods = match listed {
            Some(pods) if redis.gate_store.as_ref() != Some(&redis.store) => {
                unproven(pods, &leases)
            }
            Some(pods) => pods,
            None => unlisted(&[], &HashSet::new(), &leases, false),
        };
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

/// The names of its gates' pods that have not ended, if they can be listed.
pub async fn gates(client: &Client, api: &ApiName) -> anyhow::Result<Vec<String>> {
    let pods = pods(client, api, None).await?.unwrap_or_default();
    Ok(pods.into_iter().map(|pod| pod.name).collect())
}

/// Pods of its gates; `None`: they cannot be listed any more.
async fn pods(
    client: &Client,
    api: &ApiName,
    store: Option<&str>,
) -> anyhow::Result<Option<Vec<GatePod>>> {
    let listed = gate_pods::list_gates(client, api).await.map_err(asking)?;
    Ok(listed.map(|pods| {
        let pods = pods.iter().filter_map(|pod| GatePod::read(pod, store));
        pods.collect()
    }))
}
