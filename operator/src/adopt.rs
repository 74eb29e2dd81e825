//! `water-operator adopt`: has ApiKeys take over the Secrets that were restored with them from a backup.
//!
//! It annotates ApiKeys that have no key yet; the operator, running or not, does the rest. Whoever may create Secrets
//! could have planted one, so that nothing is adopted unasked, and with the ApiKeys of the backup only the keys that
//! these name.

use std::collections::HashMap;

use anyhow::{Context, anyhow, bail};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};
use water_domain::KeyHash;
use water_resources::ApiKey;

use crate::client::each_stored;
use crate::conditions::RECORD_MANAGER;
use crate::keys::metadata::ADOPT;
use crate::keys::secret::{RestoredSecret, path, restored};
use crate::keys::subject::secret_name;

/// ApiKeys that are read and annotated at a time.
const AT_ONCE: usize = 16;

/// Outcome of the command.
#[derive(Debug, Default)]
pub struct Adoption {
    /// Namespace, name and key id of each ApiKey that asks for its key now.
    pub asked: Vec<String>,
    /// ApiKeys whose Secret must not be adopted, each with the reason.
    pub left: Vec<String>,
}

/// Current keys of a backup's ApiKeys, by namespace and name.
#[derive(Debug, Default)]
pub struct Backup(HashMap<String, KeyHash>);

impl Backup {
    /// Reads YAML or JSON: ApiKeys as documents or in lists, as kubectl prints them. Other objects are passed over.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut keys = HashMap::new();
        for document in serde_yaml_ng::Deserializer::from_str(text) {
            let object = Value::deserialize(document).context("the backup is no YAML or JSON")?;
            let items = object["items"].as_array().cloned();
            for object in items.unwrap_or_else(|| vec![object]) {
                let meta = &object["metadata"];
                let hash = object["status"]["current"]["hash"].as_str();
                let hash = hash.and_then(|hash| hash.parse().ok());
                if let (Some("ApiKey"), Some(namespace), Some(name), Some(hash)) = (
                    object["kind"].as_str(),
                    meta["namespace"].as_str(),
                    meta["name"].as_str(),
                    hash,
                ) {
                    keys.insert(format!("{namespace}/{name}"), hash);
                }
            }
        }
        if keys.is_empty() {
            bail!(
                "the backup has no ApiKey with status.current.hash: export them with their status"
            );
        }
        Ok(Self(keys))
    }
}

/// Annotates the ApiKeys, or those of one namespace; in a dry run it only reports them.
pub async fn all(
    client: &Client,
    namespace: Option<&str>,
    backup: Option<&Backup>,
    is_dry_run: bool,
) -> anyhow::Result<Adoption> {
    let keys = each_stored::<ApiKey, _>(client, namespace, Some).await?;
    let outcomes = stream::iter(keys)
        .map(async |key| one(client, key, backup, is_dry_run).await)
        .buffer_unordered(AT_ONCE);
    let mut adoption = Adoption::default();
    for outcome in outcomes.collect::<Vec<_>>().await {
        match outcome {
            Ok(asked) => adoption.asked.extend(asked),
            Err(left) => adoption.left.push(format!("{left:#}")),
        }
    }
    adoption.asked.sort();
    adoption.left.sort();
    Ok(adoption)
}

/// Annotates one ApiKey; `None`: it has a key, or no Secret that could be adopted.
async fn one(
    client: &Client,
    key: DynamicObject,
    backup: Option<&Backup>,
    is_dry_run: bool,
) -> anyhow::Result<Option<String>> {
    let path = path(&key.metadata);
    let key: ApiKey = key
        .try_parse()
        .with_context(|| format!("{path} cannot be read"))?;
    let has_key = key
        .status
        .as_ref()
        .is_some_and(|status| status.key_id.is_some());
    let is_generated = key.spec.material.hash.is_none();
    if has_key || !is_generated || key.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    let namespace = key.namespace().unwrap_or_default();
    let name = secret_name(&key);
    let secrets = Api::<Secret>::namespaced(client.clone(), &namespace);
    let secret = secrets.get_opt(&name).await;
    let secret = secret.with_context(|| format!("{path}: the Secret {name} cannot be read"))?;
    let hash = match secret.map(|secret| restored(&key, &secret)) {
        None | Some(RestoredSecret::Own) => return Ok(None),
        Some(RestoredSecret::Foreign) => {
            bail!(
                "{path}: the Secret {name} holds no key that an operator made for an ApiKey of this name"
            )
        }
        Some(RestoredSecret::Key(hash)) => hash,
    };
    let is_in_backup = backup.is_none_or(|backup| backup.0.get(&path) == Some(&hash));
    let digits = hash.key_id();
    if !is_in_backup {
        bail!("{path}: the backup does not name the key {digits} that is in the Secret {name}");
    }
    if !is_dry_run {
        let patch = json!({ "metadata": {
            "uid": key.metadata.uid,
            "annotations": { ADOPT: digits.as_str() },
        } });
        let keys = Api::<ApiKey>::namespaced(client.clone(), &namespace);
        let params = PatchParams::apply(RECORD_MANAGER);
        let patched = keys
            .patch_metadata(&key.name_any(), &params, &Patch::Merge(patch))
            .await;
        patched.map_err(|error| anyhow!("{path} cannot be annotated: {error}"))?;
    }
    Ok(Some(format!("{path}: {digits}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = r"
kind: ApiKey
metadata: {namespace: team, name: acme}
status: {current: {hash: abababababababababababababababababababababababababababababababab}}
";

    #[test]
    fn a_backup_is_a_list_or_documents() {
        let hash: KeyHash = "ab".repeat(32).parse().unwrap();
        let item = KEY.trim().replace('\n', "\n  ");
        let list = format!("kind: List\nitems:\n- {item}\n- kind: ConfigMap\n");
        for text in [KEY.to_owned(), format!("kind: ConfigMap\n---{KEY}"), list] {
            let backup = Backup::parse(&text).unwrap();
            assert_eq!(backup.0.get("team/acme"), Some(&hash), "{text}");
        }
    }

    #[test]
    fn a_backup_without_keys_is_refused() {
        for text in ["", "kind: ConfigMap", "{"] {
            assert!(Backup::parse(text).is_err(), "{text}");
        }
    }
}
