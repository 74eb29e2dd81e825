//! The service put together: what runs, on which ports, sharing what.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use water_database::Database;
use water_http::{ClockSkew, RequestIds, Spans, Verifier};
use water_runtime::{
    BoxError, ConnectionLimits, Connections, Drained, Latch, Process, Server, telemetry,
};

use crate::config::Config;
use crate::routes::routes;

/// How soon a pod that started before its database is ready after it.
const EACH: Duration = Duration::from_secs(1);

/// The service with its ports open; requests wait until [`Service::serve`].
pub struct Service {
    listener: TcpListener,
    admin: SocketAddr,
    server: Server,
    database: Database,
    verifier: Verifier,
    clock_skew: ClockSkew,
    ids: RequestIds,
    spans: Spans,
}

impl Service {
    /// Opens the ports and starts what runs beside the requests. `random` tells this process'
    /// request ids from those of others.
    pub fn start(config: &Config, random: u64, process: &mut Process) -> Result<Self, BoxError> {
        let database = Database::connect(
            config.postgres_url.expose(),
            config.postgres_ca_file.as_deref(),
            config.postgres_connections.get(),
        )?;
        let read = process.readiness.latch("database");
        process
            .tasks
            .spawn("first read", first_read(database.clone(), read));

        // The gates are the only clients, and each may keep many connections.
        let connections = Connections::new(ConnectionLimits {
            per_peer: usize::MAX,
            ..ConnectionLimits::default()
        });
        connections.register(&mut process.metrics);
        let clock_skew = ClockSkew::default();
        clock_skew.register(&mut process.metrics);
        let tracer = process.export_traces(&config.process.traces)?;
        let admin = process.open_admin(config.process.admin, |admin| admin)?;

        Ok(Self {
            listener: process.listen(config.process.listen)?,
            admin,
            server: Server::new(connections, process.shutdown.clone(), config.process.drain),
            database,
            verifier: Verifier::new(&config.identity_current, config.identity_next.as_ref()),
            clock_skew,
            ids: RequestIds::new(random),
            spans: Spans::new(tracer),
        })
    }

    /// Where requests are answered.
    pub fn address(&self) -> Result<SocketAddr, BoxError> {
        Ok(self.listener.local_addr()?)
    }

    /// Where health and metrics are answered.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Answers requests until the process is asked to stop.
    pub async fn serve(self) -> Result<Drained, Infallible> {
        let routes = routes(self.database);
        let (verifier, skew) = (self.verifier, self.clock_skew);
        let service = water_http::service(verifier, skew, self.ids, self.spans, routes);
        Ok(self.server.serve(self.listener, |_| service.clone()).await)
    }
}

/// Ready once the database was read. Later outages are answered with 503 and do not make the
/// service unready: then no gate could reach it to hear why.
async fn first_read(database: Database, read: Latch) {
    let mut pace = interval(EACH);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut said = false;
    loop {
        pace.tick().await;
        match database.check().await {
            Ok(()) => break,
            // Said once, not once a second.
            Err(error) if !std::mem::replace(&mut said, true) => {
                warn!(
                    error = telemetry::chain(&error),
                    "cannot read the database; not ready"
                );
            }
            Err(_) => {}
        }
    }
    read.set();
    info!("the database can be read");
    std::future::pending().await
}
