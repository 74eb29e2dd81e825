//! Answers in JSON, which no cache keeps.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use crate::account_request::Response;

/// An answer with a body.
pub fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let mut answer = unstored(status, water_http::json::to_vec(body).into());
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// Answers 202: the change is under way; another request shows its progress.
pub fn accepted() -> Response {
    unstored(StatusCode::ACCEPTED, Bytes::new())
}

fn unstored(status: StatusCode, body: Bytes) -> Response {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let no_store = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(CACHE_CONTROL, no_store);
    answer
}
