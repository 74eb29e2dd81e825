//! Cross-origin requests from browsers: off unless origins are listed.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use water_http::Received;

/// Which web pages may read answers.
#[derive(Clone, Default, Debug)]
pub struct Cors {
    origins: Vec<HeaderValue>,
}

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");
/// What a page may send beyond what every page may.
const REQUEST_HEADERS: HeaderValue =
    HeaderValue::from_static("authorization, if-none-match, x-request-id, traceparent, tracestate");
/// What a page may read beyond what every page may.
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static(
    "etag, link, retry-after, ratelimit, ratelimit-policy, x-ratelimit-limit, \
     x-ratelimit-remaining, x-ratelimit-reset, x-request-id, x-changes-token",
);
/// Browsers ask again after at most two hours anyway; ten minutes bound how long a change takes.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

impl Cors {
    /// Allows pages of these origins, such as `https://app.example.org`. None: off.
    pub fn new(origins: Vec<HeaderValue>) -> Self {
        Self { origins }
    }

    /// The answer to a preflight of an allowed origin: free, for a browser sends it without a key.
    pub fn preflight(&self, request: &Received) -> Option<Response<Bytes>> {
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

    /// Tells the browser whether the page may read this answer, and caches that it depends on it.
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
