//! The client that carries batches of spans to the collector.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::BoxError;
use crate::telemetry::chain;

/// Time from the connection to the answer's last byte. Only the next batch waits for it.
const DEADLINE: Duration = Duration::from_secs(5);
/// Bytes of an answer, which says at most how many spans were refused, and why.
const LARGEST_ANSWER: usize = 64 * 1024;

/// A collector, asked over a new connection for each batch: there is at most one every few seconds,
/// or as many as make up 512 spans.
#[derive(Debug)]
pub(super) struct Collector {
    /// Runtime of the exchanges: the exporter's own thread has none.
    runtime: Handle,
    /// Flag: the last batch was refused or not answered, which is logged once.
    failing: AtomicBool,
}

impl Collector {
    pub(super) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            failing: AtomicBool::new(false),
        }
    }

    fn note(&self, outcome: &Result<Response<Bytes>, BoxError>) {
        let failure = match outcome {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(CollectorRefusal(answer.status()).to_string()),
            Err(error) => Some(chain(error.as_ref())),
        };
        let failed_before = self.failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(error) if !failed_before => {
                warn!(
                    error,
                    "the collector takes no spans; they are lost until it does"
                );
            }
            None if failed_before => info!("the collector takes spans again"),
            _ => {}
        }
    }
}

/// An answer that takes no spans.
#[derive(Debug, thiserror::Error)]
#[error("the collector answered with {0}")]
struct CollectorRefusal(StatusCode);

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let in_time = async { timeout(DEADLINE, exchange(request)).await };
        let exchange = self.runtime.spawn(in_time);
        let outcome = match exchange.await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(too_slow)) => Err(too_slow.into()),
            // The runtime ends, and the process with it.
            Err(ended) => return Err(ended.into()),
        };
        self.note(&outcome);
        outcome
    }
}

async fn exchange(mut request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
    let target = std::mem::take(request.uri_mut());
    let host = target.host().unwrap_or_default();
    let port = target.port_u16().unwrap_or(80);
    let stream = TcpStream::connect(format!("{host}:{port}")).await?;
    let path = target
        .path_and_query()
        .map_or("/", PathAndQuery::as_str)
        .to_owned();
    *request.uri_mut() = Uri::try_from(path)?;
    let host = HeaderValue::try_from(format!("{host}:{port}"))?;
    request.headers_mut().insert(HOST, host);
    let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the exchange; its error is the request's too.
    tokio::spawn(connection);
    let answer = requests.send_request(request.map(Full::new)).await?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, LARGEST_ANSWER).collect().await?;
    Ok(Response::from_parts(head, body.to_bytes()))
}
