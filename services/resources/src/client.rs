//! The connection to the API server, with the deadlines that kube leaves open.

use std::time::Duration;

use kube::{Client, Config};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

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

/// A client of the API server that `KUBECONFIG` or the pod's service account names. An answer, or
/// a part of a watch, may take `read_timeout`.
pub async fn connect(read_timeout: Duration) -> Result<Client, ClientError> {
    let mut config = Config::infer().await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(read_timeout);
    // Otherwise a pooled connection's idle time counts against the next answer.
    config.reset_reader_on_write = true;
    config.write_timeout = Some(WRITE_TIMEOUT);
    // kube would retry 15 times, up to 1 000 s apart; callers retry by themselves.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}
