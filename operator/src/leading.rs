//! Work of a leader: two controllers over the caches and further watches, and the care of the key directories, until
//! the leadership is lost.

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::stream::select_all;
use futures::{StreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::Config;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::error;
use water_resources::WaterDataApi;
use water_resources::api_key::KEY_LABEL;

use crate::backoff;
use crate::caches::{Caches, Follower, Installation, Key};
use crate::client::watching;
use crate::config::{OperatorConfig, Scope};
use crate::context::{Context, keys_in};
use crate::definitions::Definitions;
use crate::directories::{Directories, OpenDirectories, care};
use crate::events::Events;
use crate::gate_pods::GatePods;
use crate::inquiry::Inquiry;
use crate::installation::render::MANAGED_BY;
use crate::keys::memory::Memory;
use crate::keys::queues::Queues;
use crate::keys::secret::Secrets;
use crate::lease::Election;
use crate::metrics::Metrics;
use crate::watches::health::Health;
use crate::watches::{Changes, changes, once_told};
use crate::{installation, keys};

/// WaterDataApis that are reconciled at once.
const CONCURRENCY: u16 = 24;
/// Pause between two tries to ask the API server what there is. No pass begins before.
const AGAIN: Duration = Duration::from_secs(1);

/// Resources of a leader that outlive its leadership.
#[derive(Clone, Copy)]
pub struct LeaderResources<'a> {
    pub client: &'a Client,
    pub config: &'a OperatorConfig,
    pub election: &'a Election,
    pub caches: &'a Arc<Caches>,
    pub health: &'a Health,
    pub events: &'a Events,
    pub metrics: &'a Metrics,
}

/// Runs the controllers. Returns only when all watches have failed for minutes; dropped when the
/// leadership is lost, which ends every pass under way.
pub async fn lead(
    resources: LeaderResources<'_>,
    directories: Arc<Directories>,
    opened: OpenDirectories,
) {
    let LeaderResources { caches, health, .. } = resources;
    let (keys, revisits) = mpsc::unbounded();
    let (apis, api_revisits) = mpsc::unbounded();
    let memory = Arc::<Memory>::default();
    let follower = Follower {
        keys,
        apis,
        memory: Arc::downgrade(&memory),
    };
    let api_namespaces = resources.config.api_namespaces();
    let (gate_pods, pod_changes) = GatePods::new(resources.client, &api_namespaces, health);
    let context = Arc::new(Context {
        client: resources.client.clone(),
        scope: resources.config.scope,
        namespace: resources.config.pod_namespace.clone(),
        api_namespaces,
        events: resources.events.clone(),
        caches: Arc::clone(caches),
        keys: caches.keys.store.clone(),
        apis: caches.apis.store.clone(),
        secrets: Secrets::new(resources.client.clone(), caches.secrets.stores()),
        revisit: follower.clone(),
        memory,
        queues: Queues::default(),
        directories,
        gate_pods,
        definitions: Definitions::new(resources.metrics),
        backoff: backoff::Backoff::default(),
        metrics: resources.metrics.clone(),
    });
    resources.metrics.leader.follow(&context);
    caches.follow(follower);
    let begun = watch::Sender::new(false);
    let (keys, apis) = (caches.keys.told.clone(), caches.apis.told.clone());
    let for_apis = vec![apis.clone(), begun.subscribe()];
    let mut for_keys = caches.secrets.told();
    for_keys.extend([keys, apis, begun.subscribe()]);
    // What there is and what changes comes from the caches.
    let controller = Controller::for_stream(stream::pending(), caches.keys.store.clone());
    let keys_passes = with_namespaces(controller, &context, health)
        // Passes wait in the queues of their directories.
        .reconcile_on(revisits)
        .run(
            once_told(for_keys, keys::reconcile),
            keys::retry,
            Arc::clone(&context),
        );
    let controller = Controller::for_stream(stream::pending(), caches.apis.store.clone());
    let api_passes = with_child_triggers(controller, &context, health)
        .reconcile_on(api_revisits)
        .with_config(Config::default().concurrency(CONCURRENCY))
        .run(
            once_told(for_apis, installation::reconcile),
            installation::retry,
            Arc::clone(&context),
        );
    let definitions = context
        .definitions
        .follow(&context.client, || context.revisit_apis());
    let care = opened.for_each_concurrent(None, |open| care::run(open, Arc::clone(&context)));
    tokio::select! {
        never = begin(caches, resources.metrics, &begun) => match never {},
        never = definitions => match never {},
        () = pod_changes.for_each(|_| ready(())) => error!("the watch of the gates' pods has ended"),
        () = care => error!("the key directories are not looked after any more"),
        () = keys_passes.for_each(|_| ready(())) => error!("the controller of ApiKeys has ended"),
        () = api_passes.for_each(|_| ready(())) => error!("the controller of WaterDataApis has ended"),
        () = health.until_hopeless() => error!("all watches have failed for minutes"),
    }
}

/// Lets the passes begin once the cache of WaterDataApis is not older than the leadership: what a standby received may
/// be, and an old spec would be rolled out.
async fn begin(caches: &Caches, metrics: &Metrics, begun: &watch::Sender<bool>) -> Infallible {
    let apis = &caches.apis;
    until_listed(move || apis.caught_up(), metrics).await;
    begun.send_replace(true);
    pending().await
}

/// Lists the WaterDataApis until that succeeds.
async fn until_listed<F>(list: impl Fn() -> F, metrics: &Metrics)
where
    F: Future<Output = kube::Result<()>>,
{
    let unlisted = "the WaterDataApis cannot be listed, so that no pass begins";
    let inquiry = Inquiry::new(unlisted, metrics);
    loop {
        let listed = list().await;
        inquiry.note(&listed);
        if listed.is_ok() {
            return;
        }
        sleep(backoff::spread(AGAIN, backoff::chance())).await;
    }
}

/// Has an ApiKey reconciled again when its namespace changes.
fn with_namespaces(
    controller: Controller<Key>,
    context: &Arc<Context>,
    health: &Health,
) -> Controller<Key> {
    if context.scope == Scope::Namespaced {
        return controller;
    }
    let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(context.client.clone());
    let namespaces = changes(namespaces, watching(), health.watch("namespaces"));
    let keys = context.keys.clone();
    controller.watches_stream(namespaces, move |namespace| {
        keys_in(&namespace.name_any(), &keys)
    })
}

/// Has a WaterDataApi reconciled again when a child of it or a Secret that it uses changes.
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
                    api.namespace() == secret.namespace() && names(api, &secret.name_any())
                };
                let using = apis.state_filter(|api| api.0.as_ref().is_ok_and(uses));
                using
                    .iter()
                    .map(|api| ObjectRef::from_obj(&**api))
                    .collect::<Vec<_>>()
            },
        )
}

/// Whether a WaterDataApi uses the Secret of that name.
fn names(api: &WaterDataApi, secret: &str) -> bool {
    let spec = &api.spec;
    let given = [&spec.postgres.secret_ref.name, &spec.redis.secret_ref.name];
    let own = ["identity", "portal"].map(|suffix| format!("{}-{suffix}", api.name_any()));
    let portal = spec.portal.as_ref();
    let client = portal.map(|portal| &portal.oidc.client_secret_ref.name);
    let mut used = given.into_iter().chain(client).chain(&own);
    used.any(|used| used == secret)
}

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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;
    use crate::sample;

    #[tokio::test(start_paused = true)]
    async fn each_failed_list_before_the_first_pass_is_counted() {
        let address = "http://127.0.0.1:9".parse().unwrap();
        let client = Client::try_from(kube::Config::new(address)).unwrap();
        let (metrics, asked) = (Metrics::default(), Cell::new(0));
        let list = || {
            asked.set(asked.get() + 1);
            let (client, is_last) = (client.clone(), asked.get() == 3);
            async move {
                if is_last {
                    return Ok(());
                }
                client.apiserver_version().await.map(drop)
            }
        };
        until_listed(list, &metrics).await;
        assert_eq!((asked.get(), metrics.api_server_failures()), (3, 2));
    }

    #[test]
    fn the_stores_secrets_the_portals_and_its_own_are_those_that_a_water_data_api_uses() {
        let mut api = sample::api("water-data", "water");
        assert!(!names(&api, "portal-client"));
        let portal = json!({
            "url": "https://water.example",
            "oidc": {
                "issuer": "https://id.example",
                "clientId": "water-portal",
                "clientSecretRef": { "name": "portal-client", "key": "client-secret" },
            },
        });
        api.spec.portal = Some(serde_json::from_value(portal).unwrap());
        for secret in [
            "postgres",
            "redis",
            "water-data-identity",
            "water-data-portal",
            "portal-client",
        ] {
            assert!(names(&api, secret), "{secret}");
        }
        for secret in ["identity", "other-identity", "acme-apikey"] {
            assert!(!names(&api, secret), "{secret}");
        }
    }
}
