//! Metadata of an ApiKey that the operator keeps: the label of its account, for selectors, and the annotation that asks
//! for the key of a restored Secret, until that is done.

use kube::ResourceExt;
use kube::api::ObjectMeta;
use water_domain::KeyHash;
use water_resources::ApiKey;

/// The label that names the account, of an ApiKey and of its Secret.
pub const ACCOUNT_LABEL: &str = "waterdata.dev/account";
/// Annotation that asks for the key of a restored Secret: the first twelve hexadecimal digits of its hash. Other
/// Secrets of the name are left alone.
pub const ADOPT: &str = "waterdata.dev/adopt-secret";

/// Whether the label names the account, and no annotation is left that asks for what was done.
pub fn is_as_declared(key: &ApiKey) -> bool {
    let label = key.labels().get(ACCOUNT_LABEL);
    label.is_some_and(|label| label == key.spec.account_id.as_str()) && !is_adopted(key)
}

/// Digits in the annotation that asks for the key of a restored Secret.
pub fn adoption(meta: &ObjectMeta) -> Option<&str> {
    meta.annotations.as_ref()?.get(ADOPT).map(String::as_str)
}

/// Whether the key that the annotation asks for is the ApiKey's own by now.
pub fn is_adopted(key: &ApiKey) -> bool {
    let status = key.status.as_ref().filter(|status| status.key_id.is_some());
    let current = status.and_then(|status| status.current.as_ref());
    let current = current.and_then(|current| current.hash.parse::<KeyHash>().ok());
    let digits = current.map(|hash| hash.key_id());
    digits.is_some_and(|digits| adoption(&key.metadata) == Some(digits.as_str()))
}
