//! A WaterDataApi that the schema admits and that cannot be read: it stalls, and reports that once. Its keys can be
//! restricted and revoked all the same.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{DeserializeGuard, error_boundary::InvalidObject};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;
use water_domain::Timestamp;
use water_resources::{Condition, WaterDataApi};

use super::store_record::StoreRecord;
use super::{InstallationError, directory};
use crate::client::{stored, undecodable_field};
use crate::conditions::{ConditionType, RECORD_MANAGER, Readiness, Reason, find, stated};
use crate::context::Context;
use crate::events::Transition;

/// Opens its key directory, and reports why it cannot be read.
pub async fn pass(
    api: &DeserializeGuard<WaterDataApi>,
    invalid: &InvalidObject,
    context: &Context,
    now: Timestamp,
) -> Result<(), InstallationError> {
    let (name, namespace) = (api.name_any(), api.namespace().unwrap_or_default());
    let objects = stored::<WaterDataApi>(&context.client, &namespace);
    let live = objects.get(&name).await?;
    let is_in_scope = context.api_namespaces.contains(&namespace);
    let secret = live.data["spec"]["redis"]["secretRef"]["name"].as_str();
    let opened = match secret.filter(|_| is_in_scope) {
        Some(secret) => {
            directory::keep_open(StoreRecord::from_object(&live), secret, context).await
        }
        None => Ok(()),
    };
    // Afterwards, since it changes the version.
    tell(&objects, &live, api, invalid, context, now).await?;
    opened
}

/// Reports in the status and by an event why the object cannot be read; once for each generation.
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
    let is_told = find(&before, ConditionType::Stalled).is_some_and(|stalled| {
        stalled.reason == Reason::Undecodable.as_str() && stalled.observed_generation == generation
    });
    if is_told {
        return Ok(());
    }
    let problem = undecodable_field::<WaterDataApi>(live);
    let problem = problem.as_ref().unwrap_or(&invalid.error);
    let message = format!("the WaterDataApi cannot be read: {problem}");
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
