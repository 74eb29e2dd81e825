//! List of the metadata of all objects of a kind, and comparison with what a watch has reported.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::BufReader;
use std::panic::resume_unwind;

use kube::api::ListParams;
use kube::core::{ObjectList, Request};
use kube::runtime::reflector::Store;
use kube::{Api, Error, Resource, ResourceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;
use tokio_util::compat::FuturesAsyncReadCompatExt;
use tokio_util::io::SyncIoBridge;

/// Objects of one kind by namespace and name, each with its resourceVersion.
pub type Versions = HashMap<(Option<String>, String), Option<String>>;

/// State of all objects of a kind at one moment.
pub struct Listing {
    pub versions: Versions,
    pub at: Option<String>,
}

/// Fields that are read of an object. Its managed fields are most of what the API server sends, and to decode those of
/// 10 000 objects takes longer than to send them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    namespace: Option<String>,
    name: String,
    uid: String,
    resource_version: Option<String>,
}

/// An object of which only this is read.
#[derive(Clone, Debug, Deserialize)]
struct Item<M> {
    metadata: M,
}

#[derive(Clone, Debug, Deserialize)]
struct LabelledObject {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

pub fn known<K>(store: &Store<K>) -> Versions
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let objects = store.state().into_iter();
    objects
        .map(|object| {
            let place = (object.namespace(), object.name_any());
            (place, object.resource_version())
        })
        .collect()
}

/// The uids of all objects, as they are when this is called or later.
pub async fn uids<K: Resource + Clone>(api: &Api<K>) -> kube::Result<HashSet<String>> {
    let listed = list::<_, Identity>(api, None).await?;
    let uids = listed.items.into_iter().map(|item| item.metadata.uid);
    Ok(uids.collect())
}

/// The labels of all objects of a kind without namespaces, by their names.
pub async fn labels<K: Resource + Clone>(
    api: &Api<K>,
) -> kube::Result<HashMap<String, BTreeMap<String, String>>> {
    let listed = list::<_, LabelledObject>(api, None).await?;
    let items = listed.items.into_iter();
    let labelled = items.map(|Item { metadata }| (metadata.name, metadata.labels));
    Ok(labelled.collect())
}

/// Asks for all objects in one answer. The API server gives it from its cache, once that is as new as
/// etcd; pages come from etcd when the last change is older than the latest compaction, and a stream of
/// events costs it more. 10 000 objects are 22 MB, so they are decoded as they come.
async fn list<K, M>(api: &Api<K>, labels: Option<&str>) -> kube::Result<ObjectList<Item<M>>>
where
    K: Resource + Clone,
    M: DeserializeOwned + Clone + Send + 'static,
{
    let params = ListParams {
        label_selector: labels.map(Into::into),
        ..ListParams::default()
    };
    let request = Request::new(api.resource_url()).list_metadata(&params);
    let request = request.map_err(Error::BuildRequest)?;
    let client = api.clone().into_client();
    let answer = client.request_stream(request).await?;
    let answer = SyncIoBridge::new(answer.compat());
    let decoded = spawn_blocking(|| serde_json::from_reader(BufReader::new(answer))).await;
    let decoded = decoded.unwrap_or_else(|error| resume_unwind(error.into_panic()));
    decoded.map_err(Error::SerdeError)
}

impl Listing {
    /// Lists all objects, as they are when this is called or later.
    pub async fn fetch<K: Resource + Clone>(
        api: &Api<K>,
        labels: Option<&str>,
    ) -> kube::Result<Self> {
        let listed = list::<_, Identity>(api, labels).await?;
        let versions = listed.items.into_iter().map(|Item { metadata }| {
            let place = (metadata.namespace, metadata.name);
            (place, metadata.resource_version)
        });
        Ok(Self {
            versions: versions.collect(),
            at: listed.metadata.resource_version,
        })
    }

    /// Whether what is known includes everything that had happened when this was listed: each object
    /// at its version or a later one, and of others only those that were created since.
    pub fn is_included_in(&self, known: &Versions) -> bool {
        let is_there = |(object, listed): (&_, &Option<String>)| {
            let told = known.get(object);
            told.is_some_and(|told| revision(told) >= revision(listed))
        };
        let is_new = |(object, told): (&_, &Option<String>)| {
            self.versions.contains_key(object) || revision(told) > revision(&self.at)
        };
        self.versions.iter().all(is_there) && known.iter().all(is_new)
    }

    /// Whether something that was known before this was listed was written after the state that etcd was restored
    /// from: later than the same object is now, or than everything.
    pub fn has_lost(&self, known: &Versions) -> bool {
        known.iter().any(|(object, told)| {
            let now = self.versions.get(object).unwrap_or(&self.at);
            revision(told) > revision(now)
        })
    }
}

/// Resource version as a number: a revision of etcd, so that later ones are greater.
fn revision(version: &Option<String>) -> Option<u64> {
    version.as_ref()?.parse().ok()
}

/// Objects of which the watch reports something else than the list, with what the watch reports.
pub fn behind(listed: &Versions, known: &Versions) -> Versions {
    let objects = listed.keys().chain(known.keys());
    let differing = objects.filter(|object| listed.get(object) != known.get(object));
    differing
        .map(|object| (object.clone(), known.get(object).cloned().flatten()))
        .collect()
}

/// Number of objects that the watch was behind with twice, reporting the same both times: it was not just slow.
pub fn stuck(first: &Versions, second: &Versions) -> usize {
    let same = |(object, told): &(&_, &Option<String>)| second.get(*object) == Some(*told);
    first.iter().filter(same).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(objects: &[(&str, &str)]) -> Versions {
        let entry = |(name, version): &(&str, &str)| {
            ((None, (*name).to_owned()), Some((*version).to_owned()))
        };
        objects.iter().map(entry).collect()
    }

    #[test]
    fn what_is_known_includes_a_list_from_its_moment_on() {
        let listing = Listing {
            versions: versions(&[("a", "7"), ("b", "9")]),
            at: Some("10".into()),
        };
        let includes = |known| listing.is_included_in(&versions(known));
        assert!(includes(&[("a", "7"), ("b", "9")]));
        assert!(includes(&[("a", "7"), ("b", "11"), ("new", "12")]));
        assert!(!includes(&[("a", "7")]), "b is not told of yet");
        assert!(!includes(&[("a", "6"), ("b", "9")]), "an older a");
        let deleted = [("a", "7"), ("b", "9"), ("deleted", "8")];
        assert!(!includes(&deleted), "a deletion is not told of yet");
    }

    #[test]
    fn what_is_later_than_a_list_that_was_made_afterwards_is_lost() {
        let listing = Listing {
            versions: versions(&[("a", "7"), ("b", "9")]),
            at: Some("10".into()),
        };
        let has_lost = |known| listing.has_lost(&versions(known));
        assert!(!has_lost(&[("a", "7"), ("b", "5")]));
        assert!(!has_lost(&[("deleted", "8")]));
        assert!(has_lost(&[("a", "8"), ("b", "9")]));
        assert!(has_lost(&[("gone", "11")]));
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
}
