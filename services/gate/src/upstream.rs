//! Client of one service behind the gate: HTTP/1.1 with its own pool of connections.
//!
//! Each worker thread has its own, so nothing here is contended. hyper-util's client does more (redirects to other
//! hosts, HTTP/2, proxies), and that took a third of the gate's time.

mod address;
mod answer;
mod attempts;
mod breaker;
mod connection;
mod failure;
mod pool;
mod request;
mod resolver;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Response};
use tokio::sync::Semaphore;
use tokio::time::{Instant, interval, timeout_at};
use tracing::{info, warn};
use water_http::route::ServiceName;

pub use address::ServiceAddress;
pub use failure::UpstreamFailure;
pub use request::Request;
pub use resolver::Resolver;

use breaker::Breaker;
use connection::Connection;
use pool::Pool;

/// Interval of the checks of idle connections. A draining service waits 2 s for our side.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Times and sizes that bound one exchange with a service.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Intervals of 100 ms in which a connection is attempted, one attempt in each.
    pub connect: u32,
    /// Intervals for a new connection after an exchange failed. If all pods are down, a client is answered within a
    /// second: these, and the time of the detection (0.68 s, [`UpstreamFailure::Gone`]).
    pub reconnect: u32,
    /// Time from the request to the answer's last byte, with a retry. A history page may take the 2 s of its statement
    /// timeout, after waiting for a free database connection.
    pub answer: Duration,
    /// Largest body in bytes. The largest page (100 items) has about 40 kB; more than 1 MiB can only be a fault.
    pub body: usize,
    /// Requests under way to this service from this worker; more than its database can serve.
    pub concurrent: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect: 9,
            reconnect: 2,
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
    /// Returns the service of that name.
    pub fn for_service(&self, service: ServiceName) -> &Upstream {
        match service {
            ServiceName::Departements => &self.departements,
            ServiceName::History => &self.history,
        }
    }

    /// Closes unneeded idle connections while it is polled. Must run in parallel with the requests, on the runtime on
    /// which the connections live.
    pub async fn attend(&self) -> Infallible {
        let mut looks = interval(SWEEP_EVERY);
        loop {
            let now = looks.tick().await;
            self.departements.pool.sweep(now);
            self.history.pool.sweep(now);
        }
    }
}

/// A service and the connections to it.
#[derive(Debug)]
pub struct Upstream {
    resolver: Arc<Resolver>,
    bounds: Bounds,
    pool: Pool,
    breaker: Breaker,
    under_way: Semaphore,
}

impl Upstream {
    /// Makes the client of the service at these addresses. Nothing is connected yet.
    pub fn new(resolver: Arc<Resolver>, bounds: Bounds) -> Self {
        Self {
            resolver,
            bounds,
            pool: Pool::default(),
            breaker: Breaker::default(),
            under_way: Semaphore::new(bounds.concurrent),
        }
    }

    /// Returns the service's `host:port`.
    pub fn address(&self) -> &str {
        self.resolver.name()
    }

    /// Whether the service is known to be down, and it is not yet time to try again.
    pub fn is_away(&self, now: Instant) -> bool {
        !self.breaker.allows(now)
    }

    /// Sends a request at `now` and reads the whole answer, with the fields named in `keep`. `request` is built again
    /// for a second attempt, which is made only where it is safe ([`UpstreamFailure::allows_another_attempt`]).
    pub async fn send(
        &self,
        now: Instant,
        keep: &[HeaderName],
        request: impl Fn() -> Request,
    ) -> Result<Response<Bytes>, UpstreamFailure> {
        self.breaker.sent(now);
        let outcome = self.within_the_deadline(now, keep, request).await;
        match &outcome {
            Err(failure) if failure.is_silence() => self.failed(),
            // The service rejects this gate: further requests would be charged for nothing.
            Ok(answer) if matches!(answer.status().as_u16(), 401 | 403) => self.failed(),
            _ => self.answered(),
        }
        outcome
    }

    async fn within_the_deadline(
        &self,
        now: Instant,
        keep: &[HeaderName],
        request: impl Fn() -> Request,
    ) -> Result<Response<Bytes>, UpstreamFailure> {
        timeout_at(now + self.bounds.answer, async {
            let _permit = self.under_way.acquire().await;
            let reused = self.pool.take(now);
            let first = self.attempt(reused, self.bounds.connect, keep, request());
            let other = match first.await {
                // Connections that are still in the pool have answered since.
                Err(UpstreamFailure::Gone(_)) => {
                    self.pool.close_unheard_since(now);
                    self.pool.take(Instant::now())
                }
                Err(failure) if failure.allows_another_attempt() => None,
                outcome => return outcome,
            };
            let reconnect = self.bounds.reconnect;
            self.attempt(other, reconnect, keep, request()).await
        })
        .await
        .map_err(|_| UpstreamFailure::TooSlow)?
    }

    /// Makes one exchange, on the given connection or on a new one, attempted in `connect` intervals.
    async fn attempt(
        &self,
        reused: Option<Connection>,
        connect: u32,
        keep: &[HeaderName],
        request: Request,
    ) -> Result<Response<Bytes>, UpstreamFailure> {
        let mut connection = match reused {
            Some(connection) => connection,
            None => Connection::open(&self.resolver, connect).await?,
        };
        let answered = connection
            .exchange(request, self.address(), keep, self.bounds.body)
            .await?;
        if answered.keeps_open {
            self.pool.put(connection, Instant::now());
        }
        Ok(answered.response)
    }

    fn failed(&self) {
        if self.breaker.failed(Instant::now()) {
            let service = self.address();
            warn!(
                service,
                "a service does not answer, or refuses this gate; refusing its requests"
            );
        }
    }

    fn answered(&self) {
        if self.breaker.answered() {
            info!(service = self.address(), "a service answers again");
        }
    }
}

#[cfg(test)]
mod tests;
