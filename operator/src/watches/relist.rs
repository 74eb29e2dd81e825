//! Objects that are deleted while a watch is away are missing from the next list, and nothing says so.

use std::collections::HashSet;

use futures::{Stream, StreamExt, stream};
use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{Error, Event};

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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;
    use kube::api::ObjectMeta;
    use kube::runtime::reflector;

    use super::*;

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
