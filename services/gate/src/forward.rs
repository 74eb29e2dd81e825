//! The request to a service, newly built and never copied, and the parts of its answer that reach the client.
//!
//! Only listed headers are passed on, in both directions.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_LANGUAGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LINK, RETRY_AFTER, VARY,
};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::Instant;
use water_domain::{Format, Timestamp};
use water_http::format::{self, X_WATER_FORMAT};
use water_http::identity::{LIFETIME, X_WATER_IDENTITY};
use water_http::representation::{VARY_OF_PROBLEMS, X_CHANGES_TOKEN, X_TOTAL_COUNT};
use water_http::request_id::X_REQUEST_ID;
use water_http::trace_context::{TRACEPARENT, TRACESTATE};
use water_http::{
    HttpSpan, Identity, Problem, Query, RequestHead, Route, Signer, Spans, TraceContext,
};

use crate::body_budget::BodyBudget;
use crate::upstream::{Request, UpstreamFailure, Upstreams};

/// Headers of the client that are passed on to a service.
static REQUEST_HEADERS: [HeaderName; 4] = [ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, IF_NONE_MATCH];

/// Headers of a service that are passed on to the client, apart from the length for a HEAD.
static ANSWER_HEADERS: [HeaderName; 10] = [
    ACCEPT_RANGES,
    CONTENT_TYPE,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    ETAG,
    CACHE_CONTROL,
    LINK,
    RETRY_AFTER,
    X_CHANGES_TOKEN,
    X_TOTAL_COUNT,
];

/// Characters to encode in a value: all but RFC 3986's unreserved ones.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Context for forwarding a request.
#[derive(Clone, Copy, Debug)]
pub struct Forwarding<'a> {
    /// The services.
    pub upstreams: &'a Upstreams,
    /// Signs the caller's identity.
    pub signer: &'a Signer,
    /// Memory for large answers.
    pub budget: &'a BodyBudget,
    /// Redis' time, on which the identity expires.
    pub now: Timestamp,
    /// Makes the exchange's span.
    pub spans: &'a Spans,
    /// Span of the request, the exchange's parent.
    pub span: Option<&'a HttpSpan>,
}

/// An exchange with a service.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// Duration, with that of a second attempt.
    pub took: Duration,
    /// Reason that there was no answer to pass on, as a stable word.
    pub failure: Option<&'static str>,
}

/// Refuses a request whose service is known to be down. Called before the limits, so that it costs the account nothing.
pub fn reachable(route: &Route, upstreams: &Upstreams, now: Instant) -> Result<(), Problem> {
    if upstreams.for_service(route.service).is_away(now) {
        Err(Problem::upstream_unavailable())
    } else {
        Ok(())
    }
}

/// Sends the request to the route's service on behalf of an account.
pub async fn forward(
    received: &RequestHead,
    query: &Query<'_>,
    route: &Route,
    identity: &Identity,
    with: Forwarding<'_>,
    visit: &mut Option<Visit>,
) -> Result<Response<Bytes>, Problem> {
    query.only(route.parameters)?;
    let target = target(route, query);
    let format = format::asked(query, &received.headers, route.formats)?;
    let room = match format {
        Format::Json => None,
        _ => Some(with.budget.reserve().await?),
    };
    let upstream = with.upstreams.for_service(route.service);
    let address = upstream.address();
    let span = with
        .spans
        .client(&received.method, route.path, address, with.span);
    let context = span.as_ref().map(HttpSpan::context);
    let trace = context.as_ref().or(received.trace.as_ref());
    let build = || {
        let mut request = request(received, trace, &target, identity, with.signer, with.now);
        if format != Format::Json {
            request.field(&X_WATER_FORMAT, &HeaderValue::from_static(format.name()));
        }
        request
    };
    let began = Instant::now();
    let outcome = upstream.send(began, &ANSWER_HEADERS, build).await;
    let outcome = outcome
        .map_err(Failure::from)
        .and_then(|answer| checked(answer, format));
    let failure = outcome.as_ref().err().map(Failure::reason);
    *visit = Some(Visit {
        took: began.elapsed(),
        failure,
    });
    if let Some(span) = span {
        span.close(outcome.as_ref().ok().map(Response::status), failure);
    }
    let answer = outcome.map_err(Failure::into_problem)?;
    Ok(match room {
        Some(room) => answer.map(|body| room.hold(body)),
        None => answer,
    })
}

/// Returns the path and query for a service: the route's own path, and its parameters without those that caches and trackers
/// add. Repeated ones are kept, because the service validates them.
fn target(route: &Route, query: &Query<'_>) -> String {
    let mut target = String::from(route.path);
    let known = query
        .pairs()
        .filter(|(name, _)| route.parameters.contains(name));
    for (index, (name, value)) in known.enumerate() {
        target.push(if index == 0 { '?' } else { '&' });
        target.push_str(name);
        target.push('=');
        target.extend(utf8_percent_encode(value, RESERVED));
    }
    target
}

/// Builds the request. The identity expires on Redis' time, given as `now`.
fn request(
    received: &RequestHead,
    trace: Option<&TraceContext>,
    target: &str,
    identity: &Identity,
    signer: &Signer,
    now: Timestamp,
) -> Request {
    let expires = now.as_millis() + LIFETIME.as_millis() as i64;
    let expires = Timestamp::from_millis(expires).unwrap_or(now);
    // Every other method was refused.
    let method = if received.method == Method::HEAD {
        Method::HEAD
    } else {
        Method::GET
    };
    let signature = signer.sign(identity, expires, &method, target);
    let mut request = Request::new(&method, target);
    for name in &REQUEST_HEADERS {
        for value in received.headers.get_all(name) {
            request.field(name, value);
        }
    }
    if let Some(trace) = trace {
        request.field(&TRACEPARENT, &trace.traceparent());
        if let Some(state) = &trace.state {
            request.field(&TRACESTATE, state);
        }
    }
    request.field(&X_REQUEST_ID, &received.id.header());
    request.field(&X_WATER_IDENTITY, &signature);
    request
}

/// Reason that there is no answer to pass on.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// No complete answer.
    #[error(transparent)]
    Upstream(#[from] UpstreamFailure),
    /// The service rejects the gate's identity: keys or clocks differ.
    #[error("the service refused the gate's identity with {0}")]
    Refused(StatusCode),
    /// A status that no route has.
    #[error("the service answered with {0}, which no route has")]
    Status(StatusCode),
    /// Neither the requested form nor a problem.
    #[error("the service's answer is of another type than was asked for")]
    WrongType,
}

impl Failure {
    fn reason(&self) -> &'static str {
        match self {
            Self::Upstream(failure) => failure.reason(),
            Self::Refused(_) => "refused",
            Self::Status(_) => "status",
            Self::WrongType => "wrong_type",
        }
    }

    /// Converts to the client's problem. A service's 401 and 403 are our fault, never the client's.
    fn into_problem(self) -> Problem {
        match self {
            Self::Refused(_) => Problem::internal(self),
            _ => Problem::upstream_unavailable().caused_by(self),
        }
    }
}

/// Returns a service's answer, if it is one that a route has; a problem with the `Vary` of all problems.
fn checked(mut answer: Response<Bytes>, format: Format) -> Result<Response<Bytes>, Failure> {
    let kind = answer.headers().get(CONTENT_TYPE);
    check(answer.status(), kind, format)?;
    if !matches!(answer.status(), StatusCode::OK | StatusCode::NOT_MODIFIED) {
        answer.headers_mut().insert(VARY, VARY_OF_PROBLEMS);
    }
    Ok(answer)
}

fn check(status: StatusCode, kind: Option<&HeaderValue>, format: Format) -> Result<(), Failure> {
    let is = |expected: &str| kind.is_some_and(|kind| kind == expected);
    let right_kind = match status.as_u16() {
        // Every client must expect JSON, whatever it prefers.
        200 => is(Format::Json.content_type()) || is(format.content_type()),
        304 => true,
        400 | 404 | 500 | 503 => is("application/problem+json"),
        401 | 403 => return Err(Failure::Refused(status)),
        _ => return Err(Failure::Status(status)),
    };
    right_kind.then_some(()).ok_or(Failure::WrongType)
}
