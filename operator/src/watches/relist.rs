//! What a watch can lose. Objects that are deleted while a watch is away are missing from the next
//! list, and nothing says so: [`with_lost_deletions`] does. A watch that goes on without telling of
//! changes is found by [`look`], which compares what it told with a list of metadata now and then, and
//! is begun anew.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Debug;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{Error, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::listing::{Versions, known, list};

/// Between two lists.
const EVERY: Duration = Duration::from_secs(600);
/// A watch is seconds behind a list at worst.
const SETTLED_AFTER: Duration = Duration::from_secs(30);
/// The events, with a `Delete` of each object that `store` knows and a new list does not.
pub fn with_lost_deletions<K>(
    events: impl Stream<Item = Result<Event<K>, Error>> + Send,
    store: Store<K>,
) -> impl Stream<Item = Result<Event<K>, Error>> + Send
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    let mut listed: HashSet<ObjectRef<K>> = HashSet::new();
    events.flat_map(move |event| {
        let mut lost = Vec::new();
        match &event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.insert(ObjectRef::from_obj(object));
            }
            Ok(Event::InitDone) => {
                lost = store.state_filter(|known| !listed.contains(&ObjectRef::from_obj(known)));
                listed = HashSet::new();
            }
            Ok(Event::Apply(_) | Event::Delete(_)) | Err(_) => {}
        }
        let lost = lost
            .into_iter()
            .map(|object| Ok(Event::Delete((*object).clone())));
        stream::iter(lost.chain([event]))
    })
}

/// Lists the metadata of what is watched now and then, and asks for a new watch when the one that
/// fills `store` has missed something.
pub async fn look<K>(
    kind: &'static str,
    api: Api<K>,
    labels: Option<&str>,
    store: Store<K>,
    restart: &Notify,
) -> Infallible
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    loop {
        sleep(EVERY).await;
        match missed(&api, labels, &store).await {
            Ok(0) => {}
            Ok(objects) => {
                warn!(
                    kind,
                    objects, "a watch has missed changes and is begun anew"
                );
                restart.notify_one();
            }
            Err(error) => debug!(kind, error = %error, "cannot compare a watch with a list"),
        }
    }
}

async fn missed<K>(api: &Api<K>, labels: Option<&str>, store: &Store<K>) -> kube::Result<usize>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let first = behind(&list(api, labels).await?.versions, &known(store));
    if first.is_empty() {
        return Ok(0);
    }
    sleep(SETTLED_AFTER).await;
    let second = behind(&list(api, labels).await?.versions, &known(store));
    Ok(stuck(&first, &second))
}

/// Objects of which the watch tells something else than the list, with what the watch tells.
fn behind(listed: &Versions, known: &Versions) -> Versions {
    let objects = listed.keys().chain(known.keys());
    let differing = objects.filter(|object| listed.get(object) != known.get(object));
    differing
        .map(|object| (object.clone(), known.get(object).cloned().flatten()))
        .collect()
}

/// How many objects the watch was behind with twice, telling the same both times: it was not just slow.
fn stuck(first: &Versions, second: &Versions) -> usize {
    let same = |(object, told): &(&_, &Option<String>)| second.get(*object) == Some(*told);
    first.iter().filter(same).count()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;
    use kube::api::ObjectMeta;
    use kube::runtime::reflector;

    use super::*;

    fn versions(objects: &[(&str, &str)]) -> Versions {
        let entry = |(name, version): &(&str, &str)| {
            ((None, (*name).to_owned()), Some((*version).to_owned()))
        };
        objects.iter().map(entry).collect()
    }

    #[test]
    fn a_watch_that_tells_the_same_twice_and_not_what_is_listed_has_missed_it() {
        let known = versions(&[("a", "1"), ("b", "1"), ("gone", "1")]);
        let first = behind(&versions(&[("a", "1"), ("b", "2"), ("new", "1")]), &known);
        assert_eq!(stuck(&first, &first), 3);
        let caught_up = versions(&[("a", "1"), ("b", "2"), ("new", "1")]);
        assert_eq!(stuck(&first, &behind(&caught_up, &caught_up)), 0);
    }

    #[test]
    fn an_object_that_changes_all_the_time_is_not_missed() {
        let first = behind(&versions(&[("a", "2")]), &versions(&[("a", "1")]));
        let second = behind(&versions(&[("a", "4")]), &versions(&[("a", "3")]));
        assert_eq!(stuck(&first, &second), 0);
    }

    fn map(name: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.into()),
                namespace: Some("team".into()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    #[tokio::test]
    async fn what_a_new_list_lacks_is_told_as_deleted() {
        let (store, writer) = reflector::store();
        let list = |names: &[&str]| {
            let objects = names.iter().map(|name| Ok(Event::InitApply(map(name))));
            let events = [Ok(Event::Init)].into_iter().chain(objects);
            events.chain([Ok(Event::InitDone)]).collect::<Vec<_>>()
        };
        let lists = [list(&["kept", "lost"]), list(&["kept", "new"])];
        let events = stream::iter(lists.into_iter().flatten());
        let events = reflector::reflector(writer, with_lost_deletions(events, store.clone()));
        let deleted = events.filter_map(async |event| match event {
            Ok(Event::Delete(object)) => Some(object.name_any()),
            _ => None,
        });
        assert_eq!(deleted.collect::<Vec<_>>().await, ["lost"]);
        assert_eq!(store.state().len(), 2);
    }
}
