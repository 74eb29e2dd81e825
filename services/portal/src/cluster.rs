//! The portal's questions to the API server: ApiKeys of its namespace, one account at a time, and the plans
//! of its WaterDataApi.

mod barrier;
mod bounds;
mod failure;

use std::convert::Infallible;
use std::time::Duration;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::DeserializeGuard;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::time::sleep;
use tracing::warn;
use water_domain::{Limits, PlanName};
use water_keystore::Instance;
use water_resources::api_key::{ApiName, ApiRef};
use water_resources::water_data_api::{self, PlanSpec};
use water_resources::{ApiKey, WaterDataApi};
use water_runtime::Latch;
use water_runtime::telemetry::chain;

use crate::member::Member;
use crate::plans::{InstallationFacts, Plans};
pub use barrier::Barrier;
pub use failure::ClusterError;

/// Time between two reads of the plans; the operator takes as long to announce a change to the gates.
const PLANS_EVERY: Duration = Duration::from_secs(10);
/// Time between two reads before the first success, which the portal's readiness waits for.
const UNKNOWN_PLANS_EVERY: Duration = Duration::from_secs(1);
/// Field manager of the portal's writes.
pub const MANAGER: &str = "water-portal";
/// The label of keys that the portal has made; its value is [`MANAGER`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The annotation of keys that the portal has made: the person who asked for it.
pub const REQUESTED_BY: &str = "waterdata.dev/requested-by";

/// The API server as this portal sees it.
#[derive(Clone)]
pub struct Cluster {
    keys: Api<ApiKey>,
    /// A key that this version cannot read hides no other.
    listed: Api<DeserializeGuard<ApiKey>>,
    installations: Api<WaterDataApi>,
    place: ApiName,
}

impl Cluster {
    /// Uses this client of the API server. Asks nothing yet.
    pub fn new(client: Client, instance: &Instance) -> Self {
        let place = ApiName {
            namespace: instance.namespace().to_owned(),
            name: instance.name().to_owned(),
        };
        Self {
            keys: Api::namespaced(client.clone(), &place.namespace),
            listed: Api::namespaced(client.clone(), &place.namespace),
            installations: Api::namespaced(client, &place.namespace),
            place,
        }
    }

    /// The WaterDataApi, as a key names it.
    pub fn api_ref(&self) -> ApiRef {
        ApiRef {
            name: self.place.name.clone(),
            namespace: None,
        }
    }

    /// Lists the keys of the member's account, in no order. A quorum read: no state in it is older than the
    /// request.
    pub async fn keys(&self, member: &Member) -> Result<Vec<ApiKey>, ClusterError> {
        let account = member.account();
        let of_account = ListParams::default().fields(&format!("spec.accountId={account}"));
        let listed = self.listed.list(&of_account).await;
        let listed = listed.map_err(|error| ClusterError::new("list an account's keys", error))?;
        let readable = listed.items.into_iter().filter_map(|key| match key.0 {
            Ok(key) => Some(key),
            Err(invalid) => {
                let name = invalid.metadata.name.unwrap_or_default();
                warn!(api_key = name, "an ApiKey cannot be read and is not shown");
                None
            }
        });
        Ok(readable.filter(|key| self.is_of(member, key)).collect())
    }

    /// Returns a key of the member's account; `None` for every other, and for a text that is no name.
    pub async fn key(&self, member: &Member, name: &str) -> Result<Option<ApiKey>, ClusterError> {
        if !is_name(name) {
            return Ok(None);
        }
        let found = self.keys.get_opt(name).await;
        let found = found.map_err(|error| ClusterError::new("read a key", error))?;
        Ok(found.filter(|key| self.is_of(member, key)))
    }

    /// Creates a key, which names the member's account.
    pub async fn create(&self, key: &ApiKey) -> Result<ApiKey, ClusterError> {
        let params = PostParams {
            field_manager: Some(MANAGER.into()),
            ..PostParams::default()
        };
        let created = self.keys.create(&params, key).await;
        created.map_err(|error| ClusterError::new("create a key", error))
    }

    /// Changes the spec of a key in the version that was read.
    pub async fn change(&self, key: &ApiKey, spec: Value) -> Result<ApiKey, ClusterError> {
        let patch = serde_json::json!({
            "metadata": { "uid": key.uid(), "resourceVersion": key.resource_version() },
            "spec": spec,
        });
        let params = PatchParams {
            field_manager: Some(MANAGER.into()),
            ..PatchParams::default()
        };
        let name = key.name_any();
        let changed = self.keys.patch(&name, &params, &Patch::Merge(patch)).await;
        changed.map_err(|error| ClusterError::new("change a key", error))
    }

    /// Deletes exactly this key, not one that has its name by then.
    pub async fn delete(&self, key: &ApiKey) -> Result<(), ClusterError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: key.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let deleted = self.keys.delete(&key.name_any(), &params).await;
        deleted
            .map(drop)
            .map_err(|error| ClusterError::new("delete a key", error))
    }

    /// Reads the WaterDataApi.
    pub async fn installation(&self) -> Result<InstallationFacts, ClusterError> {
        let found = self.installations.get(&self.place.name).await;
        let found = found.map_err(|error| ClusterError::new("read the WaterDataApi", error))?;
        Ok(InstallationFacts {
            plans: found.spec.plans.iter().map(plan).collect(),
            keys_elsewhere: found.spec.api_keys.allowed_namespaces.from
                != water_data_api::From::Same,
        })
    }

    /// Takes what the WaterDataApi allows now; what was read before stays where it cannot be read.
    pub async fn read_plans(&self, plans: &Plans) -> Result<(), ClusterError> {
        plans.set(self.installation().await?);
        Ok(())
    }

    /// Follows what the WaterDataApi allows for as long as it is polled, and sets `known` at the first
    /// reading. The last reading stays while the API server is away.
    pub async fn follow_plans(&self, plans: &Plans, known: Latch) -> Infallible {
        let mut pause = UNKNOWN_PLANS_EVERY;
        let mut said = None;
        loop {
            match self.read_plans(plans).await {
                Ok(()) => {
                    known.set();
                    pause = PLANS_EVERY;
                    said = None;
                }
                Err(error) => {
                    let error = chain(&error).to_string();
                    // Logged when it changes, not each time.
                    if said.as_ref() != Some(&error) {
                        warn!(error, "the WaterDataApi could not be read");
                    }
                    said = Some(error);
                }
            }
            sleep(pause).await;
        }
    }

    /// Whether the key is one of the member's account for this WaterDataApi, whatever the API server
    /// answers.
    fn is_of(&self, member: &Member, key: &ApiKey) -> bool {
        let is_here = match (key.issued_at(), &key.spec.api_ref) {
            (Some(issued), _) => issued == self.place,
            (None, Some(named)) => named.name == self.place.name,
            (None, None) => true,
        };
        is_here && key.spec.account_id == *member.account()
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Cluster")
    }
}

/// Checks that the API server takes the text for a name: of an ApiKey, at most 52 characters.
fn is_name(text: &str) -> bool {
    let clean = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 52
        && bytes.iter().copied().all(clean)
        && edge(bytes.first())
        && edge(bytes.last())
}

fn plan(spec: &PlanSpec) -> (PlanName, Option<Limits>) {
    let limit = |limit: Option<u32>| limit.and_then(|limit| limit.try_into().ok());
    let limits = limit(spec.requests_per_minute).zip(limit(spec.requests_per_day));
    let limits = limits.map(|(requests_per_minute, requests_per_day)| Limits {
        requests_per_minute,
        requests_per_day,
    });
    (spec.name.clone(), limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_never_sent_to_the_api_server() {
        for good in ["acme-0a1b2c3d4e", "a", "a.b", &"x".repeat(52)] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "",
            "A",
            "-a",
            "a-",
            "a/b",
            "a%2fb",
            "..",
            "a b",
            "é",
            &"x".repeat(53),
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
