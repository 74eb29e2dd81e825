//! Report of a pass over a WaterDataApi, as status and events.

use std::cmp::Reverse;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::networking::v1::Ingress;
use kube::{Resource, ResourceExt};
use water_domain::Timestamp;
use water_resources::api_key::ApiName;
use water_resources::condition::ConditionStatus;
use water_resources::condition::explanations::{OF_WATER_DATA_APIS, Severity};
use water_resources::portal::Portal;
use water_resources::water_data_api::{ApiKeyCounts, ComponentStatus, WaterDataApiStatus};
use water_resources::{ApiKey, Condition, WaterDataApi};

use super::advice::{Advice, sentences};
use super::children::{ChildError, Children};
use super::directory::Synchronisation;
use super::manifest::ChildKind;
use super::progress;
use super::question::{Provider, RowCounts};
use super::render::Part;
use super::transitions::transitions;
use crate::client::record_params;
use crate::conditions::{
    ConditionType, Finding, LONGEST_MESSAGE, Readiness, Reason, find, holds, stated,
};
use crate::context::Context;

#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    pub components: Vec<ComponentStatus>,
    /// Whether every component runs the declared version.
    pub rolled_out: bool,
    pub keys: ApiKeyCounts,
    pub migrations: Finding,
    pub directory: Synchronisation,
    pub data: Finding,
    pub exposure: Finding,
    /// `SignInReady`, if there is a portal.
    pub sign_in: Option<Finding>,
    /// Problems besides the directory's contents, for `Degraded`.
    pub upkeep: Vec<Advice>,
    /// Gates that serve and do not follow the directory, by their pods' names.
    pub strays: Vec<String>,
    /// `Ready`, `Reconciling` and `Stalled`; `Progressing` follows.
    pub outcome: Readiness,
}

impl Report {
    /// Problems that `Degraded` reports, the worst first.
    fn problems(&self) -> Vec<Advice> {
        let problem = |reason, sentence| Advice { reason, sentence };
        let strays = (!self.strays.is_empty()).then(|| {
            let sentence = format!(
                "gates that serve and do not follow this key directory, so that revoked keys may work there: {}; they \
                 read another Redis, or none: see gate-url, and let a paused rollout go on",
                self.strays.join(", ")
            );
            problem(Reason::GateWithoutLease, sentence)
        });
        let components = self.components.iter();
        let short: Vec<String> = components
            .filter(|part| part.ready < part.desired)
            .map(|part| format!("{} {} of {}", part.name, part.ready, part.desired))
            .collect();
        let short = (!short.is_empty()).then(|| {
            let sentence = format!("pods that answer: {}", short.join(", "));
            problem(Reason::PodsMissing, sentence)
        });
        let mut problems = self.upkeep.clone();
        problems.extend(strays.into_iter().chain(short));
        problems.sort_by_key(|problem| Reverse(problem.reason.severity(OF_WATER_DATA_APIS)));
        problems
    }

    /// Problems whose begin is an event.
    pub fn warnings(&self) -> Vec<Advice> {
        let mut warnings = self.directory.advice.clone();
        warnings.extend(self.problems());
        warnings.retain(|problem| {
            problem.reason.severity(OF_WATER_DATA_APIS) == Some(Severity::Warning)
        });
        warnings
    }
}

pub fn status(api: &WaterDataApi, report: &Report, now: Timestamp) -> WaterDataApiStatus {
    let before = api.status.clone().unwrap_or_default();
    let generation = api.meta().generation.unwrap_or_default();
    let tag = &api.spec.image.tag;
    let mut findings = vec![
        available(&report.components),
        progressing(report),
        degraded(report),
        report.migrations.clone(),
        report.directory.finding.clone(),
        report.data.clone(),
        report.exposure.clone(),
    ];
    findings.extend(report.sign_in.clone());
    findings.extend(report.outcome.findings());
    WaterDataApiStatus {
        observed_generation: Some(generation),
        version: report.rolled_out.then(|| tag.clone()).or(before.version),
        target_version: (!api.spec.paused)
            .then(|| tag.clone())
            .or(before.target_version),
        components: report.components.clone(),
        api_keys: report.keys,
        directory_store: before.directory_store,
        next_directory_store: before.next_directory_store,
        conditions: stated(&before.conditions, findings, generation, now),
    }
}

/// Whether a WaterDataApi out of scope has another operator, in its own namespace.
pub fn is_anothers(api: &WaterDataApi) -> bool {
    let status = api.status.as_ref();
    let was_seen = status.and_then(|status| status.observed_generation) > Some(-1);
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let is_ours = find(conditions, ConditionType::Stalled)
        .is_some_and(|stalled| stalled.reason == Reason::ScopeTooNarrow.as_str());
    was_seen && !is_ours
}

/// The report of a WaterDataApi in a namespace that the operator has no rights in.
pub fn out_of_scope(api: &WaterDataApi) -> Report {
    let namespace = api.namespace().unwrap_or_default();
    let message = format!(
        "the operator may not act in namespace {namespace}: add it to rbac.apiNamespaces of the chart, or create the \
         WaterDataApi in the operator's namespace"
    );
    Report {
        components: Vec::new(),
        rolled_out: false,
        keys: ApiKeyCounts::default(),
        migrations: waiting(ConditionType::MigrationsComplete),
        directory: Finding::lacks(
            ConditionType::DirectorySynced,
            Reason::ScopeTooNarrow,
            &message,
        )
        .into(),
        data: waiting(ConditionType::DataLoaded),
        exposure: waiting(ConditionType::ExposureReady),
        sign_in: None,
        upkeep: Vec::new(),
        strays: Vec::new(),
        outcome: Readiness::Stuck(Reason::ScopeTooNarrow, message),
    }
}

/// The status after a pass that the API server kept from its end: what it knew stays, and ApiKeys show why they wait
/// for the directory.
pub fn interrupted(
    api: &WaterDataApi,
    error: &str,
    directory: Option<Finding>,
    now: Timestamp,
) -> WaterDataApiStatus {
    let before = api.status.clone().unwrap_or_default();
    let generation = api.meta().generation.unwrap_or_default();
    let reason = Reason::ApiServerError;
    let outcome = Readiness::Underway(reason, error.into());
    let mut findings = outcome.findings().to_vec();
    findings.extend(directory);
    let told = stated(&before.conditions, findings, generation, now);
    let is_untold = |old: &Condition| told.iter().all(|new| new.kind != old.kind);
    let kept = before.conditions.iter().filter(|old| is_untold(old));
    WaterDataApiStatus {
        observed_generation: Some(generation),
        conditions: kept.chain(&told).cloned().collect(),
        ..before
    }
}

fn available(components: &[ComponentStatus]) -> Finding {
    // Data is answered without the portal.
    let silent: Vec<&str> = components
        .iter()
        .filter(|part| part.ready == 0 && part.name != Part::Portal.component())
        .map(|part| part.name.as_str())
        .collect();
    match &silent[..] {
        [] if !components.is_empty() => Finding::holds(
            ConditionType::Available,
            Reason::PodsReady,
            "every component has a pod that answers",
        ),
        [] => Finding::lacks(
            ConditionType::Available,
            Reason::PodsMissing,
            "no component exists yet",
        ),
        silent => {
            let message = format!("no pod of {} answers", silent.join(", "));
            Finding::lacks(ConditionType::Available, Reason::PodsMissing, message)
        }
    }
}

/// `Degraded`, by the reason of the worst problem, with all that is to say.
fn degraded(report: &Report) -> Finding {
    let problems = report.problems();
    match problems.first() {
        None => Finding::lacks(
            ConditionType::Degraded,
            Reason::Healthy,
            "no pod is missing",
        ),
        Some(worst) => {
            let message = sentences(&problems, LONGEST_MESSAGE);
            Finding::holds(ConditionType::Degraded, worst.reason, message)
        }
    }
}

/// Condition `Progressing` as a Deployment has it: true while rolling out and when done, false when it cannot go on.
fn progressing(report: &Report) -> Finding {
    match &report.outcome {
        Readiness::InForce(Reason::Paused, message) => {
            Finding::lacks(ConditionType::Progressing, Reason::Paused, message)
        }
        Readiness::InForce(..) => Finding::holds(
            ConditionType::Progressing,
            Reason::Complete,
            "every pod runs what is declared",
        ),
        Readiness::Underway(reason, message) | Readiness::Unknown(reason, message) => {
            Finding::holds(ConditionType::Progressing, *reason, message)
        }
        Readiness::Stuck(reason, message) => {
            Finding::lacks(ConditionType::Progressing, *reason, message)
        }
    }
}

/// `DataLoaded`, from the answer of departements.
pub fn data(answer: Result<RowCounts, String>) -> Finding {
    let lacks = |what| {
        Finding::lacks(
            ConditionType::DataLoaded,
            Reason::NoData,
            format!(
                "{what}: load it with water-ingest; until then its endpoint answers 404 no_data"
            ),
        )
    };
    match answer {
        Err(error) => Finding::unknown(ConditionType::DataLoaded, Reason::NotAnswering, error),
        Ok(RowCounts { stress: 0, risk: 0 }) => lacks("neither stress nor risk data is loaded"),
        Ok(RowCounts { stress: 0, .. }) => lacks("no stress data is loaded"),
        Ok(RowCounts { risk: 0, .. }) => lacks("no risk data is loaded"),
        Ok(RowCounts { stress, risk }) => Finding::holds(
            ConditionType::DataLoaded,
            Reason::Loaded,
            format!("{stress} stress records and {risk} risk records are loaded"),
        ),
    }
}

/// `SignInReady`, from the answer of the portal.
pub fn sign_in(portal: &Portal, answer: Result<Provider, String>) -> Finding {
    let aspect = ConditionType::SignInReady;
    let issuer = &portal.oidc.issuer;
    match answer {
        Err(error) => Finding::unknown(aspect, Reason::NotAnswering, error),
        Ok(Provider { usable: None, .. }) => {
            let message = "the portal has not asked the identity provider yet";
            Finding::unknown(aspect, Reason::Waiting, message)
        }
        Ok(Provider {
            usable: Some(true), ..
        }) => Finding::holds(
            aspect,
            Reason::ProviderUsable,
            format!("the identity provider {issuer} can be used"),
        ),
        Ok(Provider {
            client_refused: true,
            problem,
            ..
        }) => {
            let secret = &portal.oidc.client_secret_ref;
            let message = format!(
                "nobody can sign in at {issuer}: {problem}; put the secret that the provider has for client {} into key {} \
                 of Secret {} (spec.portal.oidc.clientSecretRef), or correct spec.portal.oidc.clientId; told until somebody \
                 has signed in",
                portal.oidc.client_id, secret.key, secret.name,
            );
            Finding::lacks(aspect, Reason::ClientRefused, message)
        }
        Ok(Provider { problem, .. }) => {
            let message = format!(
                "nobody can sign in at {issuer}: {problem}; look at the provider, at spec.portal.oidc.issuer and caRef, \
                 and at spec.networkPolicy.egress"
            );
            Finding::lacks(aspect, Reason::ProviderUnusable, message)
        }
    }
}

/// `ExposureReady`, from the Ingress.
pub fn exposure(api: &WaterDataApi, children: &Children) -> Result<Finding, ChildError> {
    let aspect = ConditionType::ExposureReady;
    let Some(declared) = &api.spec.exposure.ingress else {
        let message = format!(
            "no Ingress is declared: the Service {}-gate is the way in",
            api.name_any()
        );
        return Ok(Finding::holds(aspect, Reason::NotConfigured, message));
    };
    let ingress: Option<Ingress> = children.get(ChildKind::Ingress, &api.name_any())?;
    Ok(match ingress {
        Some(ingress) => addressed(&declared.host, &ingress),
        None => waiting(aspect),
    })
}

/// `ExposureReady` of an Ingress that is there.
fn addressed(host: &str, ingress: &Ingress) -> Finding {
    let aspect = ConditionType::ExposureReady;
    if progress::has_address(ingress) {
        let message = format!("the Ingress for {host} has an address");
        Finding::holds(aspect, Reason::AddressAssigned, message)
    } else {
        let message = "the Ingress has no address yet, which its controller gives: \
                       see spec.exposure.ingress.className";
        Finding::lacks(aspect, Reason::AddressPending, message)
    }
}

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

/// Condition of an aspect of which nothing is known before an earlier step is done.
pub fn waiting(aspect: ConditionType) -> Finding {
    Finding::lacks(aspect, Reason::Waiting, "an earlier step is not done")
}

/// Numbers of ApiKeys that belong to a WaterDataApi.
pub fn count<'a>(place: &ApiName, keys: impl Iterator<Item = &'a ApiKey>) -> ApiKeyCounts {
    let mut counts = ApiKeyCounts::default();
    for status in keys
        .filter_map(|key| key.status.as_ref())
        .filter(|status| status.api.as_ref() == Some(place))
    {
        let is_active = find(&status.conditions, ConditionType::Ready).is_some_and(|ready| {
            ready.status == ConditionStatus::True && ready.reason == Reason::Active.as_str()
        });
        counts.total += 1;
        counts.active += u32::from(is_active);
        counts.synced += u32::from(holds(&status.conditions, ConditionType::Synced));
    }
    counts
}

/// Writes the status if it changed, then reports what it changed from.
pub async fn write(
    api: &WaterDataApi,
    status: WaterDataApiStatus,
    advice: &[Advice],
    context: &Context,
) -> kube::Result<()> {
    if api.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let before = api.status.clone().unwrap_or_default();
    let mut changed = api.clone();
    changed.status = Some(status);
    let client = context.api::<WaterDataApi>(&api.namespace().unwrap_or_default());
    client
        .replace_status(&api.name_any(), &record_params(), &changed)
        .await?;
    let happened = transitions(&before, &changed.status.unwrap_or_default(), advice);
    context.events.report(&api.object_ref(&()), &happened);
    Ok(())
}

#[cfg(test)]
mod tests;
