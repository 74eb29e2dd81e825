//! The Secrets that an installation needs: the two stores' and the identity keys.
//!
//! The operator reads the stores' Secrets for its own connection to Redis and for fingerprints of
//! the rest, so that pods roll when a credential changes. Fingerprints are salted with a secret:
//! passwords cannot be guessed from those that a Deployment shows.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use water_keystore::ConnectionSettings;
use water_resources::WaterDataApi;

use super::fingerprint::fingerprint;
use super::identity::{self, Identity};
use super::render::{PortalFacts, SecretFacts};
use super::secret_error::SecretError;
use crate::context::Context;

pub struct Secrets {
    pub facts: SecretFacts,
    pub identity: Identity,
}

/// Content of Redis' Secret that the operator uses, which is all that the key directory needs.
pub struct Redis {
    data: BTreeMap<String, ByteString>,
    pub settings: ConnectionSettings,
    /// Fingerprint of `settings`, which changes when they do.
    pub fingerprint: String,
    /// Settings with which the gates reach it, if they can be read.
    pub gate: Option<ConnectionSettings>,
    /// Name that distinguishes the operator's Redis from another one: its host, port and database.
    pub store: String,
    /// Name of the gates' Redis; `None` if it cannot be read.
    pub gate_store: Option<String>,
}

const POSTGRES: (&str, &[&str]) = ("spec.postgres.secretRef.name", &["owner-url", "reader-url"]);
const REDIS: (&str, &[&str]) = ("spec.redis.secretRef.name", &["operator-url", "gate-url"]);

/// Reads the Secret of that name, which is Redis' of a WaterDataApi: one that cannot be decoded has one too.
pub async fn redis(api: &ObjectMeta, name: &str, client: &Client) -> Result<Redis, SecretError> {
    let data = store(api, name, REDIS, client).await?;
    let url = |key: &str| {
        let value = data.get(key).map(|value| String::from_utf8_lossy(&value.0));
        value.unwrap_or_default()
    };
    let ca = data.get("ca.crt").map(|value| value.0.as_slice());
    let settings = ConnectionSettings::new(&url("operator-url"), ca);
    let settings = settings.map_err(|source| SecretError::Redis {
        name: name.into(),
        source,
    })?;
    let mut known_by: Vec<u8> = url("operator-url").as_bytes().to_vec();
    known_by.extend(ca.unwrap_or_default());
    // Never shown, so that it needs no secret salt.
    let salt = api.uid.as_deref().unwrap_or_default();
    let gate = ConnectionSettings::new(&url("gate-url"), ca).ok();
    // Shown in the status and on pods: they hold no user and no password.
    let store =
        |settings: &ConnectionSettings| fingerprint(salt.as_bytes(), settings.store().as_bytes());
    Ok(Redis {
        fingerprint: fingerprint(salt.as_bytes(), &known_by),
        store: store(&settings),
        gate_store: gate.as_ref().map(store),
        gate,
        settings,
        data,
    })
}

/// Reads PostgreSQL's Secret, and makes the identity's when it is not there.
pub async fn read(
    api: &WaterDataApi,
    redis: &Redis,
    context: &Context,
) -> Result<Secrets, SecretError> {
    let name = &api.spec.postgres.secret_ref.name;
    let postgres = store(&api.metadata, name, POSTGRES, &context.client).await?;
    let identity = identity::read(api, context).await?;
    let salt = identity.salt();
    let facts = |data: &BTreeMap<String, ByteString>| {
        data.iter()
            .map(|(key, value)| (key.clone(), fingerprint(salt, &value.0)))
            .collect()
    };
    Ok(Secrets {
        facts: SecretFacts {
            postgres: facts(&postgres),
            redis: facts(&redis.data),
            gate_store: redis.gate_store.clone(),
            identity: identity.facts(),
            portal: PortalFacts::default(),
        },
        identity,
    })
}

async fn store(
    api: &ObjectMeta,
    name: &str,
    (field, keys): (&'static str, &'static [&'static str]),
    client: &Client,
) -> Result<BTreeMap<String, ByteString>, SecretError> {
    let namespace = api.namespace.as_deref().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let Some(secret) = secrets.get_opt(name).await? else {
        return Err(SecretError::Missing {
            field,
            name: name.into(),
            keys: keys.join(", "),
        });
    };
    let data = secret.data.unwrap_or_default();
    match keys
        .iter()
        .find(|key| data.get(**key).is_none_or(|value| value.0.is_empty()))
    {
        None => Ok(data),
        Some(key) => Err(SecretError::Incomplete {
            field,
            name: name.into(),
            key,
        }),
    }
}
