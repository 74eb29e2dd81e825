//! The service put together: what runs, on which ports, sharing what.

use std::convert::Infallible;
use std::net::SocketAddr;

use serde_json::json;
use tokio::net::TcpListener;
use water_database::Database;
use water_http::{ClockSkew, RequestIds, Spans, Verifier};
use water_runtime::{Admin, BoxError, ConnectionLimits, Connections, Drained, Process, Server};

use crate::config::Config;
use crate::datasets::Answers;
use crate::refresh::{Counts, Current, follow};
use crate::routes::routes;

/// The service with its ports open; requests wait until [`Service::serve`].
pub struct Service {
    listener: TcpListener,
    admin: SocketAddr,
    server: Server,
    current: Current,
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
        let current = Current::default();
        let refreshes = Counts::default();
        refreshes.register(&mut process.metrics);
        let read = process.readiness.latch("datasets");
        let following = follow(database, Current::clone(&current), refreshes, read);
        process.tasks.spawn("refresh", following);

        // The gates are the only clients, and each may keep many connections.
        let connections = Connections::new(ConnectionLimits {
            per_peer: usize::MAX,
            ..ConnectionLimits::default()
        });
        connections.register(&mut process.metrics);
        let clock_skew = ClockSkew::default();
        clock_skew.register(&mut process.metrics);
        let tracer = process.export_traces(&config.process.traces)?;
        let counted = Current::clone(&current);
        let data = |admin: Admin| admin.json("/data", move || records(&counted));
        let admin = process.open_admin(config.process.admin, data)?;

        Ok(Self {
            listener: process.listen(config.process.listen)?,
            admin,
            server: Server::new(connections, process.shutdown.clone(), config.process.drain),
            current,
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
        let routes = routes(self.current);
        let (verifier, skew) = (self.verifier, self.clock_skew);
        let service = water_http::service(verifier, skew, self.ids, self.spans, routes);
        Ok(self.server.serve(self.listener, |_| service.clone()).await)
    }
}

/// What the operator asks to know whether data was loaded: records by dataset.
fn records(current: &Current) -> serde_json::Value {
    let datasets = current.load();
    let count = |answers: Option<&Answers>| answers.map_or(0, |answers| answers.by_code.len());
    json!({
        "stress": count(datasets.as_ref().and_then(|datasets| datasets.stress.as_ref())),
        "risk": count(datasets.as_ref().and_then(|datasets| datasets.risk.as_ref())),
    })
}
