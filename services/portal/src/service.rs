//! The portal put together: what runs, on which ports, sharing what.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use water_gate::body_budget::BodyBudget;
use water_gate::upstream::{Bounds, Resolver, ServiceAddress, Upstream, Upstreams};
use water_http::{Received, RequestIds, Signer, Spans, TrustedProxies};
use water_keystore::connection::Purpose;
use water_keystore::{Allowances, Quotas, Usage};
use water_runtime::{BoxError, ConnectionLimits, Connections, Drained, Peer, Process, Server};

use crate::app::{Portal, filter};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::data::Data;
use crate::keys::{Keys, Rules};
use crate::pages::Pages;
use crate::plans::Plans;

/// What answers in forms other than JSON may take of the memory, in KiB: 16 of the largest.
const LARGE_ANSWERS: u32 = 16 * 1024;

/// The portal with its ports open; requests wait until [`Service::serve`].
#[derive(Debug)]
pub struct Service {
    listener: TcpListener,
    server: Server,
    portal: Arc<Portal>,
    entrance: Arc<Entrance>,
}

/// What all connections share.
#[derive(Debug)]
struct Entrance {
    ids: RequestIds,
    proxies: TrustedProxies,
}

impl Service {
    /// Opens the ports and starts what runs beside the requests. `random` tells this process'
    /// request ids from those of others.
    pub async fn start(
        config: Config,
        pages: Pages,
        random: u64,
        process: &mut Process,
    ) -> Result<Self, BoxError> {
        let connections = Connections::new(ConnectionLimits {
            trusted: config.trusted_proxies.networks().to_vec(),
            ..ConnectionLimits::default()
        });
        connections.register(&mut process.metrics);
        let tracer = process.export_traces(&config.process.traces)?;
        let spans = Spans::new(tracer);
        let plans = Plans::default();
        let keys = keys(&config, &plans, process).await?;
        let portal = Arc::new(Portal {
            url: config.url.clone(),
            prefix: config.key_prefix.clone(),
            plans,
            quotas: Quotas::new(
                config.redis.connect(Purpose::Directory),
                config.instance.clone(),
            ),
            data: data(&config, keys.allowances.clone(), spans.clone(), process),
            keys,
            pages,
            spans,
        });
        process.open_admin(config.process.admin, |admin| admin)?;
        let shutdown = process.shutdown.clone();
        Ok(Self {
            listener: process.listen(config.process.listen)?,
            server: Server::new(connections, shutdown, config.process.drain),
            portal,
            entrance: Arc::new(Entrance {
                ids: RequestIds::new(random),
                proxies: config.trusted_proxies,
            }),
        })
    }

    /// Where requests are answered.
    pub fn address(&self) -> Result<SocketAddr, BoxError> {
        Ok(self.listener.local_addr()?)
    }

    /// Answers requests until the process drains.
    pub async fn serve(self) -> Result<Drained, Infallible> {
        let filter = TowerToHyperService::new(warp::service(filter(self.portal)));
        let connection = |peer| Connection {
            filter: filter.clone(),
            entrance: Arc::clone(&self.entrance),
            peer,
        };
        Ok(self.server.serve(self.listener, connection).await)
    }
}

/// What keys need, and the plans, which are followed beside the requests.
async fn keys(config: &Config, plans: &Plans, process: &mut Process) -> Result<Keys, BoxError> {
    let cluster = Cluster::connect(&config.instance).await?;
    let (following, followed) = (cluster.clone(), plans.clone());
    process.tasks.spawn("plans", async move {
        match following.follow_plans(&followed).await {}
    });
    let connection = config.redis.connect(Purpose::Directory);
    Ok(Keys {
        cluster,
        allowances: Allowances::new(connection.clone(), config.instance.clone()),
        usage: Usage::new(connection, config.instance.clone()),
        rules: Rules {
            max_keys: config.max_keys.get() as usize,
            max_key_days: config.max_key_days.map(NonZeroU32::get),
        },
        prefix: config.key_prefix.clone(),
    })
}

/// The services, whose connections are attended to beside the requests.
fn data(config: &Config, allowances: Allowances, spans: Spans, process: &mut Process) -> Data {
    let mut service = |address: &ServiceAddress| {
        let resolver = Arc::new(Resolver::new(address.clone()));
        let running = Arc::clone(&resolver);
        process
            .tasks
            .spawn("resolver", async move { match running.run().await {} });
        Upstream::new(resolver, Bounds::default())
    };
    let upstreams = Arc::new(Upstreams {
        departements: service(&config.departements),
        history: service(&config.history),
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
        let received = Received::new(head, self.peer.address.ip(), proxies, ids);
        let mut request = Request::new(body);
        // warp's own body filters look at the method and the lengths.
        request.extensions_mut().insert(Arc::new(received));
        self.filter.call(request)
    }
}
