//! The WaterDataApi controller: stores, directory, children step by step, status.
//!
//! A pass brings one WaterDataApi closer to what is declared. It stops at the first step that is not
//! done and comes back when a child changes, and every ten seconds anyway.

mod advice;
mod children;
mod directory;
mod drift;
mod fingerprint;
mod identity;
mod manifest;
mod own_secret;
mod portal;
mod progress;
mod question;
pub mod render;
mod report;
mod rollout;
mod rotation;
pub mod secret_error;
pub mod secrets;
pub mod store_record;
mod strays;
mod transitions;
mod undecodable;

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action;
use tracing::warn;
use water_domain::Timestamp;
use water_keystore::InvalidInstance;
use water_resources::WaterDataApi;
use water_resources::api_key::ApiName;
use water_resources::condition::ConditionStatus;
use water_resources::water_data_api::From;
use water_resources::workload::OnFailure;

use crate::backoff::{chance, spread};
use crate::client::ApiFailure;
use crate::clock;
use crate::conditions::{ConditionType, Finding, Readiness, Reason, holds};
use crate::config::Scope;
use crate::context::Context;
use children::{ChildError, Children};
use directory::Synchronisation;
use render::{Part, Source};
use report::Report;
use rollout::Rollout;
use secret_error::SecretError;
use secrets::Secrets;
use store_record::StoreRecord;

/// Interval at which departements is asked for its data, and at which Redis is checked.
const EVERY: Duration = Duration::from_secs(10);
const PASS_WITHIN: Duration = Duration::from_secs(15);
/// Longest pause between two tries of a pass that fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Reason for which a pass was given up. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    #[error("asking the API server: {0}")]
    Kube(#[from] kube::Error),
    #[error(transparent)]
    Child(#[from] ChildError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Instance(#[from] InvalidInstance),
    #[error("the pass took longer than {PASS_WITHIN:?}")]
    TooLong,
    #[error("the WaterDataApi has changed since it was read")]
    Changed,
    #[error("the key directory is being claimed")]
    BeingClaimed,
}

impl InstallationError {
    /// Whether it is no failure: somebody else wrote first, or a claim is under way.
    fn is_delay(&self) -> bool {
        match self {
            Self::Changed | Self::BeingClaimed => true,
            error => matches!(error.kube(), Some(kube::Error::Api(status)) if status.is_conflict()),
        }
    }

    /// Failure of the API server, if it was one.
    fn api_failure(&self) -> Option<ApiFailure> {
        match self {
            Self::TooLong => Some(ApiFailure::Unanswered),
            error => ApiFailure::kind(error.kube()?),
        }
    }

    fn kube(&self) -> Option<&kube::Error> {
        match self {
            Self::Kube(error)
            | Self::Secret(SecretError::Kube(error))
            | Self::Child(ChildError::Kube { source: error, .. }) => Some(error),
            _ => None,
        }
    }
}

pub async fn reconcile(
    api: Arc<DeserializeGuard<WaterDataApi>>,
    context: Arc<Context>,
) -> Result<Action, InstallationError> {
    let pass = async {
        match &api.0 {
            Ok(api) => pass(api, &context, clock::now()).await,
            Err(invalid) => undecodable::pass(&api, invalid, &context, clock::now()).await,
        }
    };
    let pass = tokio::time::timeout(PASS_WITHIN, pass).await;
    let result = pass.unwrap_or(Err(InstallationError::TooLong));
    context.metrics.pass("WaterDataApi", &result);
    match (&result, &api.0) {
        (Ok(()), _) => context.backoff.succeeded(&api.uid().unwrap_or_default()),
        (Err(error), Ok(api)) if !error.is_delay() => {
            interrupted(api, error, &context, clock::now()).await;
        }
        (Err(_), _) => {}
    }
    result.map(|()| Action::requeue(spread(EVERY, chance())))
}

pub fn retry(
    api: Arc<DeserializeGuard<WaterDataApi>>,
    error: &InstallationError,
    context: Arc<Context>,
) -> Action {
    let meta = kube::Resource::meta(&*api);
    if !error.is_delay() {
        warn!(namespace = meta.namespace, name = meta.name, %error, "a WaterDataApi's pass was given up");
    }
    let uid = meta.uid.as_deref().unwrap_or_default();
    Action::requeue(context.backoff.failed(uid, LONGEST_PAUSE, chance()))
}

async fn pass(
    api: &WaterDataApi,
    context: &Context,
    now: Timestamp,
) -> Result<(), InstallationError> {
    let is_in_scope = context.api_namespaces.contains(&place(api).namespace);
    if api.metadata.deletion_timestamp.is_some() {
        if !is_in_scope {
            // Its directory may be that of another operator, whose writes a claim would fence off.
            return Ok(());
        }
        // Children go with their owner; the directory stays for the keys that are revoked from it.
        let secret = &api.spec.redis.secret_ref.name;
        return directory::keep_open(StoreRecord::from_api(api), secret, context).await;
    }
    let mut api = api.clone();
    let report = if is_in_scope {
        look(&mut api, context, now).await?
    } else if report::is_anothers(&api) {
        return Ok(());
    } else {
        report::out_of_scope(&api)
    };
    let status = report::status(&api, &report, now);
    report::write(&api, status, &report.warnings(), context).await?;
    Ok(())
}

/// Checks the directory first, since revocation waits neither for a rollout nor for PostgreSQL's Secret.
async fn look(
    api: &mut WaterDataApi,
    context: &Context,
    now: Timestamp,
) -> Result<Report, InstallationError> {
    let secret = &api.spec.redis.secret_ref.name;
    let redis = match secrets::redis(&api.metadata, secret, &context.client).await {
        Err(error) if error.is_invalid() => {
            let message = error.to_string();
            let directory = Finding::lacks(
                ConditionType::DirectorySynced,
                Reason::SecretInvalid,
                &message,
            );
            context.caches.filled().await;
            return without_secrets(api, &error, directory.into(), context).await;
        }
        redis => redis?,
    };
    let directory = directory::synchronise(api, &redis, context).await?;
    // The directory does not wait for them, so that the first list of ApiKeys begins after the
    // claim. The rest of the report counts ApiKeys.
    context.caches.filled().await;
    if is_news(api, &directory.finding) {
        context.revisit_keys_of(&place(api));
    }
    match secrets::read(api, &redis, context).await {
        Err(error) if error.is_invalid() => without_secrets(api, &error, directory, context).await,
        secrets => installed(api, secrets?, directory, context, now).await,
    }
}

/// Reports in the status that the API server kept a pass from its end. One that is away does not take this either; the
/// log has it.
async fn interrupted(
    api: &WaterDataApi,
    error: &InstallationError,
    context: &Context,
    now: Timestamp,
) {
    if let Some(failure) = error.api_failure() {
        context.metrics.api_server_failure(failure);
    }
    let message = error.to_string();
    let directory = directory::unfinished(api, &message, context);
    let status = report::interrupted(api, &message, directory, now);
    let written = tokio::time::timeout(PASS_WITHIN, report::write(api, status, &[], context)).await;
    if !matches!(written, Ok(Ok(()))) {
        let (namespace, name) = (api.namespace(), api.name_any());
        warn!(namespace, name, %error, "a WaterDataApi's status cannot say why a pass was given up");
    }
}

/// The report of an installation that lacks a Secret: nothing is touched.
async fn without_secrets(
    api: &WaterDataApi,
    error: &SecretError,
    directory: Synchronisation,
    context: &Context,
) -> Result<Report, InstallationError> {
    let children = Children::observe(api, context).await?;
    let rollout = Rollout {
        migrations: report::waiting(ConditionType::MigrationsComplete),
        outcome: Readiness::Stuck(Reason::SecretInvalid, error.to_string()),
    };
    report(api, &children, directory, rollout, context).await
}

/// Applies the children unless something prevents it.
async fn installed(
    api: &WaterDataApi,
    mut secrets: Secrets,
    directory: Synchronisation,
    context: &Context,
    now: Timestamp,
) -> Result<Report, InstallationError> {
    let uid = api.uid().unwrap_or_default();
    let (name, namespace) = (api.name_any(), api.namespace().unwrap_or_default());
    let salt = secrets.identity.salt();
    let portal = portal::settle(api, &secrets.facts, salt, context).await?;
    let portal = portal.map(|facts| secrets.facts.portal = facts);
    let source = Source {
        name: &name,
        namespace: &namespace,
        uid: &uid,
        spec: &api.spec,
        secrets: &secrets.facts,
    };
    let desired = render::render(source);
    let mut children = Children::observe(api, context).await?;
    let rollout = match hindrance(api, context.scope) {
        Some(hindrance) => Rollout::untouched(api, hindrance),
        None => {
            let is_claimed = directory::is_claimed(api, context);
            match rollout::run(&mut children, &desired, is_claimed, portal).await {
                Ok(rollout) => rollout,
                Err(error) => Rollout::untouched(api, refusal(error)?),
            }
        }
    };
    if rollout.is_complete() {
        rotation::advance(api, &secrets.identity, &children, context, now).await?;
    }
    report(api, &children, directory, rollout, context).await
}

async fn report(
    api: &WaterDataApi,
    children: &Children,
    directory: Synchronisation,
    rollout: Rollout,
    context: &Context,
) -> Result<Report, InstallationError> {
    let loaded = question::ask(api, Part::Departements, "/data").await;
    let keys = context.keys.state();
    let keys = keys.iter().filter_map(|key| key.0.as_ref().ok());
    Ok(Report {
        components: report::components(api, children)?,
        rolled_out: rollout.is_complete(),
        keys: report::count(&place(api), keys),
        migrations: rollout.migrations,
        data: report::data(loaded),
        sign_in: sign_in(api).await,
        exposure: report::exposure(api, children)?,
        strays: strays::find(api, context).await,
        upkeep: directory::upkeep(api, context),
        outcome: directory::worse(rollout.outcome, &directory.finding),
        directory,
    })
}

/// Finding about signing in; `None` without a portal.
async fn sign_in(api: &WaterDataApi) -> Option<Finding> {
    let portal = api.spec.portal.as_ref()?;
    let told = question::ask(api, Part::Portal, "/provider").await;
    Some(report::sign_in(portal, told))
}

/// Checks whether the state of keys may differ from that after the last pass: another spec, or a directory that can be
/// used again.
fn is_news(api: &WaterDataApi, directory: &Finding) -> bool {
    let before = api.status.clone().unwrap_or_default();
    let is_in_order = directory.status == ConditionStatus::True;
    before.observed_generation != api.metadata.generation
        || (is_in_order && !holds(&before.conditions, ConditionType::DirectorySynced))
}

/// Readiness with the remedy for a child that somebody has to change; an error that passes by itself is tried again.
fn refusal(error: ChildError) -> Result<Readiness, ChildError> {
    let message = error.to_string();
    match error {
        ChildError::Foreign { .. } => Ok(Readiness::Stuck(Reason::ObjectConflict, message)),
        ChildError::Leftover { .. } => Ok(Readiness::Underway(Reason::Waiting, message)),
        ChildError::Kube {
            source: kube::Error::Api(status),
            ..
        } if status.is_forbidden() || status.is_invalid() => {
            Ok(Readiness::Stuck(Reason::Rejected, message))
        }
        error => Err(error),
    }
}

/// Reason for which the children must not be touched.
fn hindrance(api: &WaterDataApi, scope: Scope) -> Option<Readiness> {
    let spec = &api.spec;
    let components = [
        &spec.components.gate,
        &spec.components.departements,
        &spec.components.history,
    ];
    let unsupported = |field: &str, instead: &str| {
        let message = format!("{field} is not acted on by this version of the operator: {instead}");
        Some(Readiness::Stuck(Reason::NotSupported, message))
    };
    if spec.api_keys.allowed_namespaces.from != From::Same && scope == Scope::Namespaced {
        let message = "spec.apiKeys.allowedNamespaces asks for more than the operator's namespace: install the \
                       chart with rbac.scope: Cluster, or set from: Same";
        return Some(Readiness::Stuck(Reason::ScopeTooNarrow, message.into()));
    }
    if components
        .iter()
        .any(|component| component.autoscaling.is_some())
    {
        return unsupported("spec.components.*.autoscaling", "set replicas");
    }
    if spec.exposure.http_route.is_some() {
        return unsupported("spec.exposure.httpRoute", "set spec.exposure.ingress");
    }
    if spec.rollout.on_failure == OnFailure::Rollback {
        return unsupported("spec.rollout.onFailure: Rollback", "set Hold");
    }
    let message =
        "rollouts are stopped while spec.paused is set; keys are issued and revoked as ever";
    spec.paused
        .then(|| Readiness::InForce(Reason::Paused, message.into()))
}

fn place(api: &WaterDataApi) -> ApiName {
    ApiName {
        namespace: api.namespace().unwrap_or_default(),
        name: api.name_any(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sample;

    /// Returns what keeps the children from being touched, if this is declared in a section of the spec.
    fn hindered(section: &str, declared: &Value) -> Option<Readiness> {
        let mut api = sample::api("water-data", "water");
        let mut spec = serde_json::to_value(&api.spec).unwrap();
        spec[section] = declared.clone();
        api.spec = serde_json::from_value(spec).unwrap();
        hindrance(&api, Scope::Namespaced)
    }

    #[test]
    fn what_is_declared_and_not_acted_on_hinders_a_rollout() {
        let route = json!({ "parentRefs": [{ "name": "public" }], "hostnames": ["water.example"] });
        let scaling = json!({ "minReplicas": 2, "maxReplicas": 4, "targetCpuPercent": 80 });
        let scaled = |component: &str| json!({ component: { "autoscaling": scaling } });
        let autoscaling = "spec.components.*.autoscaling";
        for (section, declared, field) in [
            ("components", scaled("gate"), autoscaling),
            ("components", scaled("departements"), autoscaling),
            ("components", scaled("history"), autoscaling),
            (
                "exposure",
                json!({ "httpRoute": route }),
                "spec.exposure.httpRoute",
            ),
            (
                "rollout",
                json!({ "onFailure": "Rollback" }),
                "spec.rollout.onFailure: Rollback",
            ),
        ] {
            let found = hindered(section, &declared);
            let Some(Readiness::Stuck(Reason::NotSupported, message)) = &found else {
                panic!("{declared}: {found:?}");
            };
            assert!(message.starts_with(field), "{declared}: {message}");
        }
        assert_eq!(hindered("rollout", &json!({ "onFailure": "Hold" })), None);
    }
}
