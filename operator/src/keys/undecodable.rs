//! An ApiKey that the schema admits and that cannot be read, such as one with a comma in a time:
//! it stalls, and nothing else does.

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::{DeserializeGuard, error_boundary::InvalidObject};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;
use water_domain::Timestamp;

use crate::conditions::{Aspect, Outcome, RECORD_MANAGER, Reason, find, holds, stated};
use crate::context::Context;
use crate::crd::{ApiKey, Condition};
use crate::events::Happening;

/// Says in the status and by an event why the object cannot be read; once for each generation.
pub async fn tell(
    key: &DeserializeGuard<ApiKey>,
    invalid: &InvalidObject,
    context: &Context,
    now: Timestamp,
) -> kube::Result<()> {
    let (name, namespace) = (key.name_any(), key.namespace().unwrap_or_default());
    let kind = ApiResource::erase::<ApiKey>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), &namespace, &kind);
    let live = api.get(&name).await?;
    let told: Vec<Condition> =
        serde_json::from_value(live.data["status"]["conditions"].clone()).unwrap_or_default();
    let generation = key.meta().generation.unwrap_or_default();
    let is_told = holds(&told, Aspect::Stalled)
        && find(&told, Aspect::Stalled).is_some_and(|stalled| {
            stalled.reason == Reason::Undecodable.as_str()
                && stalled.observed_generation == generation
        });
    if is_told {
        return Ok(());
    }
    let message = format!("the ApiKey cannot be read: {}", invalid.error);
    let outcome = Outcome::Stuck(Reason::Undecodable, message.clone());
    let conditions = stated(&told, outcome.findings().to_vec(), generation, now);
    let patch = json!({ "status": { "observedGeneration": generation, "conditions": conditions } });
    let params = PatchParams {
        field_manager: Some(RECORD_MANAGER.into()),
        ..PatchParams::default()
    };
    api.patch_status(&name, &params, &Patch::Merge(patch))
        .await?;
    let happened = Happening::warning(Reason::Undecodable.as_str(), message);
    context
        .events
        .report(&key.object_ref(&()), &[happened])
        .await;
    Ok(())
}
