//! A request without a body, in the bytes that a service receives.

use http::{HeaderName, HeaderValue, Method};

/// Capacity for a head as the gate builds it: most of it is the identity.
const CAPACITY: usize = 768;

/// A request whose head is complete except for its `Host`, which the connection adds.
#[derive(Debug)]
pub struct Request {
    head: Vec<u8>,
    /// Whether the answer has no body, whatever its length field.
    pub(super) asks_for_head: bool,
}

impl Request {
    /// Begins a GET or HEAD for a path with its query, which are visible ASCII.
    pub fn new(method: &Method, target: &str) -> Self {
        let mut head = Vec::with_capacity(CAPACITY);
        for part in [method.as_str(), " ", target, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        Self {
            head,
            asks_for_head: method == Method::HEAD,
        }
    }

    /// Adds a field. Neither part can hold a line break: their types forbid it.
    pub fn field(&mut self, name: &HeaderName, value: &HeaderValue) {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            self.head.extend_from_slice(part);
        }
    }

    /// Returns the whole head.
    pub(super) fn into_bytes(mut self, host: &str) -> Vec<u8> {
        for part in ["host: ", host, "\r\n\r\n"] {
            self.head.extend_from_slice(part.as_bytes());
        }
        self.head
    }
}
