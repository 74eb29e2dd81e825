//! The connection to the API server, with the deadlines that kube leaves open.

use std::time::Duration;

use http::{Request, Uri};
use kube::client::ClientBuilder;
use kube::{Client, Config};
use tower::util::MapRequestLayer;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

/// Reason for which there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Lack of both a kubeconfig and a service account.
    #[error("finding the API server by KUBECONFIG or by the pod's service account")]
    Config(#[from] kube::config::InferConfigError),
    /// TLS material that cannot be read.
    #[error("preparing the connection to the API server")]
    Client(#[from] kube::Error),
}

/// Returns a client of the API server that `KUBECONFIG` or the pod's service account names. An answer, or a part of a
/// watch, may take `read_timeout`.
pub async fn connect(read_timeout: Duration) -> Result<Client, ClientError> {
    let mut config = Config::infer().await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(read_timeout);
    // Otherwise a pooled connection's idle time counts against the next answer.
    config.reset_reader_on_write = true;
    config.write_timeout = Some(WRITE_TIMEOUT);
    // kube would retry 15 times, up to 1 000 s apart; callers retry by themselves.
    config.default_retry = false;
    let recent = MapRequestLayer::new(with_recent_state);
    Ok(ClientBuilder::try_from(config)?.with_layer(&recent).build())
}

/// kube asks for a state as old as the API server likes (`resourceVersion=0`) where a watch begins with
/// all objects. Without a version it is the most recent one, as a list shows it.
fn with_recent_state<B>(mut request: Request<B>) -> Request<B> {
    let recent = recent_state(request.uri());
    if let Some(recent) = recent {
        *request.uri_mut() = recent;
    }
    request
}

fn recent_state(uri: &Uri) -> Option<Uri> {
    let any = uri.query()?.contains("sendInitialEvents=true");
    let uri = any.then(|| uri.to_string())?;
    uri.strip_suffix("&resourceVersion=0")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(uri: &'static str) -> String {
        let request = Request::get(uri).body(()).unwrap();
        with_recent_state(request).uri().to_string()
    }

    #[test]
    fn a_watch_that_begins_with_all_objects_shows_the_most_recent_state() {
        assert_eq!(
            asked("/api/v1/secrets?&watch=true&sendInitialEvents=true&resourceVersion=0"),
            "/api/v1/secrets?&watch=true&sendInitialEvents=true"
        );
        for unchanged in [
            "/api/v1/secrets?&watch=true&resourceVersion=0",
            "/api/v1/secrets?&watch=true&sendInitialEvents=true&resourceVersion=10",
            "/api/v1/secrets",
        ] {
            assert_eq!(asked(unchanged), unchanged);
        }
    }
}
