//! Requests of the operator to the API server, and settings of its watches.

mod lists;

use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use water_domain::Timestamp;
use water_resources::client::{self, ClientError};

use crate::conditions::RECORD_MANAGER;
use crate::config::Scope;

/// Limit above a watch's own 60 s, so that only a dead connection meets it.
const READ_TIMEOUT: Duration = Duration::from_secs(75);
/// Length of a watch. A dead one is noticed this soon; kube's default is 295 s.
const WATCH_SECONDS: u32 = 60;

/// A client whose watches live as long as the API server lets them.
pub async fn connect() -> Result<Client, ClientError> {
    client::connect(READ_TIMEOUT).await.map(lists::trimmed)
}

/// Settings of every watch.
pub fn watching() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// Parameters with which statuses and Secrets are written.
pub fn record_params() -> PostParams {
    PostParams {
        field_manager: Some(RECORD_MANAGER.into()),
        ..PostParams::default()
    }
}

/// Returns the API of a kind for all objects in scope.
pub fn watched<K>(client: &Client, scope: Scope, namespace: &str) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match scope {
        Scope::Namespaced => Api::namespaced(client.clone(), namespace),
        Scope::Cluster => Api::all(client.clone()),
    }
}

/// Objects of a kind as they are stored, whether they can be decoded or not.
pub fn stored<K>(client: &Client, namespace: &str) -> Api<DynamicObject>
where
    K: Resource<DynamicType = ()>,
{
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<K>(&()))
}

/// Makes something of each object of a kind as it is stored, whether it can be decoded or not: of all, or of those of one
/// namespace.
pub async fn each_stored<K: Resource<DynamicType = ()>, T>(
    client: &Client,
    namespace: Option<&str>,
    made: impl Fn(DynamicObject) -> Option<T>,
) -> kube::Result<Vec<T>> {
    const PAGE: u32 = 500;
    let kind = ApiResource::erase::<K>(&());
    let objects: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let mut page = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let listed = objects.list(&page).await?;
        all.extend(listed.items.into_iter().filter_map(&made));
        page.continue_token = listed.metadata.continue_.filter(|token| !token.is_empty());
        if page.continue_token.is_none() {
            return Ok(all);
        }
    }
}

/// The field of a stored object that cannot be decoded as `K`, and its problem; nothing of one that can.
pub fn undecodable_field<K: DeserializeOwned>(object: &DynamicObject) -> Option<String> {
    let object = serde_json::to_value(object).ok()?;
    let error = serde_path_to_error::deserialize::<_, K>(object).err()?;
    Some(format!("{}: {}", error.path(), error.inner()))
}

/// Words of the API server about a request that it did not carry out. Nothing is shown of an answer that cannot be read,
/// which may be a Secret.
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::SerdeError(_) => "its answer cannot be read".into(),
        error => error.to_string(),
    }
}

/// Kinds of failed requests to the API server, as they are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApiFailure {
    /// The API server, or an admission policy or webhook, does not accept it.
    Refused,
    /// The API server could not carry it out.
    Failed,
    /// Request that got no answer.
    Unanswered,
    /// Another controller or a webhook changes back what is written.
    Undone,
}

impl ApiFailure {
    /// List of every kind.
    pub const ALL: [Self; 4] = [Self::Refused, Self::Failed, Self::Unanswered, Self::Undone];

    /// Kind of an error. `None`: another writer was first, or the object is gone.
    pub fn kind(error: &kube::Error) -> Option<Self> {
        match error {
            kube::Error::Api(status) if status.is_conflict() || status.is_not_found() => None,
            kube::Error::Api(status) if status.code == 429 || status.code >= 500 => {
                Some(Self::Failed)
            }
            kube::Error::Api(_) => Some(Self::Refused),
            _ => Some(Self::Unanswered),
        }
    }

    /// Kind of an error of a question about what there is, which no other writer and no object that is gone explains.
    pub fn of_inquiry(error: &kube::Error) -> Self {
        Self::kind(error).unwrap_or(Self::Refused)
    }

    /// Stable word for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unanswered => "unanswered",
            Self::Undone => "undone",
        }
    }
}

/// Progress of a namespace's deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deletion {
    /// Nobody has asked for it, or the operator may not read that.
    NotAsked,
    /// Somebody has asked for it at this time, by the API server's clock.
    Asked(Timestamp),
    /// The namespace is gone.
    Done,
}

/// Asks for the progress of a namespace's deletion.
pub async fn deletion(client: &Client, namespace: &str) -> kube::Result<Deletion> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let asked = match namespaces.get(namespace).await {
        Ok(namespace) => namespace.metadata.deletion_timestamp,
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(Deletion::Done),
        Err(kube::Error::Api(status)) if status.is_forbidden() => None,
        Err(error) => return Err(error),
    };
    let asked = asked.and_then(|asked| Timestamp::from_millis(asked.0.as_millisecond()));
    Ok(asked.map_or(Deletion::NotAsked, Deletion::Asked))
}

/// Whether nothing can be created in a namespace any more. Where that may not be asked, the API server
/// refuses what is created.
pub async fn is_terminating(client: &Client, namespace: &str) -> kube::Result<bool> {
    Ok(deletion(client, namespace).await? != Deletion::NotAsked)
}
