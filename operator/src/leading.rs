//! What a leader does: two controllers over one set of watches, and the care of the key directories,
//! until the leadership is lost.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::{Stream, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::controller::{Action, Config, Error};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tracing::{error, warn};

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
use crate::watches::{Changes, Lists, NoPause, Patience, metadata, remembered};
use crate::{installation, keys};

/// Objects at once: enough for 10 000 keys in seconds, few enough for one connection to Redis.
const CONCURRENCY: u16 = 24;
/// Watches that fail for this long without a success end the process: a new one relists everything.
const HOPELESS: Duration = Duration::from_secs(300);
/// A failure after so long a silence begins a new count.
const FORGOTTEN: Duration = Duration::from_secs(120);

type Key = DeserializeGuard<ApiKey>;
type Installation = DeserializeGuard<WaterDataApi>;

/// Runs the controllers. Returns only when watches have failed for minutes; dropped when the
/// leadership is lost, which ends every pass under way.
pub async fn lead(
    client: &Client,
    config: &OperatorConfig,
    election: &Election,
    metrics: &Metrics,
) {
    let (scope, namespace) = (config.scope, config.pod_namespace.as_str());
    let lists = Lists::default();
    let keys: Api<Key> = Context::watched(client, scope, namespace);
    let apis: Api<Installation> = Context::watched(client, scope, namespace);
    let secrets: Api<PartialObjectMeta<Secret>> = Context::watched(client, scope, namespace);
    let (keys, key_changes) = remembered(keys, watching(), &lists.keys);
    let (apis, api_changes) = remembered(apis, watching(), &lists.apis);
    let (secrets, secret_changes) =
        remembered(secrets, watching().labels(KEY_LABEL), &lists.secrets);
    let (revisit, revisits) = mpsc::unbounded();
    let (revisit_apis, api_revisits) = mpsc::unbounded();
    let (directories, opened) = Directories::new(election.clone(), metrics.clone());
    let context = Arc::new(Context {
        client: client.clone(),
        scope,
        namespace: namespace.into(),
        events: Events::new(client.clone(), &config.pod_name),
        keys: keys.clone(),
        apis: apis.clone(),
        secrets,
        revisit,
        revisit_apis,
        memory: Memory::default(),
        directories,
        backoff: backoff::Backoff::default(),
        metrics: metrics.clone(),
    });
    let keys = with_key_triggers(
        Controller::for_stream(key_changes, keys),
        secret_changes,
        revisits,
        &context,
    )
    .with_config(Config::default().concurrency(CONCURRENCY))
    .trigger_backoff(NoPause)
    .run(
        lists.then(keys::reconcile),
        keys::retry,
        Arc::clone(&context),
    );
    let installations = with_child_triggers(Controller::for_stream(api_changes, apis), &context)
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
        () = until_hopeless(keys, metrics) => error!("the watches of ApiKeys have failed for minutes"),
        () = until_hopeless(installations, metrics) => error!("the watches of WaterDataApis have failed for minutes"),
    }
}

/// An ApiKey is looked at again when its Secret or its namespace changes, and when a pass over its
/// WaterDataApi asks for it.
fn with_key_triggers(
    controller: Controller<Key>,
    secrets: impl Stream<Item = Result<PartialObjectMeta<Secret>, watcher::Error>> + Send + 'static,
    revisits: mpsc::UnboundedReceiver<ObjectRef<Key>>,
    context: &Arc<Context>,
) -> Controller<Key> {
    let controller = controller
        .watches_stream(secrets, |secret| {
            let name = secret.labels().get(KEY_LABEL)?;
            Some(ObjectRef::<Key>::new(name).within(secret.metadata.namespace.as_deref()?))
        })
        .reconcile_on(revisits);
    if context.scope == Scope::Namespaced {
        return controller;
    }
    let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(context.client.clone());
    let namespaces = watcher(namespaces, watching())
        .backoff(Patience::default())
        .touched_objects();
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
) -> Controller<Installation> {
    let apis = context.apis.clone();
    let others = watching().labels(&format!("!{KEY_LABEL}"));
    controller
        .owns_stream(children::<ServiceAccount>(context))
        .owns_stream(children::<Service>(context))
        .owns_stream(children::<NetworkPolicy>(context))
        .owns_stream(children::<PodDisruptionBudget>(context))
        .owns_stream(children::<Job>(context))
        .owns_stream(children::<Deployment>(context))
        .owns_stream(children::<Ingress>(context))
        .watches_stream(metadata::<Secret>(context, others), move |secret| {
            let uses = |api: &WaterDataApi| {
                let name = secret.name_any();
                let stores = [
                    &api.spec.postgres.secret_ref.name,
                    &api.spec.redis.secret_ref.name,
                ];
                api.namespace() == secret.namespace()
                    && (stores.contains(&&name) || name == format!("{}-identity", api.name_any()))
            };
            let using = apis.state_filter(|api| api.0.as_ref().is_ok_and(uses));
            using
                .iter()
                .map(|api| ObjectRef::from_obj(&**api))
                .collect::<Vec<_>>()
        })
}

fn children<K>(context: &Context) -> Changes<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + 'static,
{
    metadata(
        context,
        watching().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1)),
    )
}

/// Drives a controller until its watches have failed for minutes.
async fn until_hopeless<K: Resource, E: std::error::Error + 'static>(
    passes: impl Stream<Item = Result<(ObjectRef<K>, Action), Error<E, watcher::Error>>>,
    metrics: &Metrics,
) {
    let mut passes = std::pin::pin!(passes);
    let mut failing: Option<(Instant, Instant)> = None;
    while let Some(pass) = passes.next().await {
        let Err(Error::QueueError(failure)) = pass else {
            continue;
        };
        warn!(error = %failure, "a watch failed and is tried again");
        metrics.watch_failures.inc();
        let now = Instant::now();
        let since = failing
            .filter(|(_, last)| last.elapsed() < FORGOTTEN)
            .map_or(now, |(since, _)| since);
        if since.elapsed() >= HOPELESS {
            return;
        }
        failing = Some((since, now));
    }
}
