//! Check that the API server holds the portal to its bounds. Without the chart's admission policy the
//! portal's Role would let it generate keys, whose texts are in Secrets, and it must not serve.

use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::Status;
use kube::{Api, ResourceExt};
use serde_json::json;
use water_resources::ApiKey;

use super::{Barrier, Cluster, ClusterError, MANAGED_BY, MANAGER, REQUESTED_BY};
use crate::clock;

/// Sentence of the chart's policy about keys that the operator would generate.
const BOUND: &str = "the portal makes keys by their hash in spec.material.hash, and generates none";
/// Life of the key that is tried: other policies often ask for an end.
const LIFE: Duration = Duration::from_hours(24);

impl Cluster {
    /// Tries, as a dry run, to create a key that the operator would generate; true if the chart's admission
    /// policy refuses that. Another rule's refusal proves nothing, since the API server tells one of them only:
    /// it is the error. Nothing is written.
    pub async fn is_bounded(&self) -> Result<bool, ClusterError> {
        let params = PostParams {
            dry_run: true,
            field_manager: Some(MANAGER.into()),
        };
        let client = self.keys.clone().into_client();
        let resource = ApiResource::erase::<ApiKey>(&());
        let keys = Api::namespaced_with(client, &self.place.namespace, &resource);
        match keys.create(&params, &self.generated(&resource)).await {
            Ok(_) => Ok(false),
            Err(kube::Error::Api(status)) if is_bound(&status) => Ok(true),
            Err(error) => Err(ClusterError::new("try the bounds of its rights", error)),
        }
    }

    /// Returns a key as the portal makes them, but for its material: other policies should find no fault in it.
    fn generated(&self, resource: &ApiResource) -> DynamicObject {
        let spec = json!({
            "accountId": "none",
            "plan": "None",
            "apiRef": { "name": self.place.name },
            "description": "Bounds of the portal",
            "expirationTime": clock::now().plus(LIFE),
            "material": { "generated": {} },
        });
        let mut key =
            DynamicObject::new("water-portal-bounds", resource).data(json!({ "spec": spec }));
        key.labels_mut().insert(MANAGED_BY.into(), MANAGER.into());
        key.annotations_mut()
            .insert(REQUESTED_BY.into(), MANAGER.into());
        key
    }
}

/// Whether this is the refusal of the chart's policy, which is known by its sentence: installations name it in their own
/// ways.
fn is_bound(status: &Status) -> bool {
    let is_policy = matches!(Barrier::of(status), Some(Barrier::Policy(_)));
    is_policy && status.message.ends_with(BOUND)
}
