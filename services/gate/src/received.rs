//! A request as the gate sees it: the head, the client, and when it came.

use std::net::IpAddr;

use http::{HeaderMap, Method, Uri, Version};
use tokio::time::Instant;
use water_http::{RequestId, TraceContext};

/// A received request head. The body is not part of it: no route takes one.
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
    /// Whether the method is one that the API has.
    pub fn only_reads(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }
}
