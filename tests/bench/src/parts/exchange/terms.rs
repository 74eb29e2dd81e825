//! What every exchange has: the same fields, the same bounds, the same answer.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LINK, RETRY_AFTER,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use water_http::identity::X_WATER_IDENTITY;
use water_http::request_id::X_REQUEST_ID;
use water_http::trace_context::TRACEPARENT;

/// Exchanges under way at any moment.
pub const UNDER_WAY: usize = 64;

/// As long as the gate gives a service for an answer.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// As long as the gate keeps an idle connection.
pub const IDLE: Duration = Duration::from_secs(30);

/// The gate's bound on an answer.
pub const MOST_BYTES: usize = 1024 * 1024;

/// What of an answer's head a client of the gate gets.
pub static KEPT: [HeaderName; 6] = [
    CONTENT_TYPE,
    CONTENT_ENCODING,
    ETAG,
    CACHE_CONTROL,
    LINK,
    RETRY_AFTER,
];

/// A way to ask the service.
pub trait Client: Send + Sync + 'static {
    /// Asks for `target` with the fields that a gate sends.
    fn get(&self, target: &str) -> impl Future<Output = Result<Response<Bytes>>> + Send;
}

/// What a gate sends, but for the `Host`, with values of the usual length.
pub fn fields() -> [(HeaderName, HeaderValue); 4] {
    const IDENTITY: &str = "v1;account=acme-water;key=0123456789ab;plan=Professional;\
                            exp=1795564800000;\
                            mac=6265206e6f742061667261696420746f206d65617375726520697420616c6c21";
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let value = HeaderValue::from_static;
    [
        (ACCEPT, value("application/json")),
        (TRACEPARENT, value(TRACE)),
        (X_REQUEST_ID, value("0123456789abcdef-1a2b3c")),
        (X_WATER_IDENTITY, value(IDENTITY)),
    ]
}

/// What the library's answer is cut down to.
pub fn kept(mut received: HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::with_capacity(16);
    for name in &KEPT {
        if let Some(value) = received.remove(name) {
            kept.insert(name, value);
        }
    }
    kept
}
