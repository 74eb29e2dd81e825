//! What a leadership remembers of ApiKeys: texts of keys that are not revealed, and its own writes
//! until the watch shows them. Nothing of it outlives the leadership.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::{Resource, ResourceExt};
use water_domain::PlainKey;

use super::record::Issued;
use crate::crd::ApiKey;

/// A key that was made and that nobody can read yet. A kill loses a text that nobody saw.
#[derive(Debug)]
pub struct MadeKey {
    /// What its Secret will hold.
    pub plain: PlainKey<'static>,
    /// What the status says of it.
    pub issued: Issued,
    /// The API server said that something stands under the Secret's name.
    pub is_name_taken: bool,
}

/// What is remembered, by the uid of the ApiKey.
#[derive(Debug, Default)]
pub struct Memory {
    made: Mutex<HashMap<String, Arc<MadeKey>>>,
    written: Mutex<HashMap<String, Arc<ApiKey>>>,
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

    /// The key was revealed, or never will be.
    pub fn forget_made(&self, uid: &str) {
        lock(&self.made).remove(uid);
    }

    /// Keeps what the API server answered to a write.
    pub fn keep_written(&self, key: &ApiKey) {
        if let Some(uid) = key.uid() {
            lock(&self.written).insert(uid, Arc::new(key.clone()));
        }
    }

    /// The ApiKey as this leader last wrote it, while the watch shows an older version.
    pub fn newer(&self, watched: &ApiKey) -> Option<Arc<ApiKey>> {
        let uid = watched.meta().uid.as_deref()?;
        let mut written = lock(&self.written);
        let own = written.get(uid)?;
        if version(own) > version(watched) {
            return Some(Arc::clone(own));
        }
        written.remove(uid);
        None
    }

    /// Forgets ApiKeys that are gone.
    pub fn retain(&self, living: &HashSet<String>) {
        lock(&self.made).retain(|uid, _| living.contains(uid));
        lock(&self.written).retain(|uid, _| living.contains(uid));
    }
}

/// Resource versions are revisions of etcd: later ones are greater.
fn version(key: &ApiKey) -> Option<u64> {
    key.meta().resource_version.as_ref()?.parse().ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn at(version: &str) -> ApiKey {
        let mut key = sample::key("acme", "team");
        key.metadata.resource_version = Some(version.into());
        key
    }

    #[test]
    fn an_own_write_counts_until_the_watch_has_caught_up() {
        let memory = Memory::default();
        memory.keep_written(&at("10"));
        assert_eq!(memory.newer(&at("9")).as_deref(), Some(&at("10")));
        assert_eq!(memory.newer(&at("10")), None);
        assert_eq!(memory.newer(&at("9")), None, "it is forgotten then");
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let memory = Memory::default();
        memory.keep_written(&at("10"));
        memory.retain(&HashSet::new());
        assert_eq!(memory.newer(&at("9")), None);
    }
}
