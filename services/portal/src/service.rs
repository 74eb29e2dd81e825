//! The portal put together: what runs, on which ports, sharing what.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use water_http::{Received, RequestIds, Spans, TrustedProxies};
use water_runtime::{BoxError, ConnectionLimits, Connections, Drained, Peer, Process, Server};

use crate::app::{Portal, filter};
use crate::config::Config;
use crate::pages::Pages;
use crate::plans::Plans;

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
        let portal = Arc::new(Portal {
            url: config.url.clone(),
            prefix: config.key_prefix.clone(),
            plans: Plans::default(),
            pages,
            spans: Spans::new(tracer),
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
