//! Secrets of random values that the operator makes for an installation and keeps.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use water_resources::WaterDataApi;

use super::render::MANAGED_BY;
use super::secret_error::SecretError;
use crate::client::record_params;
use crate::context::Context;

/// Length of 256 bits in hexadecimal.
const LENGTH: usize = 64;

/// A Secret of an installation with a random value at each key.
pub fn new<const N: usize>(
    api: &WaterDataApi,
    name: &str,
    keys: [&str; N],
) -> Result<Secret, SecretError> {
    let values = keys.map(|key| Ok((key.to_owned(), random()?)));
    let data: Result<BTreeMap<_, _>, SecretError> = values.into_iter().collect();
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: api.namespace(),
            labels: Some(BTreeMap::from([(
                MANAGED_BY.0.to_owned(),
                MANAGED_BY.1.to_owned(),
            )])),
            owner_references: api.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".into()),
        data: Some(data?),
        ..Secret::default()
    })
}

/// The Secret as it is, or a new one.
pub async fn read_or_make<const N: usize>(
    api: &WaterDataApi,
    name: &str,
    keys: [&str; N],
    context: &Context,
) -> Result<Secret, SecretError> {
    let secrets = context.api::<Secret>(&api.namespace().unwrap_or_default());
    Ok(match secrets.get_opt(name).await? {
        Some(secret) => secret,
        None => {
            let made = new(api, name, keys)?;
            secrets.create(&record_params(), &made).await?
        }
    })
}

/// 256 random bits, in hexadecimal.
pub fn random() -> Result<ByteString, SecretError> {
    let mut random = [0; LENGTH / 2];
    getrandom::fill(&mut random).map_err(SecretError::Random)?;
    Ok(ByteString(hex::encode(random).into_bytes()))
}

/// Whether a value is as [`random`] makes it.
pub fn is_random(value: &[u8]) -> bool {
    value.len() == LENGTH && value.iter().all(u8::is_ascii_hexdigit)
}

/// The value at a key; empty if the key is missing.
pub fn value<'a>(secret: &'a Secret, key: &str) -> &'a [u8] {
    let data = secret.data.as_ref();
    data.and_then(|data| data.get(key))
        .map_or(&[], |value| value.0.as_slice())
}
