//! A request to an account's path, once the account is known to be the reader's.

use bytes::Bytes;
use http::{HeaderMap, Method};
use water_http::{Query, RequestHead};

/// An answer of the portal.
pub type Response = http::Response<Bytes>;

/// A request whose path begins with `/account/v1/accounts/{account}/`. Nothing in it has the shape
/// of a key.
#[derive(Clone, Copy, Debug)]
pub struct AccountRequest<'a> {
    /// Head, client's address, request id and time of arrival.
    pub received: &'a RequestHead,
    /// Segments of the path behind the account: `["keys", "acme-0a1b2c"]`.
    pub path: &'a [&'a str],
    /// Decoded query.
    pub query: &'a Query<'a>,
    /// Body, at most 4 KiB; empty without one.
    pub body: &'a Bytes,
}

impl AccountRequest<'_> {
    /// Returns the method.
    pub fn method(&self) -> &Method {
        &self.received.method
    }

    /// Returns the header fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.received.headers
    }
}
