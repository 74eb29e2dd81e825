//! Check that the API server holds the portal to its bounds. Without the chart's admission policy the
//! portal's Role would let it generate keys, whose texts are in Secrets, and it must not serve.

use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use water_resources::ApiKey;

use super::{Cluster, ClusterError, MANAGED_BY, MANAGER, REQUESTED_BY};

impl Cluster {
    /// Tries, as a dry run, to create a key that the operator would generate; true if an admission
    /// policy refuses that. Nothing is written.
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
            Err(kube::Error::Api(status))
                if status.is_forbidden()
                    && status.message.contains("ValidatingAdmissionPolicy") =>
            {
                Ok(true)
            }
            Err(error) => Err(ClusterError::new("try the bounds of its rights", error)),
        }
    }

    /// Returns a key as the portal makes them, but for its material.
    fn generated(&self, resource: &ApiResource) -> DynamicObject {
        let spec = json!({
            "accountId": "none",
            "plan": "None",
            "apiRef": { "name": self.place.name },
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
