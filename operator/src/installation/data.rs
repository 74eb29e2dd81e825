//! The question to departements what data is loaded: `GET /data` on its admin port.

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use super::render::ADMIN_PORT;

/// It answers from memory.
const WITHIN: Duration = Duration::from_secs(2);

/// Rows of each public dataset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct Loaded {
    /// Départements with a stress record.
    pub stress: u64,
    /// Départements with a risk record.
    pub risk: u64,
}

/// Why it is not known.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// No pod, no network, no name.
    #[error("{address} cannot be reached: {source}")]
    Away {
        /// Whom.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The connection broke.
    #[error("{address} gives no whole answer: {source}")]
    Broken {
        /// Whom.
        address: String,
        /// Why.
        source: hyper::Error,
    },
    /// It answered with something else.
    #[error("{0} gives an unexpected answer")]
    Shape(String),
    /// It took too long.
    #[error("{0} did not answer within {WITHIN:?}")]
    Late(String),
}

/// Asks the departements of the WaterDataApi `name`.
pub async fn ask(name: &str, namespace: &str) -> Result<Loaded, DataError> {
    let address = format!("{name}-departements.{namespace}.svc:{ADMIN_PORT}");
    let asked = tokio::time::timeout(WITHIN, get(&address)).await;
    asked.unwrap_or(Err(DataError::Late(address)))
}

async fn get(address: &str) -> Result<Loaded, DataError> {
    let away = |source| DataError::Away {
        address: address.into(),
        source,
    };
    let broken = |source| DataError::Broken {
        address: address.into(),
        source,
    };
    let shape = || DataError::Shape(address.into());
    let stream = TcpStream::connect(address).await.map_err(away)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let request = Request::get("/data").header(header::HOST, address);
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

    use super::*;

    async fn answered(body: &str) -> Result<Loaded, DataError> {
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
        tokio::join!(get(&address), server).0
    }

    #[tokio::test]
    async fn the_counts_are_read() {
        let loaded = answered(r#"{"stress":101,"risk":0,"later":1}"#)
            .await
            .unwrap();
        assert_eq!(
            loaded,
            Loaded {
                stress: 101,
                risk: 0
            }
        );
    }

    #[tokio::test]
    async fn another_answer_is_none() {
        assert!(matches!(
            answered(r#"{"stress":"many"}"#).await,
            Err(DataError::Shape(_))
        ));
    }

    #[tokio::test]
    async fn nobody_there_is_none() {
        let free = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        assert!(matches!(
            get(&free.to_string()).await,
            Err(DataError::Away { .. })
        ));
    }
}
