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
mod strays;
mod transitions;
mod undecodable;

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action;
use tracing::{debug, warn};
use water_domain::Timestamp;
use water_keystore::InvalidInstance;
use water_resources::WaterDataApi;
use water_resources::api_key::ApiName;
use water_resources::condition::ConditionStatus;
use water_resources::water_data_api::From;
use water_resources::workload::OnFailure;

use crate::backoff::{chance, spread};
use crate::clock;
use crate::conditions::{Aspect, Finding, Readiness, Reason, holds};
use crate::config::Scope;
use crate::context::Context;
use children::{ChildError, Children};
use directory::Synchronised;
use render::{Part, Source};
use report::Report;
use rollout::Rollout;
use secret_error::SecretError;
use secrets::Secrets;

/// Departements is asked for its data this often; Redis is looked at as often.
const EVERY: Duration = Duration::from_secs(10);
const PASS_WITHIN: Duration = Duration::from_secs(15);
/// Between two tries of a pass that fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Why a pass was given up. It is tried again.
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
}

impl InstallationError {
    /// Whether somebody else wrote first: the next pass sees what.
    fn is_conflict(&self) -> bool {
        let error = match self {
            Self::Kube(error)
            | Self::Secret(SecretError::Kube(error))
            | Self::Child(ChildError::Kube { source: error, .. }) => error,
            _ => return false,
        };
        matches!(error, kube::Error::Api(status) if status.is_conflict())
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
        (Err(error), Ok(api)) if !error.is_conflict() => {
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
    if !error.is_conflict() {
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
        let (told, secret) = (directory::told_store(api), &api.spec.redis.secret_ref.name);
        return directory::keep_open(&api.metadata, told, secret, context).await;
    }
    let report = if is_in_scope {
        look(api, context, now).await?
    } else if report::is_anothers(api) {
        return Ok(());
    } else {
        report::out_of_scope(api)
    };
    let mut status = report::status(api, &report, now);
    if let Some(store) = directory::claimed_in(api, context) {
        status.directory_store = Some(store);
    }
    report::write(api, status, &report.directory.advice, context).await?;
    Ok(())
}

/// The directory first, since revocation waits neither for a rollout nor for PostgreSQL's Secret.
async fn look(
    api: &WaterDataApi,
    context: &Context,
    now: Timestamp,
) -> Result<Report, InstallationError> {
    let secret = &api.spec.redis.secret_ref.name;
    let redis = match secrets::redis(&api.metadata, secret, &context.client).await {
        Err(error) if error.is_invalid() => {
            let message = error.to_string();
            let directory =
                Finding::lacks(Aspect::DirectorySynced, Reason::SecretInvalid, &message);
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

/// Says in the status that the API server kept a pass from its end. One that is away does not take
/// this either; the log has it.
async fn interrupted(
    api: &WaterDataApi,
    error: &InstallationError,
    context: &Context,
    now: Timestamp,
) {
    let is_open = context.directories.get(&place(api)).is_some();
    let status = report::interrupted(api, &error.to_string(), is_open, now);
    let written = tokio::time::timeout(PASS_WITHIN, report::write(api, status, &[], context)).await;
    if !matches!(written, Ok(Ok(()))) {
        debug!(error = %error, "cannot say in the status why a pass was given up");
    }
}

/// The report of an installation that lacks a Secret: nothing is touched.
async fn without_secrets(
    api: &WaterDataApi,
    error: &SecretError,
    directory: Synchronised,
    context: &Context,
) -> Result<Report, InstallationError> {
    let children = Children::observe(api, context).await?;
    let rollout = Rollout {
        migrations: report::waiting(Aspect::MigrationsComplete),
        outcome: Readiness::Stuck(Reason::SecretInvalid, error.to_string()),
    };
    report(api, &children, directory, rollout, context).await
}

/// The children, as far as nothing hinders.
async fn installed(
    api: &WaterDataApi,
    mut secrets: Secrets,
    directory: Synchronised,
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
            let is_claimed = directory::claimed_in(api, context).is_some();
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
    directory: Synchronised,
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
        sweep: directory::sweep(api, context),
        strays: strays::find(api, context).await,
        outcome: directory::worse(rollout.outcome, &directory.finding),
        directory,
    })
}

/// Nothing where there is no portal.
async fn sign_in(api: &WaterDataApi) -> Option<Finding> {
    let portal = api.spec.portal.as_ref()?;
    let told = question::ask(api, Part::Portal, "/provider").await;
    Some(report::sign_in(portal, told))
}

/// Whether keys may stand differently than after the last pass: another spec, or a directory that
/// came back.
fn is_news(api: &WaterDataApi, directory: &Finding) -> bool {
    let before = api.status.clone().unwrap_or_default();
    let is_in_order = directory.status == ConditionStatus::True;
    before.observed_generation != api.metadata.generation
        || (is_in_order && !holds(&before.conditions, Aspect::DirectorySynced))
}

/// What somebody has to do about a child; an error that passes by itself is tried again.
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

/// What keeps the children from being touched.
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
