//! Memory of a leadership about ApiKeys: texts of keys that are not revealed, and its own writes until the watch shows
//! them. Nothing of it outlives the leadership.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use water_domain::PlainKey;
use water_resources::ApiKey;

use super::limit::Limit;
use super::record::Issuance;
use crate::conditions::Finding;
use crate::lock::lock;
use crate::watches::trim::trim;

/// A key that was made and is not in a Secret yet. Its text is lost when the process ends, and has been seen by nobody.
#[derive(Debug)]
pub struct MadeKey {
    /// Text that its Secret will hold.
    pub plain: PlainKey<'static>,
    /// Issue of the key as the status reports it.
    pub issued: Issuance,
    /// Whether another writer has written the Secret meanwhile: the next pass reads it from the API server.
    pub is_overtaken: bool,
}

/// Memory by the uid of the ApiKey.
#[derive(Debug, Default)]
pub struct Memory {
    made: Mutex<HashMap<String, Arc<MadeKey>>>,
    written: Mutex<HashMap<String, Arc<ApiKey>>>,
    released: Mutex<HashSet<String>>,
    unlabelled: Mutex<HashMap<String, Finding>>,
    /// Limits writes of accounts' labels, …
    pub labels: Limit,
    /// … and all other writes that restrict no key.
    pub writes: Limit,
}

impl Memory {
    /// The key that was made for an ApiKey and not revealed.
    pub fn made(&self, uid: &str) -> Option<Arc<MadeKey>> {
        lock(&self.made).get(uid).map(Arc::clone)
    }

    /// Keeps a key's text until it is forgotten.
    pub fn keep_made(&self, uid: &str, made: MadeKey) {
        lock(&self.made).insert(uid.to_owned(), Arc::new(made));
    }

    /// Forgets a key that was revealed, or never will be.
    pub fn forget_made(&self, uid: &str) {
        lock(&self.made).remove(uid);
    }

    /// Keeps what the API server answered to a write.
    pub fn keep_written(&self, key: &ApiKey) {
        if let Some(uid) = key.uid() {
            let mut key = key.clone();
            trim(&mut key.metadata);
            lock(&self.written).insert(uid, Arc::new(key));
        }
    }

    /// The ApiKey as this leader last wrote it, while the watch shows an older version.
    pub fn newer(&self, watched: &ApiKey) -> Option<Arc<ApiKey>> {
        let uid = watched.meta().uid.as_deref()?;
        let mut written = lock(&self.written);
        let own = written.get(uid)?;
        if version(own.meta()) > version(watched.meta()) {
            return Some(Arc::clone(own));
        }
        written.remove(uid);
        None
    }

    /// Whether this is the version that the leader has written last. The watch has caught up with it then.
    pub fn wrote(&self, watched: &ApiKey) -> bool {
        let Some(uid) = &watched.meta().uid else {
            return false;
        };
        let mut written = lock(&self.written);
        let is_same = |own: &Arc<ApiKey>| version(own.meta()) == version(watched.meta());
        let is_own = written.get(uid).is_some_and(is_same);
        if is_own {
            written.remove(uid);
        }
        is_own
    }

    /// Notes that the finalizer was removed. Until the watch has caught up it still shows it, and another pass would
    /// report the revocation again.
    pub fn release(&self, uid: &str) {
        lock(&self.made).remove(uid);
        lock(&self.released).insert(uid.to_owned());
    }

    /// Whether nothing has to be done any more.
    pub fn is_released(&self, uid: &str) -> bool {
        lock(&self.released).contains(uid)
    }

    /// Returns the report of the last failed write of the account's label.
    pub fn unlabelled(&self, uid: &str) -> Option<Finding> {
        lock(&self.unlabelled).get(uid).cloned()
    }

    /// Keeps that report until the next write.
    pub fn keep_unlabelled(&self, uid: &str, why: Option<Finding>) {
        let mut unlabelled = lock(&self.unlabelled);
        match why {
            Some(why) => unlabelled.insert(uid.to_owned(), why),
            None => unlabelled.remove(uid),
        };
    }

    /// Forgets ApiKeys that are gone.
    pub fn retain(&self, living: &HashSet<String>) {
        lock(&self.made).retain(|uid, _| living.contains(uid));
        lock(&self.written).retain(|uid, _| living.contains(uid));
        lock(&self.released).retain(|uid| living.contains(uid));
        lock(&self.unlabelled).retain(|uid, _| living.contains(uid));
        self.labels.retain(living);
        self.writes.retain(living);
    }
}

/// Resource version as a number: a revision of etcd, so that later ones are greater.
pub fn version(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::key_at as at;

    #[test]
    fn an_own_write_counts_until_the_watch_has_caught_up() {
        let memory = Memory::default();
        memory.keep_written(&at("10"));
        assert_eq!(memory.newer(&at("9")).as_deref(), Some(&at("10")));
        assert_eq!(memory.newer(&at("10")), None);
        assert_eq!(memory.newer(&at("9")), None, "it is forgotten then");
    }

    #[test]
    fn an_own_write_is_known_when_the_watch_tells_of_it() {
        let memory = Memory::default();
        memory.keep_written(&at("10"));
        assert!(!memory.wrote(&at("9")), "an earlier version");
        assert!(!memory.wrote(&at("11")), "somebody else's");
        assert!(memory.wrote(&at("10")));
        assert_eq!(memory.newer(&at("9")), None, "it is forgotten then");
        assert!(!memory.wrote(&at("10")));
    }

    #[test]
    fn who_wrote_which_field_is_not_kept() {
        let memory = Memory::default();
        let mut written = at("10");
        written.metadata.managed_fields = Some(Vec::new());
        memory.keep_written(&written);
        let newer = memory.newer(&at("9")).unwrap();
        assert_eq!(newer.metadata.managed_fields, None);
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let memory = Memory::default();
        memory.keep_written(&at("10"));
        memory.release("uid");
        assert!(memory.is_released("uid"));
        memory.retain(&HashSet::new());
        assert_eq!(memory.newer(&at("9")), None);
        assert!(!memory.is_released("uid"));
    }
}
