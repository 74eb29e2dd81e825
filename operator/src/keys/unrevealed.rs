//! Keys whose hash is published and whose text waits for the gates' word: in memory alone. A kill
//! loses texts that nobody saw.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use water_domain::PlainKey;
use water_keystore::Removal;

use crate::crd::ApiKey;
use crate::crd::api_key::IssuedKey;

/// A key that nobody can read yet.
#[derive(Debug)]
pub struct UnrevealedKey {
    /// What its Secret will hold.
    pub plain: PlainKey<'static>,
    /// What the status says of it.
    pub issued: IssuedKey,
    /// The keys whose place it takes, each with the manner of its end.
    pub replaced: Vec<(IssuedKey, Removal)>,
}

/// All of them, by the uid of their ApiKey.
#[derive(Debug, Default)]
pub struct UnrevealedKeys(Mutex<HashMap<String, Arc<UnrevealedKey>>>);

impl UnrevealedKeys {
    /// The ApiKey's, if there is one.
    pub fn get(&self, key: &ApiKey) -> Option<Arc<UnrevealedKey>> {
        self.all().get(&uid(key)).map(Arc::clone)
    }

    /// Keeps a key until it is forgotten.
    pub fn keep(&self, key: &ApiKey, unrevealed: UnrevealedKey) -> Arc<UnrevealedKey> {
        let unrevealed = Arc::new(unrevealed);
        self.all().insert(uid(key), Arc::clone(&unrevealed));
        unrevealed
    }

    /// It was revealed, or never will be.
    pub fn forget(&self, key: &ApiKey) {
        self.all().remove(&uid(key));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<UnrevealedKey>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn uid(key: &ApiKey) -> String {
    key.uid().unwrap_or_default()
}
