//! `application/problem+json` (RFC 9457): the one form of every failure.
//!
//! A problem is made where the failure occurs and rendered where the request id is known, in the client's language;
//! there its cause is logged, once. The client never sees the cause, the key or the query.

mod account;
mod code;
mod text;
pub mod texts;

use std::borrow::Cow;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE};
use http::header::{RETRY_AFTER, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response};
use serde::Serialize;
use tracing::{error, warn};
use water_domain::Fault;
use water_runtime::telemetry::chain;

use crate::representation::VARY_OF_PROBLEMS;
use crate::request_id::X_REQUEST_ID;
use crate::{Language, RequestId, json};
pub use code::Code;
pub use text::Text;

/// Seconds after which a client may try again when a dependency was down: breakers probe twice a second, so that most
/// outages that end are noticed by then.
const RETRY_SECONDS: u64 = 2;

/// Capacities for a refusal's fields, including those that the gate adds, and for its body: allocated once.
const FIELDS: usize = 16;
const LENGTH: usize = 512;

/// The longest unknown name of a parameter that is repeated in an answer. The shortest key has 32 characters, of which the
/// last two may be the padding of Base64, which ends a name.
const LONGEST_NAME: usize = 29;

/// Methods of resources that can only be read.
const READS: &str = "GET, HEAD";

/// A failure as its answer, with the cause for the log.
#[derive(Clone, Debug)]
pub struct Problem {
    code: Code,
    detail: Text,
    parameter: Option<Cow<'static, str>>,
    violated_policies: &'static [&'static str],
    /// Seconds in `Retry-After`.
    retry_after: Option<u64>,
    /// Methods of the path, on 405.
    allow: &'static str,
    /// Internal cause; logged, never sent.
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
    /// The same for every problem of this kind, in the language that `Content-Language` names.
    #[schema(example = "A parameter is not valid")]
    pub title: &'a str,
    /// The HTTP status.
    #[schema(example = 400)]
    pub status: u16,
    /// The fault of this request and its remedy, in the same language.
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
    // The name is that of the IETF's draft of the RateLimit fields.
    /// The limits that have no room, on 429: `minute`, `day`.
    #[serde(rename = "violated-policies", skip_serializing_if = "<[_]>::is_empty")]
    pub violated_policies: &'a [&'a str],
}

impl Problem {
    fn new(code: Code, detail: Text) -> Self {
        Self {
            code,
            detail,
            parameter: None,
            violated_policies: &[],
            retry_after: None,
            allow: READS,
            cause: None,
        }
    }

    /// 400: the value of `parameter` breaks a rule; `detail` states the rule, never the value.
    pub fn invalid_parameter(parameter: &'static str, detail: Text) -> Self {
        Self {
            parameter: Some(parameter.into()),
            ..Self::new(Code::InvalidParameter, detail)
        }
    }

    /// 400: the path has no parameter `name`, but `parameters`, of which `meant` is near.
    pub fn unknown_parameter(name: &str, meant: Option<&str>, parameters: &[&str]) -> Self {
        let detail = match meant {
            _ if parameters.is_empty() => texts::no_parameters(),
            None => texts::unknown_parameter(&parameters.join(", ")),
            Some(meant) => texts::misspelt_parameter(meant, &parameters.join(", ")),
        };
        // A longer name may be a key, and is no misspelling.
        let is_name = name.len() <= LONGEST_NAME && name.chars().all(is_seen);
        Self {
            parameter: is_name.then(|| Cow::Owned(name.to_owned())),
            ..Self::new(Code::InvalidParameter, detail)
        }
    }

    /// 400: the text in `parameter` is too old, the account's rows were removed since, or the database went back to an
    /// earlier state.
    pub fn cursor_expired(parameter: &'static str) -> Self {
        Self {
            parameter: Some(parameter.into()),
            ..Self::new(Code::CursorExpired, texts::cursor_expired())
        }
    }

    /// 400: malformed percent-encoding or UTF-8 in the query.
    pub fn invalid_query() -> Self {
        Self::new(Code::InvalidQuery, texts::invalid_query())
    }

    /// 400: a body or `Transfer-Encoding` on a request that takes none.
    pub fn body_not_allowed() -> Self {
        Self::new(Code::BodyNotAllowed, texts::body_not_allowed())
    }

    /// 400: the body's end is given in two ways.
    pub fn ambiguous_body() -> Self {
        Self::new(Code::BodyNotAllowed, texts::ambiguous_body())
    }

    /// 400: no single `Host` that agrees with the target.
    pub fn invalid_host() -> Self {
        Self::new(Code::InvalidHost, texts::invalid_host())
    }

    /// 400: the query holds text of a key's shape.
    pub fn key_in_query() -> Self {
        Self::new(Code::KeyInQuery, texts::key_in_query())
    }

    /// 401: no bearer credentials.
    pub fn missing_credentials() -> Self {
        Self::new(Code::MissingCredentials, texts::missing_credentials())
    }

    /// 401: `Authorization` has another scheme than `Bearer`. Only a name from a list is given: any other text may be a
    /// key.
    pub fn other_scheme(scheme: Option<&'static str>) -> Self {
        let detail = scheme.map_or_else(texts::no_bearer, texts::other_scheme);
        Self::new(Code::MissingCredentials, detail)
    }

    /// 401: malformed, unknown or revoked; the answer does not distinguish these.
    pub fn invalid_key() -> Self {
        Self::new(Code::InvalidKey, texts::invalid_key())
    }

    /// 401: the key's end has passed.
    pub fn key_expired() -> Self {
        Self::new(Code::KeyExpired, texts::key_expired())
    }

    /// 401: the key is suspended.
    pub fn key_suspended() -> Self {
        Self::new(Code::KeySuspended, texts::key_suspended())
    }

    /// 401: the key's beginning has not come yet.
    pub fn key_not_yet_valid() -> Self {
        Self::new(Code::KeyNotYetValid, texts::key_not_yet_valid())
    }

    /// 401: more than one `Authorization` header, even identical ones.
    pub fn invalid_request() -> Self {
        Self::new(Code::InvalidRequest, texts::invalid_request())
    }

    /// 401 of a service that was called without the gate's signature.
    pub fn invalid_identity() -> Self {
        Self::new(Code::InvalidIdentity, texts::invalid_identity())
    }

    /// 403: the account's plan has no API access.
    pub fn plan_insufficient() -> Self {
        Self::new(Code::PlanInsufficient, texts::plan_insufficient())
    }

    /// 404: the path or the resource does not exist.
    pub fn not_found(detail: Text) -> Self {
        Self::new(Code::NotFound, detail)
    }

    /// 404: the dataset was never loaded.
    pub fn no_data() -> Self {
        Self::new(Code::NoData, texts::no_data())
    }

    /// 405, with `Allow`.
    pub fn method_not_allowed() -> Self {
        Self::new(Code::MethodNotAllowed, texts::method_not_allowed())
    }

    /// 414.
    pub fn uri_too_long() -> Self {
        Self::new(Code::UriTooLong, texts::uri_too_long())
    }

    /// 417.
    pub fn expectation_failed() -> Self {
        Self::new(Code::ExpectationFailed, texts::expectation_failed())
    }

    /// 431.
    pub fn headers_too_large() -> Self {
        Self::new(Code::HeadersTooLarge, texts::headers_too_large())
    }

    /// 429: `violated_policies` (`minute`, `day`) have no room for `retry_after` seconds.
    pub fn rate_limited(violated_policies: &'static [&'static str], retry_after: u64) -> Self {
        Self {
            violated_policies,
            retry_after: Some(retry_after),
            ..Self::new(Code::RateLimited, texts::rate_limited())
        }
    }

    /// 429: too many failed credentials from an address.
    pub fn too_many_failures(retry_after: u64) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(Code::RateLimited, texts::too_many_failures())
        }
    }

    /// 500: a bug; the cause is logged.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            cause: Some(cause.into().into()),
            ..Self::new(Code::Internal, texts::internal())
        }
    }

    /// 503: a store does not answer.
    pub fn dependency_unavailable() -> Self {
        Self {
            retry_after: Some(RETRY_SECONDS),
            ..Self::new(Code::DependencyUnavailable, texts::dependency_unavailable())
        }
    }

    /// 503: a bulk page of the account is under way, or of too many other accounts.
    pub fn bulk_busy() -> Self {
        Self {
            retry_after: Some(RETRY_SECONDS),
            ..Self::new(Code::DependencyUnavailable, texts::bulk_busy())
        }
    }

    /// 503: the rows of a bulk page could not be read in time.
    pub fn bulk_slow() -> Self {
        Self {
            retry_after: Some(RETRY_SECONDS),
            ..Self::new(Code::DependencyUnavailable, texts::bulk_slow())
        }
    }

    /// 503: a service behind the gate does not answer.
    pub fn upstream_unavailable() -> Self {
        Self {
            retry_after: Some(RETRY_SECONDS),
            ..Self::new(Code::UpstreamUnavailable, texts::upstream_unavailable())
        }
    }

    /// Adds the internal cause for the log.
    pub fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into().into());
        self
    }

    /// Returns the code: it gives the answer's status and the log's reason.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the internal cause, for a caller that answers and logs in its own form.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    /// Renders the whole answer. Logs the cause if there is one; called once for each problem.
    pub fn into_response<B: From<Vec<u8>>>(
        self,
        request_id: &RequestId,
        language: Language,
    ) -> Response<B> {
        self.log(request_id);
        let body = self.body(request_id, language);
        let mut response = Response::new(());
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        headers.reserve(FIELDS);
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(language.tag()));
        headers.insert(VARY, VARY_OF_PROBLEMS);
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

    /// Renders the body, a [`ProblemBody`] as JSON.
    pub fn body(&self, request_id: &RequestId, language: Language) -> Vec<u8> {
        let title = texts::title(self.code);
        let body = ProblemBody {
            type_uri: self.code.type_uri(),
            title: title.in_language(language),
            status: self.code.status().as_u16(),
            detail: self.detail.in_language(language),
            code: self.code.as_str(),
            request_id: request_id.as_str(),
            parameter: self.parameter.as_deref(),
            violated_policies: self.violated_policies,
        };
        let mut json = Vec::with_capacity(LENGTH);
        json::append(&body, &mut json);
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

/// Converts a store's failure: 503 when the same request may succeed later, else 500.
impl<E: Fault> From<E> for Problem {
    fn from(fault: E) -> Self {
        if fault.is_transient() {
            Self::dependency_unavailable().caused_by(fault)
        } else {
            Self::internal(fault)
        }
    }
}

/// Checks for a character that is shown as it is: ASCII, or a Latin letter with an accent.
fn is_seen(character: char) -> bool {
    let is_letter = character.is_alphabetic() && character < '\u{250}';
    character == ' ' || character.is_ascii_graphic() || is_letter
}

/// Runs a handler; a panic in it is a bug, and is answered like any other.
pub async fn or_internal<T>(handler: impl Future<Output = T>) -> Result<T, Problem> {
    let outcome = AssertUnwindSafe(handler).catch_unwind().await;
    // The log's own hook has already logged the panic's text.
    outcome.map_err(|_| Problem::internal("the handler panicked"))
}

/// Makes an empty answer that carries the problem to [`crate::Service`], which knows the request id.
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
