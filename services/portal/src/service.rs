//! The portal's parts put together: tasks, ports and shared state.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use hyper_util::service::TowerToHyperService;
use kube::Client;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tracing::warn;
use water_gate::body_budget::BodyBudget;
use water_gate::upstream::{Bounds, Resolver, ServiceAddress, Upstream, Upstreams};
use water_http::{RequestHead, RequestIds, Signer, Spans, TrustedProxies};
use water_keystore::connection::{self, Purpose};
use water_keystore::{Allowances, Quotas, Usage};
use water_runtime::telemetry::chain;
use water_runtime::{BoxError, ConnectionLimits, Connections, DrainOutcome, Peer, Process, Server};

use crate::app::{Portal, filter};
use crate::budgets::Budgets;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::data::Data;
use crate::keys::{Keys, Rules};
use crate::metrics::Metrics;
use crate::pages::Pages;
use crate::plans::Plans;
use crate::proof::Proof;
use crate::provider::Provider;
use crate::sessions::Sessions;
use crate::sign_in::SignIn;
use crate::sign_out::SignOut;
use crate::standing::Standing;

/// Memory that answers in forms other than JSON may use, in KiB: 16 of the largest.
const LARGE_ANSWERS: u32 = 16 * 1024;

/// Pause between tries to read sessions: a pod that started before Redis is ready so soon after it.
const AGAIN: Duration = Duration::from_secs(1);

/// The portal with its ports open; requests wait until [`Service::serve`].
#[derive(Debug)]
pub struct Service {
    listener: TcpListener,
    admin: SocketAddr,
    server: Server,
    portal: Arc<Portal>,
    entrance: Arc<Entrance>,
}

/// Parts that all connections share.
#[derive(Debug)]
struct Entrance {
    ids: RequestIds,
    proxies: TrustedProxies,
}

impl Service {
    /// Opens the ports and starts the background tasks. `client` asks the API server; `random`
    /// distinguishes this process' request ids from those of others.
    pub fn start(
        config: Config,
        pages: Pages,
        client: Client,
        random: u64,
        process: &mut Process,
    ) -> Result<Self, BoxError> {
        let connections = Connections::new(ConnectionLimits {
            trusted: config.trusted_proxies.networks().to_vec(),
            ..ConnectionLimits::default()
        });
        connections.register(&mut process.metrics);
        let metrics = Metrics::default();
        metrics.register(&mut process.metrics);
        let tracer = process.export_traces(&config.process.traces)?;
        let spans = Spans::new(tracer);
        let plans = Plans::default();
        // One connection, which the first read of sessions opens before this pod is ready.
        let redis = config.redis.connect(Purpose::Directory);
        let sessions = sessions(&config, redis.clone(), process);
        let keys = keys(&config, client, redis.clone(), &plans, &metrics, process);
        let provider = Arc::new(Provider::new(config.client.clone()));
        let standing = standing(&provider, process);
        let portal = Arc::new(Portal {
            url: config.url.clone(),
            sign_in: SignIn {
                provider: Arc::clone(&provider),
                standing: standing.clone(),
                url: config.url.clone(),
                seal: config.seal_key.clone(),
                sessions: sessions.clone(),
                claim: config.accounts_claim.clone(),
                pattern: config.accounts_pattern.clone(),
                default_plan: config.accounts_default_plan.clone(),
                plans: plans.clone(),
                metrics: metrics.clone(),
            },
            sign_out: SignOut {
                provider,
                url: config.url.clone(),
                sessions: sessions.clone(),
            },
            sessions,
            budgets: Budgets::default(),
            prefix: config.key_prefix.clone(),
            plans,
            quotas: Quotas::new(redis, config.instance.clone()),
            data: data(&config, keys.allowances.clone(), spans.clone(), process),
            keys,
            pages,
            metrics,
            spans,
        });
        let admin = process.open_admin(config.process.admin, |admin| {
            admin.json("/provider", move || standing.answer())
        })?;
        let shutdown = process.shutdown.clone();
        Ok(Self {
            listener: process.listen(config.process.listen)?,
            admin,
            server: Server::new(connections, shutdown, config.process.drain),
            portal,
            entrance: Arc::new(Entrance {
                ids: RequestIds::new(random),
                proxies: config.trusted_proxies,
            }),
        })
    }

    /// Returns the address on which requests are answered.
    pub fn address(&self) -> Result<SocketAddr, BoxError> {
        Ok(self.listener.local_addr()?)
    }

    /// Returns the address on which health and metrics are answered.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Answers requests until the process drains.
    pub async fn serve(self) -> Result<DrainOutcome, Infallible> {
        let filter = TowerToHyperService::new(warp::service(filter(self.portal)));
        let connection = |peer| Connection {
            filter: filter.clone(),
            entrance: Arc::clone(&self.entrance),
            peer,
        };
        Ok(self.server.serve(self.listener, connection).await)
    }
}

/// Makes the sessions; the portal is ready once Redis has answered. When it is away later, requests are
/// answered with 503, and the portal stays ready: then somebody can hear why.
fn sessions(config: &Config, redis: connection::Connection, process: &mut Process) -> Sessions {
    let store = water_keystore::Sessions::new(redis, config.instance.clone());
    let (asked, latch) = (store.clone(), process.readiness.latch("sessions"));
    process.tasks.spawn("first look at sessions", async move {
        let mut said = false;
        while let Err(error) = asked.check().await {
            // Logged once, not once a second.
            if !std::mem::replace(&mut said, true) {
                warn!(error = chain(&error), "sessions cannot be read; not ready");
            }
            sleep(AGAIN).await;
        }
        latch.set();
        pending().await
    });
    Sessions::new(store, config.client.issuer.as_str(), config.session_length)
}

/// Starts the task that checks whether people can be signed in. A provider that is away leaves the portal
/// ready: people who are signed in go on.
fn standing(provider: &Arc<Provider>, process: &mut Process) -> Standing {
    let standing = Standing::default();
    standing.register(&mut process.metrics);
    let (following, provider) = (standing.clone(), Arc::clone(provider));
    process.tasks.spawn("identity provider", async move {
        match following.follow(&provider).await {}
    });
    standing
}

/// Makes the parts that answer requests about keys, and starts the task that follows the plans. Ready once
/// they are known: before that every account would hear that its plan has no access.
fn keys(
    config: &Config,
    client: Client,
    redis: connection::Connection,
    plans: &Plans,
    metrics: &Metrics,
    process: &mut Process,
) -> Keys {
    let cluster = Cluster::new(client, &config.instance);
    let (following, followed) = (cluster.clone(), plans.clone());
    let known = process.readiness.latch("plans");
    process.tasks.spawn("plans", async move {
        match following.follow_plans(&followed, known).await {}
    });
    bounds(cluster.clone(), process);
    Keys {
        cluster,
        allowances: Allowances::new(redis.clone(), config.instance.clone()),
        usage: Usage::new(redis, config.instance.clone()),
        rules: Rules {
            max_keys: config.max_keys.get() as usize,
            max_key_days: config.max_key_days.map(NonZeroU32::get),
        },
        prefix: config.key_prefix.clone(),
        plans: plans.clone(),
        metrics: metrics.clone(),
    }
}

/// Starts the task that checks that the API server refuses what the portal may not do.
fn bounds(cluster: Cluster, process: &mut Process) {
    let latch = process.readiness.latch("bounds of its rights");
    let proof = Proof::default();
    proof.register(&mut process.metrics);
    process.tasks.spawn("bounds of its rights", async move {
        match proof.follow(|| cluster.is_bounded(), &latch).await {}
    });
}

/// Makes the parts that answer requests for data, and starts the tasks that keep the services' connections.
fn data(config: &Config, allowances: Allowances, spans: Spans, process: &mut Process) -> Data {
    let mut service = |address: &ServiceAddress, latch| {
        let resolver = Resolver::start(address.clone(), latch, process);
        Upstream::new(resolver, Bounds::default())
    };
    let upstreams = Arc::new(Upstreams {
        departements: service(&config.departements, "name of departements"),
        history: service(&config.history, "name of history"),
    });
    let attended = Arc::clone(&upstreams);
    process.tasks.spawn("connections to services", async move {
        match attended.attend().await {}
    });
    Data {
        upstreams,
        signer: Signer::new(&config.identity),
        budget: BodyBudget::of_kib(LARGE_ANSWERS),
        allowances,
        spans,
    }
}

/// The service of one connection.
struct Connection<F> {
    filter: TowerToHyperService<F>,
    entrance: Arc<Entrance>,
    peer: Peer,
}

impl<F> HyperService<Request<Incoming>> for Connection<F>
where
    TowerToHyperService<F>: HyperService<Request<Incoming>>,
{
    type Response = <TowerToHyperService<F> as HyperService<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<F> as HyperService<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<F> as HyperService<Request<Incoming>>>::Future;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (head, body) = request.into_parts();
        let (proxies, ids) = (&self.entrance.proxies, &self.entrance.ids);
        let received = RequestHead::new(head, self.peer.address.ip(), proxies, ids);
        let mut request = Request::new(body);
        // warp's own body filters check the method and the lengths.
        request.extensions_mut().insert(Arc::new(received));
        self.filter.call(request)
    }
}

#[cfg(test)]
mod tests;
