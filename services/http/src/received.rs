//! A request as a front sees it: the head, the client, and when it came.

use std::net::IpAddr;

use http::{HeaderMap, Method, Uri, Version, request};
use tokio::time::Instant;

use crate::{RequestId, RequestIds, TraceContext, TrustedProxies};

/// A received request head. The body is not part of it.
#[derive(Debug)]
pub struct Received {
    /// The method.
    pub method: Method,
    /// The target in any of its forms.
    pub uri: Uri,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// All fields, untrusted.
    pub headers: HeaderMap,
    /// The client's address, by the trusted proxies.
    pub client: IpAddr,
    /// The client's request id where it is well formed, otherwise a new one.
    pub id: RequestId,
    /// The trace that it belongs to, if it says so well.
    pub trace: Option<TraceContext>,
    /// When its head was complete.
    pub at: Instant,
}

impl Received {
    /// A head that came just now over a connection from `peer`.
    pub fn new(
        head: request::Parts,
        peer: IpAddr,
        proxies: &TrustedProxies,
        ids: &RequestIds,
    ) -> Self {
        Self {
            client: proxies.client(peer, &head.headers),
            id: ids.of(&head.headers),
            trace: TraceContext::from_headers(&head.headers),
            method: head.method,
            uri: head.uri,
            version: head.version,
            headers: head.headers,
            at: Instant::now(),
        }
    }

    /// Whether the method is one that the API has.
    pub fn only_reads(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }
}
