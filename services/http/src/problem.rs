//! `application/problem+json` (RFC 9457): the one form of every failure.
//!
//! A problem is made where the failure is seen and rendered where the request id is known; there
//! its cause is logged, once. The client never sees the cause, the key or the query.

mod account;
mod code;

use std::borrow::Cow;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::header::{WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response};
use serde::Serialize;
use tracing::{error, warn};
use water_domain::Fault;
use water_runtime::telemetry::chain;

use crate::RequestId;
use crate::request_id::X_REQUEST_ID;
pub use code::Code;

/// Seconds after which a client may ask again when a dependency was away: breakers probe twice a
/// second, so that most outages that end are noticed by then.
const RETRY_SECONDS: u64 = 2;

/// Room for the fields of a refusal, those that the gate adds too, and for its body: made once.
const FIELDS: usize = 16;
const LENGTH: usize = 512;

/// The methods of all that can only be read.
const READS: &str = "GET, HEAD";

/// Why a request was not served.
#[derive(Clone, Debug)]
pub struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    parameter: Option<Cow<'static, str>>,
    violated_policies: &'static [&'static str],
    /// Seconds.
    retry_after: Option<u64>,
    /// The methods that the path has, on 405.
    allow: &'static str,
    /// What happened inside; logged, never sent.
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

/// The body of every answer that is not a success (RFC 9457).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub struct ProblemBody<'a> {
    /// Names the kind of problem; `urn:waterdata:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:waterdata:problem:invalid_parameter")]
    pub type_uri: &'a str,
    /// The same for every problem of this kind.
    #[schema(example = "A parameter is malformed")]
    pub title: &'a str,
    /// The HTTP status.
    #[schema(example = 400)]
    pub status: u16,
    /// What is wrong with this request, and what to do.
    #[schema(example = "limit must be a whole number from 1, written in digits")]
    pub detail: &'a str,
    /// Stable; the field to decide by.
    #[schema(example = "invalid_parameter")]
    pub code: &'a str,
    /// The same as the `X-Request-Id` header.
    #[schema(example = "5f1c8a90b7d24e63a1f0c2d4e6b8091a")]
    pub request_id: &'a str,
    /// The parameter at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "limit")]
    pub parameter: Option<&'a str>,
    /// The limits that have no room, on 429: `minute`, `day`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub violated_policies: &'a [&'a str],
}

impl Problem {
    fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            detail: detail.into(),
            parameter: None,
            violated_policies: &[],
            retry_after: None,
            allow: READS,
            cause: None,
        }
    }

    /// 400: the value of `parameter` breaks a rule; `detail` states the rule, never the value.
    pub fn invalid_parameter(
        parameter: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            parameter: Some(parameter.into()),
            ..Self::new(Code::InvalidParameter, detail)
        }
    }

    /// 400: the text in `parameter` is too old, or the account's rows were removed since.
    pub fn cursor_expired(parameter: &'static str) -> Self {
        let detail = "It is more than 90 days old, or the account's rows were removed since: \
                      begin a new walk, without cursor and changedSince.";
        Self {
            parameter: Some(parameter.into()),
            ..Self::new(Code::CursorExpired, detail)
        }
    }

    /// 400: malformed percent-encoding or UTF-8 in the query.
    pub fn invalid_query() -> Self {
        let detail = "Encode the query as UTF-8 and percent-encode it: % and two hex digits.";
        Self::new(Code::InvalidQuery, detail)
    }

    /// 400: a body or `Transfer-Encoding` on a request that takes none.
    pub fn body_not_allowed() -> Self {
        let detail = "Send the request without a body, Transfer-Encoding or Content-Length.";
        Self::new(Code::BodyNotAllowed, detail)
    }

    /// 400: the body's end is told in two ways.
    pub fn ambiguous_body() -> Self {
        let detail = "Send either Content-Length or Transfer-Encoding, not both.";
        Self::new(Code::BodyNotAllowed, detail)
    }

    /// 400: no single `Host` that agrees with the target.
    pub fn invalid_host() -> Self {
        let detail = "Send exactly one Host header, the same as the target's authority.";
        Self::new(Code::InvalidHost, detail)
    }

    /// 400: the query holds text of a key's shape.
    pub fn key_in_query() -> Self {
        let detail = "Send the key in the Authorization header, and replace this key: \
                      addresses are kept in logs and histories.";
        Self::new(Code::KeyInQuery, detail)
    }

    /// 401: no bearer credentials.
    pub fn missing_credentials() -> Self {
        let detail = "Send the header `Authorization: Bearer <API_KEY>`.";
        Self::new(Code::MissingCredentials, detail)
    }

    /// 401: malformed, unknown or revoked; which of them is not said.
    pub fn invalid_key() -> Self {
        let detail = "Check that the whole key was sent; if it was, it is unknown or revoked.";
        Self::new(Code::InvalidKey, detail)
    }

    /// 401: the key is past its end.
    pub fn key_expired() -> Self {
        Self::new(Code::KeyExpired, "Create a new key or extend this one.")
    }

    /// 401: the key is suspended.
    pub fn key_suspended() -> Self {
        Self::new(Code::KeySuspended, "Resume the key or use another one.")
    }

    /// 401: the key is before its beginning.
    pub fn key_not_yet_valid() -> Self {
        Self::new(
            Code::KeyNotYetValid,
            "Use the key from its notBefore time on.",
        )
    }

    /// 401: more than one `Authorization` header, even identical ones.
    pub fn invalid_request() -> Self {
        Self::new(
            Code::InvalidRequest,
            "Send exactly one Authorization header.",
        )
    }

    /// 401 of a service that was called without the gate's signature.
    pub fn invalid_identity() -> Self {
        Self::new(Code::InvalidIdentity, "Call the service through the gate.")
    }

    /// 403: the account's plan has no API access.
    pub fn plan_insufficient() -> Self {
        let detail = "The account's plan has no API access; upgrade it to Enterprise.";
        Self::new(Code::PlanInsufficient, detail)
    }

    /// 404: the path or the thing does not exist.
    pub fn not_found(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::NotFound, detail)
    }

    /// 404: the dataset was never loaded.
    pub fn no_data() -> Self {
        Self::new(
            Code::NoData,
            "This dataset has not been loaded yet; try again later.",
        )
    }

    /// 405, with `Allow`.
    pub fn method_not_allowed() -> Self {
        Self::new(
            Code::MethodNotAllowed,
            "The interface is read-only: use GET or HEAD.",
        )
    }

    /// 414.
    pub fn uri_too_long() -> Self {
        Self::new(
            Code::UriTooLong,
            "The path and query may have 2048 bytes together.",
        )
    }

    /// 417.
    pub fn expectation_failed() -> Self {
        Self::new(
            Code::ExpectationFailed,
            "Send no Expect header, or 100-continue.",
        )
    }

    /// 431.
    pub fn headers_too_large() -> Self {
        Self::new(
            Code::HeadersTooLarge,
            "The head may have 64 fields and 16 KiB.",
        )
    }

    /// 429: `violated_policies` (`minute`, `day`) have no room for `retry_after` seconds.
    pub fn rate_limited(violated_policies: &'static [&'static str], retry_after: u64) -> Self {
        let detail = "The account's limit is used up; wait as long as Retry-After says.";
        Self {
            violated_policies,
            retry_after: Some(retry_after),
            ..Self::new(Code::RateLimited, detail)
        }
    }

    /// 429 for an address whose credentials fail too often.
    pub fn too_many_failures(retry_after: u64) -> Self {
        let detail = "Too many requests with wrong credentials came from this address; \
                      wait as long as Retry-After says.";
        Self {
            retry_after: Some(retry_after),
            ..Self::new(Code::RateLimited, detail)
        }
    }

    /// 500: a bug; the cause is logged.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let detail = "The failure has been recorded under the requestId; trying again is no use.";
        Self {
            cause: Some(cause.into().into()),
            ..Self::new(Code::Internal, detail)
        }
    }

    /// 503: a store does not answer.
    pub fn dependency_unavailable() -> Self {
        let detail = "A part of the service does not answer; try again after Retry-After.";
        Self {
            retry_after: Some(RETRY_SECONDS),
            ..Self::new(Code::DependencyUnavailable, detail)
        }
    }

    /// 503: the account has a bulk page under way, or too many accounts have.
    pub fn bulk_busy() -> Self {
        let detail = "A bulk page of the account is under way, or of too many others: \
                      ask for one after the other, and try again after Retry-After.";
        Self {
            retry_after: Some(RETRY_SECONDS),
            ..Self::new(Code::DependencyUnavailable, detail)
        }
    }

    /// 503: a service behind the gate does not answer.
    pub fn upstream_unavailable() -> Self {
        let detail = "The service does not answer; try again after Retry-After.";
        Self {
            retry_after: Some(RETRY_SECONDS),
            ..Self::new(Code::UpstreamUnavailable, detail)
        }
    }

    /// Keeps what happened inside for the log.
    pub fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into().into());
        self
    }

    /// Which problem it is: the answer's status, the log's reason.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What happened inside, for a caller that answers and logs in its own form.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    /// The whole answer. Logs the cause if there is one; comes once for each problem.
    pub fn into_response<B: From<Vec<u8>>>(self, request_id: &RequestId) -> Response<B> {
        self.log(request_id);
        let body = self.body(request_id);
        let mut response = Response::new(());
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        headers.reserve(FIELDS);
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(X_REQUEST_ID, request_id.header());
        if let Some(challenge) = self.code.challenge() {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if self.code == Code::MethodNotAllowed {
            headers.insert(ALLOW, HeaderValue::from_static(self.allow));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.map(|()| B::from(body))
    }

    fn body(&self, request_id: &RequestId) -> Vec<u8> {
        let body = ProblemBody {
            type_uri: self.code.type_uri(),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: &self.detail,
            code: self.code.as_str(),
            request_id: request_id.as_str(),
            parameter: self.parameter.as_deref(),
            violated_policies: self.violated_policies,
        };
        let mut json = Vec::with_capacity(LENGTH);
        serde_json::to_writer(&mut json, &body).expect("texts and numbers are always JSON");
        json
    }

    fn log(&self, request_id: &RequestId) {
        let Some(cause) = &self.cause else { return };
        let (id, reason, error) = (
            request_id.as_str(),
            self.code.as_str(),
            chain(cause.as_ref()),
        );
        match self.code {
            Code::Internal => error!(request.id = id, reason, error, "a request failed"),
            _ => warn!(
                request.id = id,
                reason, error, "a request could not be served"
            ),
        }
    }
}

/// A store's failure: 503 when the same request may succeed later, else 500.
impl<E: Fault> From<E> for Problem {
    fn from(fault: E) -> Self {
        match fault.is_transient() {
            true => Self::dependency_unavailable().caused_by(fault),
            false => Self::internal(fault),
        }
    }
}

/// Runs a handler; a panic in it is a bug, and the client is told so like of any other.
pub async fn or_internal<T>(handler: impl Future<Output = T>) -> Result<T, Problem> {
    let outcome = AssertUnwindSafe(handler).catch_unwind().await;
    // The panic's text is in the log already, by the hook that the log sets.
    outcome.map_err(|_| Problem::internal("the handler panicked"))
}

/// An empty answer that carries the problem to [`crate::Service`], which knows the request id.
impl warp::Reply for Problem {
    fn into_response(self) -> warp::reply::Response {
        let mut response = warp::reply::Response::default();
        *response.status_mut() = self.code.status();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests;
