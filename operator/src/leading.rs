//! What a leader does: two controllers over one set of watches, and the care of the key directories,
//! until the leadership is lost.

use std::fmt::Debug;
use std::future::ready;
use std::sync::Arc;

use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::select_all;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::controller::Config;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, Predicate, WatchStreamExt, predicates, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tracing::error;

use crate::backoff;
use crate::client::watching;
use crate::config::{OperatorConfig, Scope};
use crate::context::{Context, keys_where};
use crate::crd::{ApiKey, WaterDataApi};
use crate::directories::{Directories, care};
use crate::events::Events;
use crate::installation::render::MANAGED_BY;
use crate::keys::memory::Memory;
use crate::keys::secret::KEY_LABEL;
use crate::lease::Election;
use crate::metrics::Metrics;
use crate::watches::health::Health;
use crate::watches::{Changes, Lists, NoPause, changes, relist, remembered};
use crate::{installation, keys};

/// Objects at once: enough for 10 000 keys in seconds, few enough for one connection to Redis.
const CONCURRENCY: u16 = 24;

type Key = DeserializeGuard<ApiKey>;
type Installation = DeserializeGuard<WaterDataApi>;

/// Runs the controllers. Returns only when all watches have failed for minutes; dropped when the
/// leadership is lost, which ends every pass under way.
pub async fn lead(
    client: &Client,
    config: &OperatorConfig,
    election: &Election,
    events: &Events,
    metrics: &Metrics,
) {
    let (scope, namespace) = (config.scope, config.pod_namespace.as_str());
    let (lists, health) = (Lists::default(), Health::new(metrics.clone()));
    let keys: Api<Key> = Context::watched(client, scope, namespace);
    let apis: Api<Installation> = Context::watched(client, scope, namespace);
    let secrets: Api<PartialObjectMeta<Secret>> = Context::watched(client, scope, namespace);
    let known_keys = remembered(
        keys.clone(),
        watching(),
        &lists.keys,
        health.watch("apikeys"),
    );
    let known_apis = remembered(apis, watching(), &lists.apis, health.watch("waterdataapis"));
    let known_secrets = remembered(
        secrets.clone(),
        watching().labels(KEY_LABEL),
        &lists.secrets,
        health.watch("secrets"),
    );
    let (revisit, revisits) = mpsc::unbounded();
    let (revisit_apis, api_revisits) = mpsc::unbounded();
    let (directories, opened) = Directories::new(election.clone(), metrics.clone());
    let context = Arc::new(Context {
        client: client.clone(),
        scope,
        namespace: namespace.into(),
        api_namespaces: config.api_namespaces(),
        events: events.clone(),
        keys: known_keys.store.clone(),
        apis: known_apis.store.clone(),
        secrets: known_secrets.store.clone(),
        revisit,
        revisit_apis,
        memory: Memory::default(),
        directories,
        backoff: backoff::Backoff::default(),
        metrics: metrics.clone(),
    });
    let controller = Controller::for_stream(known_keys.changes, known_keys.store.clone());
    let keys_passes = with_key_triggers(controller, known_secrets.changes, &context, &health)
        .reconcile_on(revisits)
        .with_config(Config::default().concurrency(CONCURRENCY))
        .trigger_backoff(NoPause)
        .run(
            lists.then(keys::reconcile),
            keys::retry,
            Arc::clone(&context),
        );
    // A status that a pass has written is no reason for another.
    let declared = known_apis.changes.predicate_filter(
        predicates::generation.combine(predicates::annotations),
        Default::default(),
    );
    let controller = Controller::for_stream(declared, known_apis.store);
    let api_passes = with_child_triggers(controller, &context, &health)
        .reconcile_on(api_revisits)
        .with_config(Config::default().concurrency(CONCURRENCY))
        .trigger_backoff(NoPause)
        .run(
            lists.then(installation::reconcile),
            installation::retry,
            Arc::clone(&context),
        );
    let care = opened.for_each_concurrent(None, |open| care::of(open, Arc::clone(&context)));
    tokio::select! {
        () = care => error!("the key directories are not looked after any more"),
        () = keys_passes.for_each(|_| ready(())) => error!("the controller of ApiKeys has ended"),
        () = api_passes.for_each(|_| ready(())) => error!("the controller of WaterDataApis has ended"),
        () = health.until_hopeless() => error!("all watches have failed for minutes"),
        never = relist::look("apikeys", keys, None, known_keys.store, &known_keys.restart) => match never {},
        never = relist::look("secrets", secrets, Some(KEY_LABEL), known_secrets.store, &known_secrets.restart) => match never {},
    }
}

/// An ApiKey is looked at again when its Secret or its namespace changes.
fn with_key_triggers(
    controller: Controller<Key>,
    secrets: Changes<PartialObjectMeta<Secret>>,
    context: &Arc<Context>,
    health: &Health,
) -> Controller<Key> {
    let controller = controller.watches_stream(secrets, |secret| {
        let name = secret.labels().get(KEY_LABEL)?;
        Some(ObjectRef::<Key>::new(name).within(secret.metadata.namespace.as_deref()?))
    });
    if context.scope == Scope::Namespaced {
        return controller;
    }
    let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(context.client.clone());
    let namespaces = changes(namespaces, watching(), health.watch("namespaces"));
    let keys = context.keys.clone();
    controller.watches_stream(namespaces, move |namespace| {
        keys_where(&keys, |key| {
            key.metadata.namespace == namespace.metadata.name
        })
    })
}

/// A WaterDataApi is looked at again when a child of it or a Secret that it uses changes.
fn with_child_triggers(
    controller: Controller<Installation>,
    context: &Arc<Context>,
    health: &Health,
) -> Controller<Installation> {
    let apis = context.apis.clone();
    let others = watching().labels(&format!("!{KEY_LABEL}"));
    let owned = watching().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
    controller
        .owns_stream(metadata::<ServiceAccount>(context, &owned, health))
        .owns_stream(metadata::<Service>(context, &owned, health))
        .owns_stream(metadata::<NetworkPolicy>(context, &owned, health))
        .owns_stream(metadata::<PodDisruptionBudget>(context, &owned, health))
        .owns_stream(metadata::<Job>(context, &owned, health))
        .owns_stream(metadata::<Deployment>(context, &owned, health))
        .owns_stream(metadata::<Ingress>(context, &owned, health))
        .watches_stream(
            metadata::<Secret>(context, &others, health),
            move |secret| {
                let uses = |api: &WaterDataApi| {
                    let name = secret.name_any();
                    let stores = [
                        &api.spec.postgres.secret_ref.name,
                        &api.spec.redis.secret_ref.name,
                    ];
                    api.namespace() == secret.namespace()
                        && (stores.contains(&&name)
                            || name == format!("{}-identity", api.name_any()))
                };
                let using = apis.state_filter(|api| api.0.as_ref().is_ok_and(uses));
                using
                    .iter()
                    .map(|api| ObjectRef::from_obj(&**api))
                    .collect::<Vec<_>>()
            },
        )
}

/// Changes of the metadata of one kind, in the namespaces that hold WaterDataApis.
fn metadata<K>(
    context: &Context,
    config: &watcher::Config,
    health: &Health,
) -> Changes<PartialObjectMeta<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + k8s_openapi::Resource
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + 'static,
{
    let watches = context.api_namespaces.iter().map(|namespace| {
        let probe = health.watch(<K as k8s_openapi::Resource>::URL_PATH_SEGMENT);
        changes(context.api(namespace), config.clone(), probe)
    });
    select_all(watches).boxed()
}
