//! Writes of an ApiKey's own metadata. No key depends on them, and nothing waits for them.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, timeout};
use water_resources::ApiKey;

use super::limit::Progress;
use super::metadata::{ACCOUNT_LABEL, ADOPT, is_adopted, is_as_declared};
use crate::client::{ApiFailure, words};
use crate::conditions::{ConditionType, Finding, RECORD_MANAGER, Reason};
use crate::context::Context;

/// Part of the cluster that is written here, as messages name it.
pub const LABEL: &str = "the label waterdata.dev/account of the ApiKey";

/// Time limit of a write, so that a slow webhook does not delay the status.
const WITHIN: Duration = Duration::from_secs(5);

/// Time until the label may be written again.
pub fn pause(uid: &str, context: &Context, now: Instant) -> Duration {
    context.memory.labels.pause(uid, Progress::default(), now)
}

/// Writes the label, unless that has failed lately. Returns why it is not there.
pub async fn write(key: &ApiKey, context: &Context, now: Instant) -> kube::Result<Option<Finding>> {
    let memory = &context.memory;
    let uid = key.uid().unwrap_or_default();
    if !memory.labels.allows(&uid, Progress::default(), now) {
        return Ok(Some(memory.unlabelled(&uid).unwrap_or_else(undone)));
    }
    let api = context.api(&key.namespace().unwrap_or_default());
    let failed = match timeout(WITHIN, patch(key, &api)).await {
        Ok(Ok(written)) if is_as_declared(&written) => {
            memory.keep_written(&written);
            memory.labels.count(&uid, Progress::default(), now);
            memory.keep_unlabelled(&uid, None);
            return Ok(None);
        }
        Ok(Ok(_)) => {
            context.metrics.api_server_failure(ApiFailure::Undone);
            undone()
        }
        Ok(Err(error)) => {
            let Some(failure) = ApiFailure::kind(&error) else {
                return Err(error);
            };
            context.metrics.api_server_failure(failure);
            refused(&words(&error))
        }
        Err(_) => {
            context.metrics.api_server_failure(ApiFailure::Unanswered);
            refused(&format!("no answer within {WITHIN:?}"))
        }
    };
    memory.labels.exhaust(&uid, Progress::default(), now);
    memory.keep_unlabelled(&uid, Some(failed.clone()));
    Ok(Some(failed))
}

async fn patch(key: &ApiKey, api: &Api<ApiKey>) -> kube::Result<ApiKey> {
    let mut patch = json!({ "metadata": { "labels": { ACCOUNT_LABEL: key.spec.account_id } } });
    if is_adopted(key) {
        patch["metadata"]["annotations"] = json!({ ADOPT: null });
    }
    let (params, patch) = (PatchParams::apply(RECORD_MANAGER), Patch::Merge(patch));
    api.patch(&key.name_any(), &params, &patch).await
}

fn refused(why: &str) -> Finding {
    let message = format!(
        "the label {ACCOUNT_LABEL} of the ApiKey cannot be written: {why}: its key is not affected, but selectors by account miss \
         it; allow the operator to write the label, or set it yourself"
    );
    Finding::holds(ConditionType::Degraded, Reason::ApiServerError, message)
}

fn undone() -> Finding {
    let message = format!(
        "another controller or a webhook undoes the label {ACCOUNT_LABEL} of the ApiKey: its key is not affected, but selectors by \
         account miss it; exempt ApiKeys from whatever removes it"
    );
    Finding::holds(ConditionType::Degraded, Reason::WriteConflict, message)
}
