//! Start of the gate: its tasks, its ports and their shared state.

use std::sync::Arc;

use hyper_util::service::TowerToHyperService;
use water_http::{Representation, RequestIds, Signer, Spans};
use water_keystore::connection::Purpose;
use water_keystore::{Limiter, Replica, Standby, Usage};
use water_runtime::listener::announce;
use water_runtime::workers::{Worker, WorkerDied, Workers};
use water_runtime::{BoxError, Connections, DrainOutcome, Process, Server};

use crate::app::{Gate, filter};
use crate::body_budget::BodyBudget;
use crate::capacity::connection_limits;
use crate::config::Config;
use crate::directory::Directory;
use crate::entrance::{Connection, Entrance};
use crate::grace::Grace;
use crate::guessing::Guessing;
use crate::last_use::{self, LastUse};
use crate::metrics::Metrics;
use crate::openapi;
use crate::preparation::Preparation;
use crate::upstream::{Bounds, Resolver, Upstream, Upstreams};

/// A gate with open ports and running workers.
#[derive(Debug)]
pub struct Service {
    workers: Workers,
    directory: Directory,
    last_use: Arc<LastUse>,
}

impl Service {
    /// Opens the ports, starts the workers and the background tasks. `random` distinguishes this process' request ids
    /// from those of others; each worker adds its own index.
    pub fn start(config: Config, random: u64, process: &mut Process) -> Result<Self, BoxError> {
        let replica = Arc::new(Replica::new(
            config.redis.connect(Purpose::Directory),
            config.instance.clone(),
            config.gate.clone(),
        ));
        let directory = Directory::follow(Arc::clone(&replica), process);
        let last_use = last_use(&config, process);
        let connections = Connections::new(connection_limits(
            process.descriptors,
            config.workers,
            config.trusted_proxies.networks().to_vec(),
        ));
        connections.register(&mut process.metrics);
        let grace = Arc::new(Grace {
            length: config.gate.grace,
            standby: Arc::new(Standby::new(replica.changes(), replica.live_gates())),
            directory: Arc::clone(&replica),
        });
        let watched = Arc::clone(&grace);
        process
            .tasks
            .spawn("grace", async move { match watched.watch().await {} });
        let (process_settings, count) = (config.process.clone(), config.workers);
        let shared = Arc::new(Shared {
            metrics: Metrics::of_workers(count, &mut process.metrics, Arc::clone(&grace)),
            spans: Spans::new(process.export_traces(&process_settings.traces)?),
            guessing: Arc::default(),
            budget: BodyBudget::default(),
            openapi: Arc::new(openapi::representation()),
            preparation: Preparation::new(count, process.readiness.latch("limiter")),
            random,
            server: Server::new(
                connections,
                process.shutdown.clone(),
                process_settings.drain,
            ),
            last_use: Arc::clone(&last_use),
            departements: Resolver::start(
                config.departements.clone(),
                "name of departements",
                process,
            ),
            history: Resolver::start(config.history.clone(), "name of history", process),
            replica,
            grace,
            config,
        });
        let workers = Workers::start(count, process_settings.listen, move |worker| {
            Arc::clone(&shared).work(worker)
        })?;
        announce("http", workers.address());
        process.open_admin(process_settings.admin, |routes| routes)?;
        Ok(Self {
            workers,
            directory,
            last_use,
        })
    }

    /// Answers requests until the process is asked to stop and everything is drained; then writes the last uses and
    /// returns the lease, so that no revocation waits for this gate.
    pub async fn serve(self) -> Result<DrainOutcome, WorkerDied> {
        let drained = self.workers.finish().await?;
        self.last_use.write().await;
        self.directory.leave().await;
        Ok(drained)
    }
}

/// Starts writing last uses and usage. They have a separate connection: the feed occupies the directory's.
fn last_use(config: &Config, process: &mut Process) -> Arc<LastUse> {
    let connection = config.redis.connect(Purpose::Directory);
    let usage = Usage::new(connection, config.instance.clone());
    let last_use = LastUse::new(usage, last_use::EVERY, config.workers);
    let last_use = Arc::new(last_use);
    let running = Arc::clone(&last_use);
    process
        .tasks
        .spawn("last use", async move { match running.run().await {} });
    last_use
}

/// State that all workers share.
struct Shared {
    config: Config,
    replica: Arc<Replica>,
    grace: Arc<Grace>,
    metrics: Vec<Metrics>,
    spans: Spans,
    guessing: Arc<Guessing>,
    budget: BodyBudget,
    last_use: Arc<LastUse>,
    departements: Arc<Resolver>,
    history: Arc<Resolver>,
    openapi: Arc<Representation>,
    preparation: Preparation,
    random: u64,
    server: Server,
}

impl Shared {
    /// Serves on one worker thread until the process ends.
    async fn work(self: Arc<Self>, worker: Worker) -> DrainOutcome {
        let gate = Arc::new(self.gate(worker.index));
        let entrance = Arc::new(Entrance {
            ids: RequestIds::new(self.random.wrapping_add(worker.index as u64)),
            proxies: self.config.trusted_proxies.clone(),
        });
        let filter = TowerToHyperService::new(warp::service(filter(Arc::clone(&gate))));
        let connection = |peer| Connection {
            filter: filter.clone(),
            entrance: Arc::clone(&entrance),
            peer,
        };
        tokio::select! {
            drained = self.server.serve(worker.listener, connection) => drained,
            never = self.preparation.keep_connected(&gate.limiter) => match never {},
            never = gate.upstreams.attend() => match never {},
        }
    }

    /// Makes the gate of one worker: connections live on the runtime that made them, so each worker has its own.
    fn gate(&self, worker: usize) -> Gate {
        let config = &self.config;
        Gate {
            prefix: config.key_prefix.clone(),
            directory: Arc::clone(&self.replica),
            grace: Arc::clone(&self.grace),
            guessing: Arc::clone(&self.guessing),
            last_use: self.last_use.notes(worker),
            limiter: Limiter::new(
                config.redis.connect(Purpose::Limiter),
                config.instance.clone(),
                Arc::clone(&self.grace.standby),
            ),
            signer: Signer::new(&config.identity),
            upstreams: Upstreams {
                departements: Upstream::new(Arc::clone(&self.departements), Bounds::default()),
                history: Upstream::new(Arc::clone(&self.history), Bounds::default()),
            },
            budget: self.budget.clone(),
            cors: config.cors.clone(),
            openapi: Arc::clone(&self.openapi),
            metrics: self.metrics[worker].clone(),
            spans: self.spans.clone(),
        }
    }
}
