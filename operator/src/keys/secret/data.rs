//! The data of a key's Secret, compared with its annotations, which anybody with the right to create Secrets may write.

use k8s_openapi::api::core::v1::Secret;
use water_domain::{KeyHash, KeyPrefix, PlainKey};
use water_resources::ApiKey;

use super::metadata::{CURRENT, DETAILS};
use super::{SecretLookup, StoredSecret, annotation, judge};
use crate::keys::record::Issuance;
use crate::keys::subject::Subject;

/// Content of a Secret's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SecretData {
    /// Hash of the text, if it is a key's.
    pub text: Option<KeyHash>,
    /// Whether that is a generated key, of the key id in the annotations.
    is_generated: bool,
    /// Whether the key id and the base URL are those in the annotations.
    has_details: bool,
}

impl SecretData {
    /// Data that the operator writes with the key of this hash.
    pub fn written(hash: KeyHash) -> Self {
        Self {
            text: Some(hash),
            is_generated: true,
            has_details: true,
        }
    }

    /// Reads the data of a Secret.
    pub fn read(secret: &Secret) -> Self {
        let value = |name: &str| Some(&*secret.data.as_ref()?.get(name)?.0);
        let plain =
            value("api-key").and_then(|text| PlainKey::parse(text, &KeyPrefix::default()).ok());
        let is_annotated = |(name, label): &(&str, &str)| {
            let annotated = annotation(&secret.metadata, label);
            annotated.as_deref().map(str::as_bytes) == value(name)
        };
        let named = annotation(&secret.metadata, CURRENT[1]);
        let is_of_id = |plain: &PlainKey<'_>| named.as_deref() == Some(plain.key_id().as_str());
        Self {
            text: plain.as_ref().map(PlainKey::hash),
            is_generated: plain.is_some_and(|plain| plain.is_generated() && is_of_id(&plain)),
            has_details: DETAILS.iter().all(is_annotated),
        }
    }
}

/// Extent to which a Secret's data are what its annotations name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// Every detail agrees, or none is known to differ.
    All,
    /// The text is that of the key, but another detail differs.
    Text,
    /// The text is no key's, or another's.
    Nothing,
}

impl StoredSecret {
    /// Agreement of the Secret's data with its annotations.
    pub fn agreement(&self, data: SecretData) -> Agreement {
        let named = self.issued.as_ref().map(|issued| issued.hash);
        match data {
            _ if named.is_none() || data.text != named => Agreement::Nothing,
            SecretData { has_details, .. } if has_details => Agreement::All,
            _ => Agreement::Text,
        }
    }

    /// Whether an ApiKey that declares this revision may take the key over: the operator made it, for this or an
    /// earlier revision. Anybody with the right to create Secrets may have written the annotations.
    pub fn is_adoptable(&self, data: SecretData, declared: u32) -> bool {
        let is_earlier = |issued: &Issuance| issued.revision <= declared;
        data.is_generated
            && self.agreement(data) != Agreement::Nothing
            && self.issued.as_ref().is_some_and(is_earlier)
    }
}

/// A Secret under the name of an ApiKey's, after a restore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestoredSecret {
    /// The ApiKey has it already.
    Own,
    /// The key that it holds, which the ApiKey may take over.
    Key(KeyHash),
    /// The Secret must not be adopted.
    Foreign,
}

/// Judges a Secret as [`Secrets::inspect`] does.
pub fn restored(key: &ApiKey, secret: &Secret) -> RestoredSecret {
    let written = match judge(&key.metadata, &secret.metadata) {
        SecretLookup::Own(_) => return RestoredSecret::Own,
        SecretLookup::Orphan(written) => written,
        SecretLookup::Missing | SecretLookup::Foreign => return RestoredSecret::Foreign,
    };
    let declared = Subject::whole(key).revision();
    let is_adoptable = written.is_adoptable(SecretData::read(secret), declared);
    let issued = written.issued.filter(|_| is_adoptable);
    issued.map_or(RestoredSecret::Foreign, |issued| {
        RestoredSecret::Key(issued.hash)
    })
}
