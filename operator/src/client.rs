//! The connection to the API server, with the deadlines that kube leaves open.

use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use kube::runtime::watcher;
use kube::{Api, Client, Config, Resource};

use crate::config::Scope;

/// Above a watch's own 60 s, so that only a dead connection meets it.
const READ_TIMEOUT: Duration = Duration::from_secs(75);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// A dead watch is noticed this soon; kube's default is 295 s.
const WATCH_SECONDS: u32 = 60;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Neither a kubeconfig nor a service account.
    #[error("finding the API server by KUBECONFIG or by the pod's service account")]
    Config(#[from] kube::config::InferConfigError),
    /// TLS material that cannot be read.
    #[error("preparing the connection to the API server")]
    Client(#[from] kube::Error),
}

/// A client of the API server that `KUBECONFIG` or the pod's service account names.
pub async fn connect() -> Result<Client, ClientError> {
    let mut config = Config::infer().await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    // Otherwise a pooled connection's idle time counts against the next answer.
    config.reset_reader_on_write = true;
    config.write_timeout = Some(WRITE_TIMEOUT);
    // kube would retry 15 times, up to 1 000 s apart; controllers and the election retry themselves.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// How everything is watched.
pub fn watching() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// Everything of a kind that may be looked at.
pub fn watched<K>(client: &Client, scope: Scope, namespace: &str) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match scope {
        Scope::Namespaced => Api::namespaced(client.clone(), namespace),
        Scope::Cluster => Api::all(client.clone()),
    }
}
