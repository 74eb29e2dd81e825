//! ApiKeys and Secrets of one namespace, read and written as the administrator.

use anyhow::{Context, Result};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{Object, PartialObjectMeta};
use kube::discovery::ApiResource;
use kube::runtime::wait::await_condition;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Config};
use serde_json::Value;
use water_domain::{KeyHash, KeyPrefix, PlainKey};
use water_resources::condition::ConditionStatus;
use water_resources::{ApiKey, ApiKeyStatus, WaterDataApi};

use crate::world::{API, World};

/// An ApiKey as it stands at the API server. That of which the spec cannot be read has a status, too.
pub type RawKey = Object<Value, ApiKeyStatus>;

/// Asks the API server itself, past every interceptor.
pub struct Objects {
    keys: Api<ApiKey>,
    raw_keys: Api<RawKey>,
    secrets: Api<Secret>,
    leases: Api<Lease>,
    apis: Api<WaterDataApi>,
    keys_metadata: Api<PartialObjectMeta<ApiKey>>,
    secrets_metadata: Api<PartialObjectMeta<Secret>>,
}

impl Objects {
    pub async fn of(world: &World) -> Result<Self> {
        let kubeconfig = Kubeconfig::from_yaml(world.cluster.kubeconfig())?;
        let options = KubeConfigOptions::default();
        let client = Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &options).await?)?;
        let kind = ApiResource::erase::<ApiKey>(&());
        Ok(Self {
            keys: Api::namespaced(client.clone(), &world.namespace),
            raw_keys: Api::namespaced_with(client.clone(), &world.namespace, &kind),
            secrets: Api::namespaced(client.clone(), &world.namespace),
            leases: Api::namespaced(client.clone(), &world.namespace),
            apis: Api::namespaced(client.clone(), &world.namespace),
            keys_metadata: Api::namespaced(client.clone(), &world.namespace),
            secrets_metadata: Api::namespaced(client, &world.namespace),
        })
    }

    pub async fn key(&self, name: &str) -> Result<Option<ApiKey>> {
        Ok(self.keys.get_opt(name).await?)
    }

    pub async fn keys(&self) -> Result<Vec<ApiKey>> {
        Ok(self.keys.list(&ListParams::default()).await?.items)
    }

    /// All ApiKeys, those that cannot be read too.
    pub async fn raw_keys(&self) -> Result<Vec<RawKey>> {
        Ok(self.raw_keys.list(&ListParams::default()).await?.items)
    }

    pub async fn create(&self, key: &Value) -> Result<()> {
        let key: ApiKey = serde_json::from_value(key.clone())?;
        self.keys.create(&PostParams::default(), &key).await?;
        Ok(())
    }

    /// Merges a patch into an ApiKey.
    pub async fn edit(&self, name: &str, patch: &Value) -> Result<()> {
        let params = PatchParams::default();
        self.keys.patch(name, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Merges a patch into the WaterDataApi.
    pub async fn edit_api(&self, patch: &Value) -> Result<()> {
        let params = PatchParams::default();
        self.apis.patch(API, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Asks for the end of an ApiKey and does not wait for it.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.raw_keys.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// All Secrets that hold an API key.
    pub async fn secrets(&self) -> Result<Vec<Secret>> {
        let params = ListParams::default().labels(LABEL);
        Ok(self.secrets.list(&params).await?.items)
    }

    /// An item for each change of an ApiKey or of such a Secret, and some more.
    pub fn changes(&self) -> impl Stream<Item = ()> + Send + 'static {
        let all = watcher::Config::default();
        let labelled = watcher::Config::default().labels(LABEL);
        let keys = watcher(self.keys_metadata.clone(), all).default_backoff();
        let secrets = watcher(self.secrets_metadata.clone(), labelled).default_backoff();
        stream::select(keys.map(drop), secrets.map(drop))
    }

    /// The hash of the text in the Secret of the ApiKey of that name.
    pub async fn text_hash(&self, name: &str) -> Result<Option<KeyHash>> {
        let secret = self.secrets.get_opt(&secret_name(name)).await?;
        secret.as_ref().map(text_hash).transpose()
    }

    /// Merges a patch into the Secret of the ApiKey of that name.
    pub async fn edit_secret(&self, name: &str, patch: &Value) -> Result<()> {
        let (secret, params) = (secret_name(name), PatchParams::default());
        let patch = Patch::Merge(patch);
        self.secrets.patch(&secret, &params, &patch).await?;
        Ok(())
    }

    /// Deletes that Secret, and none that took its place.
    pub async fn delete_secret_of(&self, secret: &str, uid: &str) -> Result<()> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.into()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        self.secrets.delete(secret, &params).await?;
        Ok(())
    }

    /// The operator that the Lease names.
    pub async fn leader(&self) -> Result<Option<String>> {
        let lease = self.leases.get_opt(LEASE).await?;
        Ok(lease.as_ref().and_then(holder).map(str::to_owned))
    }

    /// Waits until the Lease names an operator of which this is true.
    pub async fn led(&self, by: impl Fn(&str) -> bool) -> Result<()> {
        let is_led = |lease: Option<&Lease>| lease.and_then(holder).is_some_and(&by);
        await_condition(self.leases.clone(), LEASE, is_led).await?;
        Ok(())
    }

    pub async fn delete_secret(&self, name: &str) -> Result<()> {
        let params = DeleteParams::default();
        self.secrets.delete(&secret_name(name), &params).await?;
        Ok(())
    }
}

const LEASE: &str = "water-operator";
const LABEL: &str = "waterdata.dev/api-key";
const OWNER: &str = "waterdata.dev/api-key-uid";

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref()
}

pub fn secret_name(key: &str) -> String {
    format!("{key}-apikey")
}

/// The uid of the ApiKey that a Secret says it belongs to.
pub fn owner(secret: &Secret) -> Option<&str> {
    let annotations = secret.metadata.annotations.as_ref()?;
    annotations.get(OWNER).map(String::as_str)
}

/// The hash of the text in a Secret.
pub fn text_hash(secret: &Secret) -> Result<KeyHash> {
    let text = secret.data.as_ref().and_then(|data| data.get("api-key"));
    let text = text.context("the Secret has no api-key")?;
    Ok(PlainKey::parse(&text.0, &KeyPrefix::default())?.hash())
}

/// A condition of the present spec as `<status>/<reason>`; nothing of an earlier one.
pub fn shown(key: &ApiKey, aspect: &str) -> String {
    told(key.metadata.generation, key.status.as_ref(), aspect)
}

/// The same of the status of an object whose spec has that generation.
pub fn told(generation: Option<i64>, status: Option<&ApiKeyStatus>, aspect: &str) -> String {
    let conditions = status.into_iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.filter(|condition| {
        Some(condition.observed_generation) == generation && condition.kind == aspect
    });
    let status = |status| match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    };
    conditions.next().map_or_else(String::new, |condition| {
        format!("{}/{}", status(condition.status), condition.reason)
    })
}

/// The hash that the status calls current.
pub fn current(key: &ApiKey) -> Result<KeyHash> {
    let current = key
        .status
        .as_ref()
        .and_then(|status| status.current.as_ref());
    Ok(current.context("no current key")?.hash.parse()?)
}
