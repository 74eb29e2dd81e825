//! A service behind the gate: its ports, its metrics and health, and its routes behind the identity check. Each service
//! adds its routes and their data.

mod config;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use warp::filters::BoxedFilter;
use warp::reply::Response;
use warp::{Filter, Rejection, Reply};
use water_runtime::{
    Admin, BoxError, ConnectionLimits, Connections, DrainOutcome, Process, Server, Shutdown,
};

use crate::{ClockSkew, RequestIds, Spans, Verifier};

pub use config::Config;

/// A service with its ports open; requests wait until [`Backend::serve`].
pub struct Backend {
    listener: TcpListener,
    admin: SocketAddr,
    server: Server,
    stop_delay: Duration,
    verifier: Verifier,
    clock_skew: ClockSkew,
    ids: RequestIds,
    spans: Spans,
    routes: BoxedFilter<(Response,)>,
}

impl Backend {
    /// Opens the ports. Must be called after the service's own metrics are registered. `random` distinguishes this
    /// process' request ids from those of others; `admin` adds the service's own admin routes; `routes` are as
    /// [`crate::service()`] takes them.
    pub fn open<F, R>(
        config: &Config,
        random: u64,
        process: &mut Process,
        admin: impl FnOnce(Admin) -> Admin,
        routes: F,
    ) -> Result<Self, BoxError>
    where
        F: Filter<Extract = (R,), Error = Rejection, Future: Send> + Clone + Send + Sync + 'static,
        R: Reply + 'static,
    {
        let connections = connections();
        connections.register(&mut process.metrics);
        let clock_skew = ClockSkew::default();
        clock_skew.register(&mut process.metrics);
        let settings = &config.process;
        let tracer = process.export_traces(&settings.traces)?;
        let admin = process.open_admin(settings.admin, admin)?;
        let shutdown = Shutdown::clone(&process.shutdown);
        Ok(Self {
            listener: process.listen(settings.listen)?,
            admin,
            server: Server::new(connections, shutdown, settings.drain),
            stop_delay: settings.stop_delay,
            verifier: Verifier::new(&config.identity_current, config.identity_next.as_ref()),
            clock_skew,
            ids: RequestIds::new(random),
            spans: Spans::new(tracer),
            routes: routes.map(Reply::into_response).boxed(),
        })
    }

    /// Returns the address for requests.
    pub fn address(&self) -> Result<SocketAddr, BoxError> {
        Ok(self.listener.local_addr()?)
    }

    /// Returns the address for health and metrics.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Answers requests until a signal asks the process to stop, and then until all are drained.
    pub async fn run(self, process: &mut Process) -> Result<(), BoxError> {
        process.finish(self.stop_delay, self.serve()).await
    }

    /// Answers requests until the process drains.
    pub async fn serve(self) -> Result<DrainOutcome, Infallible> {
        let service = crate::service(
            self.verifier,
            self.clock_skew,
            self.ids,
            self.spans,
            self.routes,
        );
        Ok(self.server.serve(self.listener, |_| service.clone()).await)
    }
}

/// Limits for the gates, the only clients. Each may keep many connections, and closes one only when nobody waits for
/// its answer any more.
fn connections() -> Connections {
    Connections::new(ConnectionLimits {
        per_peer: usize::MAX,
        half_close: false,
        ..ConnectionLimits::default()
    })
}
