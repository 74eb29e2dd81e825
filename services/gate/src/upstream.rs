//! One service behind the gate: a small HTTP/1.1 client with its own pool of connections.
//!
//! Each worker thread has its own, so nothing here is contended. hyper-util's client does more
//! (redirects to other hosts, HTTP/2, proxies), and that more was a third of the gate's time.

mod address;
mod breaker;
mod connection;
mod failure;
mod pool;

use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Limited};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

pub use address::ServiceAddress;
pub use failure::UpstreamFailure;

use crate::route::ServiceName;
use breaker::Breaker;
use connection::Connection;
use pool::Pool;

/// The times and sizes that bound one exchange with a service.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A pod on the same network accepts in milliseconds or not at all.
    pub connect: Duration,
    /// From the request to the answer's last byte, a retry included. A history page may take the
    /// 2 s of its statement timeout, after waiting for a free database connection.
    pub answer: Duration,
    /// The largest page (100 items) has about 40 kB; 1 MiB can only be a fault.
    pub body: usize,
    /// Requests under way to this service from this worker; more than its database can serve.
    pub concurrent: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            answer: Duration::from_secs(5),
            body: 1024 * 1024,
            concurrent: 256,
        }
    }
}

/// The services behind the gate.
#[derive(Debug)]
pub struct Upstreams {
    /// Answers stress and risque.
    pub departements: Upstream,
    /// Answers hydrorisk and conformite.
    pub history: Upstream,
}

impl Upstreams {
    /// The service of that name.
    pub fn of(&self, service: ServiceName) -> &Upstream {
        match service {
            ServiceName::Departements => &self.departements,
            ServiceName::History => &self.history,
        }
    }
}

/// A service and the connections to it.
#[derive(Debug)]
pub struct Upstream {
    address: ServiceAddress,
    bounds: Bounds,
    pool: Pool,
    breaker: Breaker,
    under_way: Semaphore,
}

impl Upstream {
    /// The service at an address. Nothing is connected yet.
    pub fn new(address: ServiceAddress, bounds: Bounds) -> Self {
        Self {
            address,
            bounds,
            pool: Pool::default(),
            breaker: Breaker::default(),
            under_way: Semaphore::new(bounds.concurrent),
        }
    }

    /// The host and port where it is.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// Whether the service is known to be away, and it is not yet time to try again.
    pub fn is_away(&self) -> bool {
        !self.breaker.allows(Instant::now())
    }

    /// Sends a request without a body and reads the whole answer. `request` is built again for a
    /// second attempt, which follows only where it is safe ([`UpstreamFailure::left_no_trace`]).
    pub async fn send(
        &self,
        request: impl Fn() -> Request<Empty<Bytes>>,
    ) -> Result<Response<Bytes>, UpstreamFailure> {
        self.breaker.sent(Instant::now());
        let outcome = self.within_the_deadline(request).await;
        match &outcome {
            Err(failure) if failure.is_silence() => self.failed(),
            _ => self.answered(),
        }
        outcome
    }

    async fn within_the_deadline(
        &self,
        request: impl Fn() -> Request<Empty<Bytes>>,
    ) -> Result<Response<Bytes>, UpstreamFailure> {
        timeout(self.bounds.answer, async {
            let _permit = self.under_way.acquire().await;
            match self.attempt(request()).await {
                Err(failure) if failure.left_no_trace() => self.fresh(request()).await,
                outcome => outcome,
            }
        })
        .await
        .map_err(|_| UpstreamFailure::TooSlow)?
    }

    async fn attempt(
        &self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Bytes>, UpstreamFailure> {
        match self.pool.take(Instant::now()).await {
            Some(connection) => self.exchange(connection, request).await,
            None => self.fresh(request).await,
        }
    }

    async fn fresh(
        &self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Bytes>, UpstreamFailure> {
        let connection = Connection::open(self.address.as_str(), self.bounds.connect).await?;
        self.exchange(connection, request).await
    }

    async fn exchange(
        &self,
        mut connection: Connection,
        mut request: Request<Empty<Bytes>>,
    ) -> Result<Response<Bytes>, UpstreamFailure> {
        request.headers_mut().insert(HOST, self.address.host());
        let (head, body) = connection.send(request).await?.into_parts();
        let body = Limited::new(body, self.bounds.body)
            .collect()
            .await
            .map_err(UpstreamFailure::in_body)?;
        if !connection::asks_to_close(&head.headers) {
            self.pool.put(connection, Instant::now());
        }
        Ok(Response::from_parts(head, body.to_bytes()))
    }

    fn failed(&self) {
        if self.breaker.failed(Instant::now()) {
            let service = self.address.as_str();
            warn!(service, "a service does not answer; refusing its requests");
        }
    }

    fn answered(&self) {
        if self.breaker.answered() {
            info!(service = self.address.as_str(), "a service answers again");
        }
    }
}

#[cfg(test)]
mod tests;
