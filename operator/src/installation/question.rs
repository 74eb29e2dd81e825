//! Requests of the operator to the admin port of an installation's pods, by their Service: the data that is loaded, and
//! whether people can sign in.

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use kube::ResourceExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use water_resources::WaterDataApi;

use super::render::{ADMIN_PORT, Part};

/// Time limit of a request: the pods answer from memory.
const WITHIN: Duration = Duration::from_secs(2);

/// Rows of each public dataset, as departements answers at `/data`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct RowCounts {
    pub stress: u64,
    pub risk: u64,
}

/// State of the identity provider, as a pod of the portal answers at `/provider`.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Provider {
    /// Whether it can be used; `None`: the pod has not asked it yet.
    pub usable: Option<bool>,
    pub problem: String,
    /// Whether the provider rejects the portal's client id or secret.
    pub client_refused: bool,
}

/// Asks the pods of a part; an error says in words why no answer came.
pub async fn ask<T: DeserializeOwned>(
    api: &WaterDataApi,
    part: Part,
    path: &str,
) -> Result<T, String> {
    let (name, namespace) = (api.name_any(), api.namespace().unwrap_or_default());
    let service = format!("{name}-{}", part.component());
    let address = format!("{service}.{namespace}.svc:{ADMIN_PORT}");
    get_within(&address, path).await
}

/// Gives up after [`WITHIN`].
async fn get_within<T: DeserializeOwned>(address: &str, path: &str) -> Result<T, String> {
    let asked = tokio::time::timeout(WITHIN, get(address, path)).await;
    asked.unwrap_or_else(|_| Err(format!("{address} did not answer within {WITHIN:?}")))
}

async fn get<T: DeserializeOwned>(address: &str, path: &str) -> Result<T, String> {
    let away = |error| format!("{address} cannot be reached: {error}");
    let broken = |error: hyper::Error| format!("{address} gives no whole answer: {error}");
    let shape = || format!("{address} gives an unexpected answer");
    let stream = TcpStream::connect(address).await.map_err(away)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let request = Request::get(path).header(header::HOST, address);
    let request = request.body(Empty::<Bytes>::new()).map_err(|_| shape())?;
    let exchange = async move {
        let answer = sender.send_request(request).await?;
        let is_success = answer.status().is_success();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((is_success, body))
    };
    // The connection ends with the exchange, which owns its only sender.
    let (answer, _) = tokio::join!(exchange, connection);
    match answer.map_err(broken)? {
        (true, body) => serde_json::from_slice(&body).map_err(|_| shape()),
        (false, _) => Err(shape()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use water_harness::Port;

    use super::*;

    #[derive(PartialEq, Debug, Deserialize)]
    struct RowCount {
        rows: u64,
    }

    async fn answered(body: &str) -> Result<RowCount, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        };
        tokio::join!(get(&address, "/data"), server).0
    }

    #[tokio::test]
    async fn an_answer_is_read_as_far_as_it_is_known() {
        let counted = answered(r#"{"rows":101,"later":1}"#).await.unwrap();
        assert_eq!(counted, RowCount { rows: 101 });
    }

    #[tokio::test]
    async fn another_answer_is_none() {
        let error = answered(r#"{"rows":"many"}"#).await.unwrap_err();
        assert!(error.ends_with("gives an unexpected answer"), "{error}");
    }

    #[tokio::test]
    async fn nobody_there_is_none() {
        let port = Port::reserve().unwrap();
        let asked = get::<RowCount>(&port.address().to_string(), "/data").await;
        let error = asked.unwrap_err();
        assert!(error.contains("cannot be reached"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_stays_silent_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = get_within::<RowCount>(&address, "/data");
        let given_up = tokio::time::timeout(10 * WITHIN, asked).await;
        let error = given_up.expect("it waits on").unwrap_err();
        assert_eq!(error, format!("{address} did not answer within 2s"));
    }
}
