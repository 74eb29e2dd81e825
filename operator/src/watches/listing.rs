//! What a list of metadata shows of all objects of a kind, and whether what a watch has told includes it.

use std::collections::HashMap;
use std::io;
use std::pin::pin;

use futures::TryStreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::{ObjectList, Request};
use kube::runtime::reflector::Store;
use kube::{Api, Error, Resource, ResourceExt};
use serde::Deserialize;

use super::streams_no_list;
use crate::client::WATCH_SECONDS;

/// Objects of one answer, where they are not streamed.
const PAGE: u32 = 500;
/// What the API server notes on the bookmark after the last object (KEP 3157).
const ALL_TOLD: &str = "k8s.io/initial-events-end";

/// Objects of one kind by namespace and name, each with its resourceVersion.
pub type Versions = HashMap<(Option<String>, String), Option<String>>;

/// All objects of a kind at one moment.
pub struct Listing {
    pub versions: Versions,
    pub at: Option<String>,
}

/// What is read of an object. Its managed fields are most of what the API server sends, and to decode
/// those of 10 000 objects takes longer than to send them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub namespace: Option<String>,
    pub name: String,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Item {
    metadata: Listed,
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

/// Asks for the metadata of all objects, as they are when this is called or later.
pub async fn list<K>(api: &Api<K>, labels: Option<&str>) -> kube::Result<Listing>
where
    K: Resource + Clone,
{
    let mut versions = Versions::new();
    let at = each(api, labels, |object| {
        let place = (object.namespace, object.name);
        versions.insert(place, object.resource_version);
    });
    let at = at.await?;
    Ok(Listing { versions, at })
}

/// The same, told one by one. Returns the resourceVersion of that moment.
pub async fn each<K: Resource + Clone>(
    api: &Api<K>,
    labels: Option<&str>,
    mut tell: impl FnMut(Listed),
) -> kube::Result<Option<String>> {
    match streamed(api, labels, &mut tell).await {
        Err(error) if streams_no_list(&error) => paged(api, labels, tell).await,
        streamed => streamed,
    }
}

/// The API server answers from its cache. Pages come from etcd once the last change is older than the
/// latest compaction: with 10 000 ApiKeys, a cold start takes more than twice as long then.
async fn streamed<K: Resource + Clone>(
    api: &Api<K>,
    labels: Option<&str>,
    tell: &mut impl FnMut(Listed),
) -> kube::Result<Option<String>> {
    let mut params = WatchParams::default()
        .timeout(WATCH_SECONDS)
        .initial_events();
    params.label_selector = labels.map(Into::into);
    let objects = Request::new(api.resource_url()).watch_metadata(&params, "");
    let objects = objects.map_err(Error::BuildRequest)?;
    let client = api.clone().into_client();
    let mut events = pin!(client.request_events::<Item>(objects).await?);
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(item) | WatchEvent::Modified(item) => tell(item.metadata),
            WatchEvent::Bookmark(mark) if mark.metadata.annotations.contains_key(ALL_TOLD) => {
                return Ok(Some(mark.metadata.resource_version));
            }
            WatchEvent::Error(status) => return Err(Error::Api(status)),
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
        }
    }
    Err(Error::ReadEvents(io::ErrorKind::UnexpectedEof.into()))
}

async fn paged<K: Resource + Clone>(
    api: &Api<K>,
    labels: Option<&str>,
    mut tell: impl FnMut(Listed),
) -> kube::Result<Option<String>> {
    // No resourceVersion: the API server answers from etcd, or from a cache that is as new.
    let mut params = ListParams::default().limit(PAGE);
    params.label_selector = labels.map(Into::into);
    let (client, objects) = (api.clone().into_client(), Request::new(api.resource_url()));
    loop {
        let page = objects
            .list_metadata(&params)
            .map_err(Error::BuildRequest)?;
        let page: ObjectList<Item> = client.request(page).await?;
        page.items.into_iter().for_each(|item| tell(item.metadata));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(page.metadata.resource_version);
        }
    }
}

impl Listing {
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

    /// What was known before this was listed, and was written after the state that etcd was restored
    /// from: later than the same object is now, or than everything.
    pub fn lost(&self, mut known: Versions) -> Versions {
        known.retain(|object, told| {
            let now = self.versions.get(object).unwrap_or(&self.at);
            revision(told) > revision(now)
        });
        known
    }
}

/// Resource versions are revisions of etcd: later ones are greater.
fn revision(version: &Option<String>) -> Option<u64> {
    version.as_ref()?.parse().ok()
}

/// Objects of which the watch tells something else than the list, with what the watch tells.
pub fn behind(listed: &Versions, known: &Versions) -> Versions {
    let objects = listed.keys().chain(known.keys());
    let differing = objects.filter(|object| listed.get(object) != known.get(object));
    differing
        .map(|object| (object.clone(), known.get(object).cloned().flatten()))
        .collect()
}

/// How many objects the watch was behind with twice, telling the same both times: it was not just slow.
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
        let lost = |known| listing.lost(versions(known));
        assert_eq!(lost(&[("a", "7"), ("b", "5")]), versions(&[]));
        assert_eq!(lost(&[("deleted", "8")]), versions(&[]));
        assert_eq!(lost(&[("a", "8"), ("b", "9")]), versions(&[("a", "8")]));
        assert_eq!(lost(&[("gone", "11")]), versions(&[("gone", "11")]));
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
