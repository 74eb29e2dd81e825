//! Pods of the gates in the namespaces that hold WaterDataApis, as a watch reports them.
//!
//! The right to list them is a Role in their namespace. When Kubernetes deletes a namespace, it ends the pods first
//! (KEP-5080), and then everything else in any order, the Role before the ApiKeys too. Nothing can be created there any
//! more, so a question that waits for that right has no end. Where a list of pods is refused and the namespace is being
//! deleted or is gone, what is known without it decides: the last report of the watch, and the leases. A pod in that
//! last report may have ended since: it counts until its namespace is gone or has been deleted for a gate's grace and
//! ten seconds. A lease of a pod whose end was reported counts for nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::select_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio::time::Instant;
use water_domain::Timestamp;
use water_keystore::MARGIN;
use water_resources::api_key::ApiName;

use crate::client::{Deletion, deletion, is_terminating};
use crate::clock;
use crate::inquiry::Inquiry;
use crate::installation::render::{GATE_GRACE, Part};
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::watches::Changes;
use crate::watches::cache::{Cache, OnRefusal};
use crate::watches::health::Health;

/// Label of every gate's pod.
const GATES: &str = "app.kubernetes.io/name=water-gate";
/// Label with the part that a pod belongs to.
const NAME: &str = "app.kubernetes.io/name";
/// Label with the name of a pod's WaterDataApi.
const INSTANCE: &str = "app.kubernetes.io/instance";

pub struct GatePods {
    client: Client,
    caches: HashMap<String, Cache<Pod>>,
    ended: Arc<Mutex<EndTimes>>,
}

/// Times at which pods were known to have ended, by uid.
type EndTimes = HashMap<String, Instant>;
/// Time for which the end of a pod is remembered: a gate's lease is dropped an hour after its last renewal, and its pod
/// need not be known for longer.
const REMEMBERED: Duration = Duration::from_secs(2 * 3600);

impl GatePods {
    /// Creates caches that know no pod before the watches are taken.
    pub fn new(client: &Client, namespaces: &[String], health: &Health) -> (Self, Changes<Pod>) {
        let ended = Arc::<Mutex<EndTimes>>::default();
        let watch = |namespace: &String| {
            let pods = Api::namespaced(client.clone(), namespace);
            let (cache, changes) =
                Cache::new("pods", pods, Some(GATES), OnRefusal::Unknown, health);
            let last_word = Arc::new(LastWord {
                client: client.clone(),
                namespace: namespace.clone(),
                pods: cache.store.clone(),
                ended: Arc::clone(&ended),
                asked: unasked(namespace, &health.metrics),
            });
            let changes = changes.then(move |change| {
                let last_word = Arc::clone(&last_word);
                async move {
                    match &change {
                        Ok(pod) => last_word.note(pod),
                        Err(error) if is_forbidden(error) => last_word.expire().await,
                        Err(_) => {}
                    }
                    change
                }
            });
            ((namespace.clone(), cache), changes.boxed())
        };
        let (caches, changes): (_, Vec<_>) = namespaces.iter().map(watch).unzip();
        let pods = Self {
            client: client.clone(),
            caches,
            ended,
        };
        (pods, select_all(changes).boxed())
    }

    /// Pods of a WaterDataApi's gates that the watch has reported; none in a namespace that holds no WaterDataApi.
    pub fn for_api(&self, api: &ApiName) -> Vec<Pod> {
        let Some(cache) = self.caches.get(&api.namespace) else {
            return Vec::new();
        };
        let ended = lock(&self.ended);
        let is_its = |pod: &Pod| {
            pod.labels().get(INSTANCE) == Some(&api.name)
                && !ended.contains_key(pod.uid().as_deref().unwrap_or_default())
        };
        let pods = cache.store.state_filter(is_its);
        pods.iter().map(|pod| (**pod).clone()).collect()
    }

    /// Whether the pod with this uid is known to have ended.
    pub fn has_ended(&self, uid: &str) -> bool {
        lock(&self.ended).contains_key(uid)
    }

    /// Returns once [`GatePods::for_api`] includes every pod that there was when this was called, or when it is the last
    /// report.
    pub async fn caught_up(&self, api: &ApiName) -> kube::Result<Knowledge> {
        let Some(cache) = self.caches.get(&api.namespace) else {
            return Ok(Knowledge::Complete);
        };
        let caught_up = async {
            if !*cache.told.borrow() {
                // A watch that is refused never reports why.
                let pods = Api::<Pod>::namespaced(self.client.clone(), &api.namespace);
                pods.list_metadata(&ListParams::default().labels(GATES).limit(1))
                    .await?;
            }
            cache.caught_up().await
        };
        let caught_up = unless_ending(&self.client, &api.namespace, caught_up.await).await?;
        Ok(caught_up.map_or(Knowledge::LastWord, |()| Knowledge::Complete))
    }
}

/// Pods of one namespace as the watch showed them last.
struct LastWord {
    client: Client,
    namespace: String,
    pods: Store<Pod>,
    ended: Arc<Mutex<EndTimes>>,
    /// Question whether the namespace is being deleted. A change that waits for the pods asks it too, and reports a
    /// failure in a condition.
    asked: Inquiry,
}

/// Inquiry into the deletion of a namespace.
fn unasked(namespace: &str, metrics: &Metrics) -> Inquiry {
    let failed = format!("nobody can ask whether namespace {namespace} is being deleted");
    Inquiry::new(failed, metrics)
}

impl LastWord {
    /// Notes the end of a pod that the watch reports and does not know any more.
    fn note(&self, pod: &Pod) {
        let known = self.pods.get(&ObjectRef::from_obj(pod));
        if known.is_none_or(|known| known.uid() != pod.uid()) {
            self.end(pod.uid());
        }
    }

    fn end(&self, uids: impl IntoIterator<Item = String>) {
        let (mut ended, now) = (lock(&self.ended), Instant::now());
        ended.retain(|_, since| now.duration_since(*since) < REMEMBERED);
        ended.extend(uids.into_iter().map(|uid| (uid, now)));
    }

    /// Takes the pods for ended, if their namespace is gone or its deletion began long ago. Called while the watch is
    /// refused.
    async fn expire(&self) {
        let progress = deletion(&self.client, &self.namespace).await;
        self.asked.note(&progress);
        if progress.is_ok_and(|progress| have_ended(progress, clock::now())) {
            let pods = self.pods.state();
            self.end(pods.iter().filter_map(|pod| pod.uid()));
        }
    }
}

/// Whether the pods of a namespace in this state have ended, where nobody can see them any more.
fn have_ended(deletion: Deletion, now: Timestamp) -> bool {
    match deletion {
        Deletion::NotAsked => false,
        Deletion::Asked(asked) => {
            let since = now.as_millis() - asked.as_millis();
            since >= (GATE_GRACE + MARGIN).as_millis() as i64
        }
        Deletion::Done => true,
    }
}

/// Whether a watch was refused for lack of a right.
fn is_forbidden(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => status.is_forbidden(),
        _ => false,
    }
}

/// Extent of what is known of the pods in a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Knowledge {
    /// Every pod.
    Complete,
    /// The last report of the watch, if it has listed them at all: they cannot be listed any more.
    LastWord,
}

/// The gates' pods of a WaterDataApi, asked for afresh; `None`: they cannot be listed any more.
pub async fn list_gates(client: &Client, api: &ApiName) -> kube::Result<Option<Vec<Pod>>> {
    let listed = list(client, api, Part::Gate).await;
    unless_ending(client, &api.namespace, listed).await
}

/// Result of a list of pods; `None` if it was refused in a namespace that is being deleted or is gone.
async fn unless_ending<T>(
    client: &Client,
    namespace: &str,
    listed: kube::Result<T>,
) -> kube::Result<Option<T>> {
    if let Err(kube::Error::Api(status)) = &listed
        && status.is_forbidden()
        && is_terminating(client, namespace).await?
    {
        return Ok(None);
    }
    listed.map(Some)
}

/// The pods of a part of a WaterDataApi, asked for afresh.
pub async fn list(client: &Client, api: &ApiName, part: Part) -> kube::Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &api.namespace);
    let selector = format!("{NAME}={},{INSTANCE}={}", part.program(), api.name);
    let listed = pods.list(&ListParams::default().labels(&selector)).await?;
    Ok(listed.items)
}

#[cfg(test)]
mod tests {
    use kube::Config;
    use kube::api::ObjectMeta;
    use kube::runtime::reflector;

    use super::*;

    #[tokio::test]
    async fn a_question_about_a_namespace_without_an_answer_is_counted_and_ends_no_pod() {
        let client = Client::try_from(Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap();
        let (metrics, ended) = (Metrics::default(), Arc::<Mutex<EndTimes>>::default());
        let (pods, mut writer) = reflector::store();
        let pod = Pod {
            metadata: ObjectMeta {
                name: Some("gate-0".into()),
                namespace: Some("team".into()),
                uid: Some("pod".into()),
                ..ObjectMeta::default()
            },
            ..Pod::default()
        };
        writer.apply_watcher_event(&watcher::Event::Apply(pod));
        let last_word = LastWord {
            client,
            namespace: "team".into(),
            pods,
            ended: Arc::clone(&ended),
            asked: unasked("team", &metrics),
        };
        last_word.expire().await;
        assert_eq!(metrics.api_server_failures(), 1);
        assert!(lock(&ended).is_empty());
    }

    #[test]
    fn unseen_pods_have_ended_with_their_namespace_or_130_seconds_after_its_deletion_began() {
        let at = |second: i64| Timestamp::from_millis(second * 1000).unwrap();
        let asked = Deletion::Asked(at(1000));
        assert!(!have_ended(asked, at(1129)) && have_ended(asked, at(1130)));
        assert!(!have_ended(Deletion::NotAsked, at(9999)));
        assert!(have_ended(Deletion::Done, at(0)));
    }
}
