//! Cross-origin requests from browsers: off unless origins are listed.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use water_http::RequestHead;

/// Web pages that may read answers.
#[derive(Clone, Default, Debug)]
pub struct Cors {
    origins: Vec<HeaderValue>,
}

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");
/// Request headers that a page may send in addition to those of every page.
const REQUEST_HEADERS: HeaderValue =
    HeaderValue::from_static("authorization, if-none-match, x-request-id, traceparent, tracestate");
/// Answer headers that a page may read in addition to those of every page.
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static(
    "etag, link, retry-after, ratelimit, ratelimit-policy, x-ratelimit-limit, \
     x-ratelimit-remaining, x-ratelimit-reset, x-request-id, x-changes-token, x-total-count",
);
/// Browsers ask again after at most two hours anyway; ten minutes bound the delay of a change.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

impl Cors {
    /// Allows pages of these origins, such as `https://app.example.org`. None: off.
    pub fn new(origins: Vec<HeaderValue>) -> Self {
        Self { origins }
    }

    /// Answers a preflight of an allowed origin: free, because a browser sends it without a key.
    pub fn preflight(&self, request: &RequestHead) -> Option<Response<Bytes>> {
        let asks = request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if request.method != Method::OPTIONS || !asks || self.allowed(&request.headers).is_none() {
            return None;
        }
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        Some(answer)
    }

    /// Adds the headers that allow the page to read this answer, and `Vary` for caches.
    pub fn label(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        if self.origins.is_empty() {
            return;
        }
        answer.append(VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = self.allowed(request) {
            answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, ANSWER_HEADERS);
        }
    }

    fn allowed(&self, request: &HeaderMap) -> Option<&HeaderValue> {
        let origin = request.get(ORIGIN)?;
        self.origins.iter().find(|allowed| *allowed == origin)
    }
}
