//! The gate's exchange, as the gate calls it.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Response};
use tokio::time::Instant;
use water_gate::upstream::{Bounds, Request, Resolver, Upstream};

use super::terms::{Client, KEPT, fields};

/// One service with its pool, breaker and bound on what is under way.
pub struct Ours {
    upstream: Upstream,
    fields: [(HeaderName, HeaderValue); 4],
}

impl Ours {
    /// The service at an address.
    pub fn new(address: &str) -> Result<Self> {
        Ok(Self {
            upstream: Upstream::new(Arc::new(Resolver::new(address.parse()?)), Bounds::default()),
            fields: fields(),
        })
    }

    fn request(&self, target: &str) -> Request {
        let mut request = Request::new(&Method::GET, target);
        for (name, value) in &self.fields {
            request.field(name, value);
        }
        request
    }
}

impl Client for Ours {
    async fn get(&self, target: &str) -> Result<Response<Bytes>> {
        let request = || self.request(target);
        Ok(self.upstream.send(Instant::now(), &KEPT, request).await?)
    }
}
