//! A request for something of an account, once it is known that the account is the reader's.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde::Serialize;
use water_http::{Problem, Query, Received};

/// An answer of the portal.
pub type Response = http::Response<Bytes>;

/// A request whose path begins with `/account/v1/accounts/{account}/`. Nothing in it has the shape
/// of a key.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its head, the client's address, its id and when it came.
    pub received: &'a Received,
    /// What stands behind the account in the path: `["keys", "acme-0a1b2c"]`.
    pub path: &'a [&'a str],
    /// Its decoded query.
    pub query: &'a Query<'a>,
    /// Its body, at most 4 KiB; empty without one.
    pub body: &'a Bytes,
}

impl Asked<'_> {
    /// Its method.
    pub fn method(&self) -> &Method {
        &self.received.method
    }

    /// Its header fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.received.headers
    }
}

/// 200 with a JSON body.
pub fn json(body: &impl Serialize) -> Result<Response, Problem> {
    let body = Bytes::from(serde_json::to_vec(body).map_err(Problem::internal)?);
    let length = HeaderValue::from(body.len());
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, length);
    Ok(answer)
}
