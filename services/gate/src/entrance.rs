//! Entrance of a connection's requests: each becomes a [`RequestHead`] and goes through the filter.

use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use water_http::{RequestHead, RequestIds, TrustedProxies};
use water_runtime::Peer;

/// State that all connections share.
#[derive(Debug)]
pub struct Entrance {
    /// Makes the ids of requests without one.
    pub ids: RequestIds,
    /// Proxies that are trusted to report the client's address.
    pub proxies: TrustedProxies,
}

/// The service of one connection.
pub struct Connection<F> {
    /// The warp filter as a service.
    pub filter: TowerToHyperService<F>,
    /// Shared by all connections.
    pub entrance: Arc<Entrance>,
    /// The client's end.
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
    /// Converts the request for the filter: its extension holds all that the gate checks.
    fn receive(&self, request: Request<Incoming>, peer: Peer) -> Request<Incoming> {
        let (head, body) = request.into_parts();
        let received = RequestHead::new(head, peer.address.ip(), &self.proxies, &self.ids);
        let mut request = Request::new(body);
        request.extensions_mut().insert(Arc::new(received));
        request
    }
}
