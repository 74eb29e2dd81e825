//! Which WaterDataApi an ApiKey belongs to.

use kube::core::DeserializeGuard;
use water_resources::WaterDataApi;
use water_resources::api_key::IssuedAt;

use super::admission::{self, Refusal};
use super::error::KeyError;
use super::seen::Admission;
use super::subject::Subject;
use crate::context::Context;

/// The WaterDataApi of an ApiKey, and whether it admits the key.
pub struct Membership {
    /// The WaterDataApi in whose directory the key is or may be declared.
    pub place: Option<IssuedAt>,
    /// The same, if it exists and can be decoded.
    pub api: Option<WaterDataApi>,
    /// What it says.
    pub admission: Admission,
    /// Why it does not admit the key.
    pub refusal: Option<Refusal>,
}

/// Finds the WaterDataApi and asks it.
pub async fn membership(subject: &Subject, context: &Context) -> Result<Membership, KeyError> {
    let named = subject.status.api.clone();
    let key = match &subject.key {
        Ok(key) if subject.meta.deletion_timestamp.is_none() => key,
        // Nothing is admitted any more: only what the status names counts.
        _ => {
            let api = named.as_ref().and_then(|place| context.decoded_api(place));
            return Ok(Membership {
                place: named,
                api,
                admission: Admission::Hindered,
                refusal: None,
            });
        }
    };
    let apis = context.all_apis();
    let labels = if apis.iter().any(admission::needs_labels) {
        let namespace = context.namespace(subject.namespace()).await?;
        namespace.metadata.labels.unwrap_or_default()
    } else {
        admission::Labels::new()
    };
    let (place, api, refusal) = match admission::resolve(key, &labels, &apis, context.scope) {
        Err(refusal) => (None, None, Some(refusal)),
        Ok(place) => match context.api_at(&place).as_deref() {
            None => (None, None, Some(admission::not_found(&place))),
            Some(DeserializeGuard(Err(_))) => (None, None, Some(admission::unreadable(&place))),
            Some(DeserializeGuard(Ok(api))) => {
                let refusal = admission::admit(key, &labels, api, context.scope).err();
                (Some(place), Some(api.clone()), refusal)
            }
        },
    };
    let admission = refusal
        .as_ref()
        .map_or(Admission::Admitted, Refusal::admission);
    Ok(Membership {
        // Before the status names it nothing is declared there.
        place: if refusal.is_none() { place } else { named },
        api,
        admission,
        refusal,
    })
}
