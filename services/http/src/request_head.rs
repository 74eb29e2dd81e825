//! A received request: the head, the client, and the time of arrival.

use std::net::IpAddr;

use http::{HeaderMap, Method, Uri, Version, request};
use tokio::time::Instant;

use crate::{RequestId, RequestIds, TraceContext, TrustedProxies};

/// A received request head, without the body.
#[derive(Debug)]
pub struct RequestHead {
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
    /// The client's request id if it is well formed, otherwise a new one.
    pub id: RequestId,
    /// Trace of the request, if its headers are well formed.
    pub trace: Option<TraceContext>,
    /// Time at which the head was complete.
    pub at: Instant,
}

impl RequestHead {
    /// Makes a head that has just arrived over a connection from `peer`.
    pub fn new(
        head: request::Parts,
        peer: IpAddr,
        proxies: &TrustedProxies,
        ids: &RequestIds,
    ) -> Self {
        Self {
            client: proxies.client(peer, &head.headers),
            id: ids.for_request(&head.headers),
            trace: TraceContext::from_headers(&head.headers),
            method: head.method,
            uri: head.uri,
            version: head.version,
            headers: head.headers,
            at: Instant::now(),
        }
    }

    /// Whether the method is one of the API's.
    pub fn only_reads(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }
}
