//! A WaterDataApi that the schema admits and that cannot be read: it stalls, and says so once. Its keys can
//! be restricted and revoked all the same.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{DeserializeGuard, error_boundary::InvalidObject};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;
use water_domain::Timestamp;
use water_resources::{Condition, WaterDataApi};

use super::{InstallationError, directory};
use crate::client::stored;
use crate::conditions::{Aspect, RECORD_MANAGER, Readiness, Reason, find, stated};
use crate::context::Context;
use crate::events::Transition;

/// Opens its key directory, and tells.
pub async fn pass(
    api: &DeserializeGuard<WaterDataApi>,
    invalid: &InvalidObject,
    context: &Context,
    now: Timestamp,
) -> Result<(), InstallationError> {
    let (name, namespace) = (api.name_any(), api.namespace().unwrap_or_default());
    let objects = stored::<WaterDataApi>(&context.client, &namespace);
    let live = objects.get(&name).await?;
    tell(&objects, &live, api, invalid, context, now).await?;
    if !context.api_namespaces.contains(&namespace) {
        return Ok(());
    }
    match live.data["spec"]["redis"]["secretRef"]["name"].as_str() {
        Some(secret) => {
            let told = live.data["status"]["directoryStore"].as_str();
            directory::keep_open(&live.metadata, told, secret, context).await
        }
        None => Ok(()),
    }
}

/// Says in the status and by an event why the object cannot be read; once for each generation.
async fn tell(
    objects: &Api<DynamicObject>,
    live: &DynamicObject,
    api: &DeserializeGuard<WaterDataApi>,
    invalid: &InvalidObject,
    context: &Context,
    now: Timestamp,
) -> kube::Result<()> {
    let before: Vec<Condition> =
        serde_json::from_value(live.data["status"]["conditions"].clone()).unwrap_or_default();
    let generation = api.meta().generation.unwrap_or_default();
    let is_told = find(&before, Aspect::Stalled).is_some_and(|stalled| {
        stalled.reason == Reason::Undecodable.as_str() && stalled.observed_generation == generation
    });
    if is_told {
        return Ok(());
    }
    let message = format!("the WaterDataApi cannot be read: {}", invalid.error);
    let outcome = Readiness::Stuck(Reason::Undecodable, message.clone());
    let conditions = stated(&before, outcome.findings().to_vec(), generation, now);
    let patch = json!({ "status": { "observedGeneration": generation, "conditions": conditions } });
    let params = PatchParams::apply(RECORD_MANAGER);
    objects
        .patch_status(&api.name_any(), &params, &Patch::Merge(patch))
        .await?;
    let happened = Transition::warning(Reason::Undecodable.as_str(), message);
    context.events.report(&api.object_ref(&()), &[happened]);
    Ok(())
}
