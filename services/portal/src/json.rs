//! Answers in JSON, which no cache keeps.

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_TYPE};
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
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::OK {
        // As other answers have it: none is sent in parts (RFC 9110 §14.3).
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("none"));
    }
    answer
}
