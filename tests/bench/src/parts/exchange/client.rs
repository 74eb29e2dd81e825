//! hyper-util's client with its pool, bounded as the gate is.

use anyhow::Result;
use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderName, HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;

use super::terms::{Client, DEADLINE, IDLE, MOST_BYTES, UNDER_WAY, fields, kept};

/// The client, and what every request has.
pub struct Pooling {
    client: legacy::Client<HttpConnector, Empty<Bytes>>,
    authority: Authority,
    fields: [(HeaderName, HeaderValue); 4],
}

impl Pooling {
    /// Of the service at an address.
    pub fn new(address: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(UNDER_WAY)
            .build(connector);
        Self {
            client,
            authority: address.parse().expect("an address is an authority"),
            fields: fields(),
        }
    }

    fn request(&self, target: &str) -> Result<Request<Empty<Bytes>>> {
        let target: PathAndQuery = target.parse()?;
        let uri = Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.authority.clone())
            .path_and_query(target)
            .build()?;
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.reserve(self.fields.len() + 1);
        for (name, value) in &self.fields {
            headers.insert(name, value.clone());
        }
        Ok(request)
    }
}

impl Client for Pooling {
    async fn get(&self, target: &str) -> Result<Response<Bytes>> {
        let request = self.request(target)?;
        timeout(DEADLINE, async {
            let (mut head, body) = self.client.request(request).await?.into_parts();
            let body = Limited::new(body, MOST_BYTES).collect().await;
            let body = body.map_err(anyhow::Error::from_boxed)?.to_bytes();
            head.headers = kept(head.headers);
            Ok(Response::from_parts(head, body))
        })
        .await?
    }
}
