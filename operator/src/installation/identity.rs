//! The identity keys, by which services know that a request comes from a gate: the Secret `<name>-identity`.
//!
//! Gates sign with `current`; services accept `current` and `next`. [`super::rotation`] replaces one by the other.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use water_resources::WaterDataApi;

use super::fingerprint::fingerprint;
use super::own_secret::{self, is_random, random};
use super::render::IdentityFacts;
use super::secret_error::SecretError;
use crate::client::record_params;
use crate::context::Context;

/// Key that the gates sign with.
const CURRENT: &str = "current";
/// Key that the services accept in addition.
const NEXT: &str = "next";
/// Salt of the fingerprints of credentials; it is never rotated, or all pods would be with it.
const SALT: &str = "salt";
const KEYS: [&str; 3] = [CURRENT, NEXT, SALT];

/// The Secret with both keys, as it was read. Without `Debug` it cannot be printed.
#[derive(Clone)]
pub struct Identity(Secret);

/// Reads the Secret, and makes it when it is not there.
pub async fn read(api: &WaterDataApi, context: &Context) -> Result<Identity, SecretError> {
    let name = format!("{}-identity", api.name_any());
    let identity = Identity(own_secret::read_or_make(api, &name, KEYS, context).await?);
    if !identity.has_both_keys() {
        return Err(SecretError::Identity { name });
    }
    if is_random(identity.value(SALT)) {
        return Ok(identity);
    }
    write(identity.with([(SALT, random()?)]), context).await
}

/// Replaces the Secret. Fails with a conflict if it was changed since it was read.
pub async fn write(identity: Identity, context: &Context) -> Result<Identity, SecretError> {
    let (name, namespace) = (identity.0.name_any(), identity.0.namespace());
    let secrets = context.api::<Secret>(&namespace.unwrap_or_default());
    Ok(Identity(
        secrets
            .replace(&name, &record_params(), &identity.0)
            .await?,
    ))
}

impl Identity {
    pub fn salt(&self) -> &[u8] {
        self.value(SALT)
    }

    fn has_both_keys(&self) -> bool {
        is_random(self.value(CURRENT)) && is_random(self.value(NEXT))
    }

    /// Fingerprints of the keys for which pods must be rolled.
    pub fn facts(&self) -> IdentityFacts {
        let (current, next) = (self.value(CURRENT), self.value(NEXT));
        let both = [current.min(next), current.max(next)].concat();
        IdentityFacts {
            signing: fingerprint(self.salt(), current),
            accepted: fingerprint(self.salt(), &both),
        }
    }

    pub fn metadata(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    /// Returns the Secret with both keys exchanged.
    pub fn swapped(&self) -> Self {
        let [current, next] = [CURRENT, NEXT].map(|key| ByteString(self.value(key).to_vec()));
        self.with([(CURRENT, next), (NEXT, current)])
    }

    /// Returns the Secret with a fresh key instead of the next.
    pub fn renewed(&self) -> Result<Self, SecretError> {
        Ok(self.with([(NEXT, random()?)]))
    }

    /// Sets annotations, or removes those without a value.
    pub fn annotated<const N: usize>(mut self, annotations: [(&str, Option<String>); N]) -> Self {
        let all = self.0.metadata.annotations.get_or_insert_default();
        for (name, value) in annotations {
            match value {
                Some(value) => all.insert(name.into(), value),
                None => all.remove(name),
            };
        }
        self
    }

    fn with<const N: usize>(&self, values: [(&str, ByteString); N]) -> Self {
        let mut changed = self.clone();
        let data = changed.0.data.get_or_insert_default();
        data.extend(values.map(|(key, value)| (key.to_owned(), value)));
        changed
    }

    fn value(&self, key: &str) -> &[u8] {
        own_secret::value(&self.0, key)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sample;

    pub(crate) fn identity() -> Identity {
        let api = sample::api("water-data", "water");
        Identity(own_secret::new(&api, "water-data-identity", KEYS).unwrap())
    }

    #[test]
    fn an_identity_is_made_of_different_keys() {
        let identity = identity();
        let values = KEYS.map(|key| identity.value(key));
        assert!(values.iter().all(|value| is_random(value)));
        assert!(values[0] != values[1] && values[1] != values[2] && values[0] != values[2]);
    }

    #[test]
    fn an_identity_with_one_good_key_does_not_have_both() {
        assert!(identity().has_both_keys());
        for key in [CURRENT, NEXT] {
            let edited = identity().with([(key, ByteString(b"edited".to_vec()))]);
            assert!(!edited.has_both_keys(), "{key}");
        }
    }

    #[test]
    fn keys_that_change_places_roll_the_gates_alone() {
        let (before, after) = (identity(), identity().facts());
        assert_ne!(before.facts().accepted, after.accepted);
        let swapped = before.swapped().facts();
        assert_ne!(swapped.signing, before.facts().signing);
        assert_eq!(swapped.accepted, before.facts().accepted);
    }

    #[test]
    fn a_fresh_next_key_rolls_the_services_alone() {
        let before = identity();
        let renewed = before.renewed().unwrap().facts();
        assert_eq!(renewed.signing, before.facts().signing);
        assert_ne!(renewed.accepted, before.facts().accepted);
    }
}
