//! What a pass over a WaterDataApi found out, as status and events.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::PostParams;
use kube::{Resource, ResourceExt};
use water_domain::Timestamp;

use super::children::{ChildError, Children};
use super::data::{DataError, Loaded};
use super::manifest::ChildKind;
use super::progress;
use super::render::Part;
use crate::conditions::{Aspect, Finding, Outcome, RECORD_MANAGER, Reason, find, holds, stated};
use crate::context::Context;
use crate::crd::api_key::IssuedAt;
use crate::crd::condition::ConditionStatus;
use crate::crd::water_data_api::{ApiKeyCounts, ComponentStatus, WaterDataApiStatus};
use crate::crd::{ApiKey, WaterDataApi};
use crate::events::Happening;

/// What a pass found out.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The components that exist.
    pub components: Vec<ComponentStatus>,
    /// Whether every component runs the declared version.
    pub rolled_out: bool,
    /// How many ApiKeys there are.
    pub keys: ApiKeyCounts,
    /// `MigrationsComplete`.
    pub migrations: Finding,
    /// `DirectorySynced`.
    pub directory: Finding,
    /// `DataLoaded`.
    pub data: Finding,
    /// `ExposureReady`.
    pub exposure: Finding,
    /// `Ready`, `Reconciling` and `Stalled`; `Progressing` follows.
    pub outcome: Outcome,
}

/// The status that a report makes of `api`.
pub fn status(api: &WaterDataApi, report: &Report, now: Timestamp) -> WaterDataApiStatus {
    let before = api.status.clone().unwrap_or_default();
    let generation = api.meta().generation.unwrap_or_default();
    let tag = &api.spec.image.tag;
    let mut findings = vec![
        available(&report.components),
        progressing(report),
        degraded(&report.components),
        report.migrations.clone(),
        report.directory.clone(),
        report.data.clone(),
        report.exposure.clone(),
    ];
    findings.extend(report.outcome.findings());
    WaterDataApiStatus {
        observed_generation: Some(generation),
        version: if report.rolled_out {
            Some(tag.clone())
        } else {
            before.version
        },
        target_version: Some(tag.clone()),
        components: report.components.clone(),
        api_keys: report.keys,
        conditions: stated(&before.conditions, findings, generation, now),
    }
}

fn available(components: &[ComponentStatus]) -> Finding {
    let silent: Vec<&str> = components
        .iter()
        .filter(|part| part.ready == 0)
        .map(|part| part.name.as_str())
        .collect();
    match &silent[..] {
        [] if !components.is_empty() => Finding::holds(
            Aspect::Available,
            Reason::PodsReady,
            "every component has a pod that answers",
        ),
        [] => Finding::lacks(
            Aspect::Available,
            Reason::PodsMissing,
            "no component exists yet",
        ),
        silent => {
            let message = format!("no pod of {} answers", silent.join(", "));
            Finding::lacks(Aspect::Available, Reason::PodsMissing, message)
        }
    }
}

fn degraded(components: &[ComponentStatus]) -> Finding {
    let short: Vec<String> = components
        .iter()
        .filter(|part| part.ready < part.desired)
        .map(|part| format!("{} {} of {}", part.name, part.ready, part.desired))
        .collect();
    if short.is_empty() {
        Finding::lacks(Aspect::Degraded, Reason::Healthy, "no pod is missing")
    } else {
        Finding::holds(
            Aspect::Degraded,
            Reason::PodsMissing,
            format!("pods that answer: {}", short.join(", ")),
        )
    }
}

/// As a Deployment has it: true while rolling out and when done, false when it cannot go on.
fn progressing(report: &Report) -> Finding {
    match &report.outcome {
        Outcome::InForce(Reason::Paused, message) => {
            Finding::lacks(Aspect::Progressing, Reason::Paused, message)
        }
        Outcome::InForce(..) => Finding::holds(
            Aspect::Progressing,
            Reason::Complete,
            "every pod runs what is declared",
        ),
        Outcome::Underway(reason, message) => Finding::holds(Aspect::Progressing, *reason, message),
        Outcome::Stuck(reason, message) => Finding::lacks(Aspect::Progressing, *reason, message),
    }
}

/// `DataLoaded`, from the answer of departements.
pub fn data(answer: Result<Loaded, DataError>) -> Finding {
    let lacks = |what| {
        Finding::lacks(
            Aspect::DataLoaded,
            Reason::NoData,
            format!(
                "{what}: load it with water-ingest; until then its endpoint answers 404 no_data"
            ),
        )
    };
    match answer {
        Err(error) => Finding::unknown(Aspect::DataLoaded, Reason::NotAnswering, error.to_string()),
        Ok(Loaded { stress: 0, risk: 0 }) => lacks("neither stress nor risk data is loaded"),
        Ok(Loaded { stress: 0, .. }) => lacks("no stress data is loaded"),
        Ok(Loaded { risk: 0, .. }) => lacks("no risk data is loaded"),
        Ok(Loaded { stress, risk }) => Finding::holds(
            Aspect::DataLoaded,
            Reason::Loaded,
            format!("{stress} stress records and {risk} risk records are loaded"),
        ),
    }
}

/// `ExposureReady`, from the Ingress.
pub fn exposure(api: &WaterDataApi, children: &Children) -> Result<Finding, ChildError> {
    let aspect = Aspect::ExposureReady;
    let Some(declared) = &api.spec.exposure.ingress else {
        let message = format!(
            "no Ingress is declared: the Service {}-gate is the way in",
            api.name_any()
        );
        return Ok(Finding::holds(aspect, Reason::NotConfigured, message));
    };
    let ingress: Option<Ingress> = children.get(ChildKind::Ingress, &api.name_any())?;
    Ok(match ingress {
        Some(ingress) if progress::has_address(&ingress) => {
            let message = format!("the Ingress for {} has an address", declared.host);
            Finding::holds(aspect, Reason::AddressAssigned, message)
        }
        Some(_) => {
            let message = "the Ingress has no address yet, which its controller gives: \
                           see spec.exposure.ingress.className";
            Finding::lacks(aspect, Reason::AddressPending, message)
        }
        None => waiting(aspect),
    })
}

/// The components that exist.
pub fn components(
    api: &WaterDataApi,
    children: &Children,
) -> Result<Vec<ComponentStatus>, ChildError> {
    let mut components = Vec::new();
    for part in Part::SERVING {
        let name = format!("{}-{}", api.name_any(), part.component());
        let deployment: Option<Deployment> = children.get(ChildKind::Deployment, &name)?;
        components.extend(
            deployment.map(|deployment| progress::component(part.component(), &deployment)),
        );
    }
    Ok(components)
}

/// Nothing is known before an earlier step is done.
pub fn waiting(aspect: Aspect) -> Finding {
    Finding::lacks(aspect, Reason::Waiting, "an earlier step is not done")
}

/// How many ApiKeys are issued at a place.
pub fn count<'a>(place: &IssuedAt, keys: impl Iterator<Item = &'a ApiKey>) -> ApiKeyCounts {
    let mut counts = ApiKeyCounts::default();
    for status in keys
        .filter_map(|key| key.status.as_ref())
        .filter(|status| status.api.as_ref() == Some(place))
    {
        let is_active = find(&status.conditions, Aspect::Ready).is_some_and(|ready| {
            ready.status == ConditionStatus::True && ready.reason == Reason::Active.as_str()
        });
        counts.total += 1;
        counts.active += u32::from(is_active);
        counts.synced += u32::from(holds(&status.conditions, Aspect::Synced));
    }
    counts
}

/// Writes the status if it changed, then reports what it changed from.
pub async fn write(
    api: &WaterDataApi,
    status: WaterDataApiStatus,
    context: &Context,
) -> kube::Result<()> {
    if api.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let before = api.status.clone().unwrap_or_default();
    let mut changed = api.clone();
    changed.status = Some(status);
    let params = PostParams {
        field_manager: Some(RECORD_MANAGER.into()),
        ..PostParams::default()
    };
    let client = context.api::<WaterDataApi>(&api.namespace().unwrap_or_default());
    client
        .replace_status(&api.name_any(), &params, &changed)
        .await?;
    let happened = transitions(&before, &changed.status.unwrap_or_default());
    context.events.report(&api.object_ref(&()), &happened).await;
    Ok(())
}

/// What happened between two statuses.
pub fn transitions(before: &WaterDataApiStatus, after: &WaterDataApiStatus) -> Vec<Happening> {
    let mut happened = Vec::new();
    if let Some(target) = after
        .target_version
        .as_ref()
        .filter(|_| after.target_version != before.target_version)
    {
        happened.push(Happening::normal(
            "RolloutStarted",
            format!("rolling out version {target}"),
        ));
    }
    let became = |aspect| holds(&after.conditions, aspect) && !holds(&before.conditions, aspect);
    if became(Aspect::MigrationsComplete) {
        happened.push(Happening::normal(
            "MigrationsComplete",
            "the database's schema is that of the version",
        ));
    }
    if let Some(version) = after
        .version
        .as_ref()
        .filter(|_| after.version != before.version)
    {
        happened.push(Happening::normal(
            "RolloutComplete",
            format!("every pod runs version {version}"),
        ));
    }
    if became(Aspect::DataLoaded) {
        happened.push(Happening::normal(
            "DataLoaded",
            "both public datasets are loaded",
        ));
    }
    let unguarded = |status: &WaterDataApiStatus| {
        find(&status.conditions, Aspect::DirectorySynced)
            .filter(|synced| synced.reason == Reason::ReplicasUnguarded.as_str())
            .map(|synced| synced.message.clone())
    };
    if let Some(message) = unguarded(after).filter(|_| unguarded(before).is_none()) {
        happened.push(Happening::warning(
            Reason::ReplicasUnguarded.as_str(),
            message,
        ));
    }
    let stalled = |status: &WaterDataApiStatus| {
        find(&status.conditions, Aspect::Stalled)
            .filter(|stalled| stalled.status == ConditionStatus::True)
            .map(|stalled| (stalled.reason.clone(), stalled.message.clone()))
    };
    if let Some((reason, message)) = stalled(after)
        && stalled(before).map(|(reason, _)| reason).as_ref() != Some(&reason)
    {
        happened.push(Happening::warning(reason, message));
    }
    happened
}

#[cfg(test)]
mod tests;
