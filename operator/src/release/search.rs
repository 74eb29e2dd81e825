//! Search for the directory that holds keys of an ApiKey whose status names no WaterDataApi, or one that holds nothing
//! of it: others than the operator may write a status.

use std::collections::HashMap;

use futures::{StreamExt, stream};
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use water_keystore::{Directory, Origin};
use water_resources::WaterDataApi;
use water_resources::api_key::ApiName;

use super::directory::{gates, open};
use super::finalized::FinalizedKey;
use super::{AT_ONCE, asking};
use crate::caches::Installation;
use crate::client::each_stored;
use crate::config::Scope;
use crate::keys::may_hold;

/// A WaterDataApi as it is stored, with its key directory.
struct Candidate {
    name: ApiName,
    api: Option<Installation>,
    /// Directory, or the reason for which it cannot be read.
    directory: Result<Directory, String>,
}

/// Writes into each ApiKey the WaterDataApi whose directory holds it, among all, or those of one namespace, or the
/// reason for which that is not known.
pub async fn find_holders(
    client: &Client,
    namespace: Option<&str>,
    finalized: &mut [FinalizedKey],
) -> anyhow::Result<()> {
    if finalized.is_empty() {
        return Ok(());
    }
    let stored = each_stored::<WaterDataApi, _>(client, namespace, Some).await;
    let stored = stored.map_err(asking)?;
    let mut candidates = HashMap::new();
    for api in &stored {
        let candidate = Candidate::of(client, api).await;
        candidates.insert(candidate.name.clone(), candidate);
    }
    let scope = match namespace {
        Some(_) => Scope::Namespaced,
        None => Scope::Cluster,
    };
    let found = stream::iter(finalized.iter())
        .map(|key| holder(client, key, &candidates, scope))
        .buffered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    for (key, found) in finalized.iter_mut().zip(found) {
        match found? {
            Ok(Some(holder)) => key.api = Some(holder),
            Ok(None) => {}
            Err(unknown) => key.unknown = Some(unknown),
        }
    }
    Ok(())
}

/// WaterDataApi whose directory holds keys of this ApiKey though its status does not name it. The inner error: one
/// cannot be read which may hold some, and its gates accept them.
async fn holder(
    client: &Client,
    key: &FinalizedKey,
    candidates: &HashMap<ApiName, Candidate>,
    scope: Scope,
) -> anyhow::Result<Result<Option<ApiName>, String>> {
    // What cannot be read now is reported where the keys are taken out of it.
    if let Some(named) = key.api.as_ref().and_then(|named| candidates.get(named))
        && named.holds(key).await.unwrap_or(true)
    {
        return Ok(Ok(None));
    }
    let others = || {
        let others = candidates.values();
        others.filter(|other| Some(&other.name) != key.api.as_ref())
    };
    let mut silent = Vec::new();
    for other in others() {
        match other.holds(key).await {
            Ok(true) => return Ok(Ok(Some(other.name.clone()))),
            Ok(false) => {}
            Err(error) => silent.push((other, error)),
        }
    }
    for (other, error) in silent {
        let may_hold = key.had_a_key && other.may_hold(key, scope);
        if may_hold && !gates(client, &other.name).await?.is_empty() {
            let ApiName { namespace, name } = &other.name;
            return Ok(Err(format!(
                "the WaterDataApi {namespace}/{name} may hold it: {error}"
            )));
        }
    }
    Ok(Ok(None))
}

impl Candidate {
    /// Opens the directory, and asks it once: one that does not answer is not asked for each ApiKey.
    async fn of(client: &Client, api: &DynamicObject) -> Self {
        let opened = async {
            let (_, directory) = open(client, api).await?;
            directory.observe().await?;
            anyhow::Ok(directory)
        };
        let stored = serde_json::to_value(api).ok();
        Self {
            name: ApiName {
                namespace: api.namespace().unwrap_or_default(),
                name: api.name_any(),
            },
            api: stored.and_then(|stored| serde_json::from_value(stored).ok()),
            directory: opened.await.map_err(|error| error.to_string()),
        }
    }

    fn may_hold(&self, key: &FinalizedKey, scope: Scope) -> bool {
        let namespace = key.meta.namespace.as_deref().unwrap_or_default();
        let api = self.api.as_ref();
        api.is_none_or(|api| may_hold(api, namespace, None, scope))
    }

    /// Whether the directory holds keys of this ApiKey, or has held some. The absence in one that is not whole proves
    /// nothing.
    async fn holds(&self, key: &FinalizedKey) -> Result<bool, String> {
        let directory = self.directory.as_ref().map_err(String::clone)?;
        let uid = key.meta.uid.as_deref().unwrap_or_default();
        let snapshot = directory.owner_snapshot(uid, &Origin::Generated, &[]).await;
        let snapshot = snapshot.map_err(|error| error.to_string())?;
        match snapshot.is_known() {
            false if snapshot.position.is_none() => Err("its key directory is not complete".into()),
            is_known => Ok(is_known),
        }
    }
}
