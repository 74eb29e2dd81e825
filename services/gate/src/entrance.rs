//! Where a connection's requests enter: each becomes a [`Received`] and goes through the filter.

use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use water_http::{Received, RequestIds, TrustedProxies};
use water_runtime::Peer;

/// What all connections share.
#[derive(Debug)]
pub struct Entrance {
    /// Makes the ids of requests that bring none.
    pub ids: RequestIds,
    /// Whose word on the client's address counts.
    pub proxies: TrustedProxies,
}

/// The service of one connection.
pub struct Connection<F> {
    /// The warp filter as a service.
    pub filter: TowerToHyperService<F>,
    /// Shared by all connections.
    pub entrance: Arc<Entrance>,
    /// The other end.
    pub peer: Peer,
}

impl<F> Service<Request<Incoming>> for Connection<F>
where
    TowerToHyperService<F>: Service<Request<Incoming>>,
{
    type Response = <TowerToHyperService<F> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<F> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<F> as Service<Request<Incoming>>>::Future;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.filter.call(self.entrance.receive(request, self.peer))
    }
}

impl Entrance {
    /// The same request, as the filter takes it: all that the gate looks at is in the extension.
    fn receive(&self, request: Request<Incoming>, peer: Peer) -> Request<Incoming> {
        let (head, body) = request.into_parts();
        let received = Received::new(head, peer.address.ip(), &self.proxies, &self.ids);
        let mut request = Request::new(body);
        request.extensions_mut().insert(Arc::new(received));
        request
    }
}
