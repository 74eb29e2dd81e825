//! The request to a service, built and never copied, and what of its answer reaches the client.
//!
//! What is not on a list here stays outside, in both directions.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    LINK, RETRY_AFTER,
};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::Instant;
use water_domain::{Format, Timestamp};
use water_http::format::{X_WATER_FORMAT, preferred};
use water_http::identity::{LIFETIME, X_WATER_IDENTITY};
use water_http::representation::X_CHANGES_TOKEN;
use water_http::request_id::X_REQUEST_ID;
use water_http::trace_context::{TRACEPARENT, TRACESTATE};
use water_http::{HttpSpan, Identity, Problem, Query, Signer, Spans, TraceContext};

use crate::body_budget::BodyBudget;
use crate::route::Route;
use crate::upstream::{Request, UpstreamFailure, Upstreams};
use water_http::Received;

/// What of the client's head a service sees.
static REQUEST_HEADERS: [HeaderName; 3] = [ACCEPT, ACCEPT_ENCODING, IF_NONE_MATCH];

/// What of a service's head the client sees, beside the length that a HEAD asks for.
static ANSWER_HEADERS: [HeaderName; 7] = [
    CONTENT_TYPE,
    CONTENT_ENCODING,
    ETAG,
    CACHE_CONTROL,
    LINK,
    RETRY_AFTER,
    X_CHANGES_TOKEN,
];

/// RFC 3986's unreserved characters; all others of a value are encoded.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What a request is forwarded with.
#[derive(Clone, Copy, Debug)]
pub struct Forwarding<'a> {
    /// The services.
    pub upstreams: &'a Upstreams,
    /// Signs the caller's identity.
    pub signer: &'a Signer,
    /// What large answers may take of the memory.
    pub budget: &'a BodyBudget,
    /// Redis' time, by which the identity runs out.
    pub now: Timestamp,
    /// Makes the exchange's span.
    pub spans: &'a Spans,
    /// The request's own, of which it is a part.
    pub span: Option<&'a HttpSpan>,
}

/// An exchange with a service.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// How long it took, a second attempt included.
    pub took: Duration,
    /// Why there was nothing to pass on, as a stable word.
    pub failure: Option<&'static str>,
}

/// Refuses a request whose service is known to be away. Asked before the limits, so that it costs
/// the account nothing.
pub fn reachable(route: &Route, upstreams: &Upstreams, now: Instant) -> Result<(), Problem> {
    match upstreams.of(route.service).is_away(now) {
        true => Err(Problem::upstream_unavailable()),
        false => Ok(()),
    }
}

/// Asks the route's service on behalf of an account.
pub async fn forward(
    received: &Received,
    query: &Query<'_>,
    route: &Route,
    identity: &Identity,
    with: Forwarding<'_>,
    visit: &mut Option<Visit>,
) -> Result<Response<Bytes>, Problem> {
    let target = target(route, query);
    let format = preferred(&received.headers, route.formats);
    let room = match format {
        Format::Json => None,
        _ => Some(with.budget.reserve().await?),
    };
    let upstream = with.upstreams.of(route.service);
    let address = upstream.address();
    let span = with
        .spans
        .client(&received.method, route.path, address, with.span);
    let context = span.as_ref().map(HttpSpan::context);
    let trace = context.as_ref().or(received.trace.as_ref());
    let build = || {
        let mut request = request(received, trace, &target, identity, with.signer, with.now);
        if let Some(name) = format.header_value() {
            request.field(&X_WATER_FORMAT, &HeaderValue::from_static(name));
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

/// The path and query that a service is asked for: the route's own path, and only the parameters
/// that it knows, each as often as it came, for the service judges them.
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

/// Redis' time `now` decides when the identity runs out.
fn request(
    received: &Received,
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

/// Why there is nothing to pass on.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// No complete answer.
    #[error(transparent)]
    Upstream(#[from] UpstreamFailure),
    /// The service does not believe the gate: keys or clocks differ.
    #[error("the service refused the gate's identity with {0}")]
    Refused(StatusCode),
    /// A status that no route has.
    #[error("the service answered with {0}, which no route has")]
    Status(StatusCode),
    /// Neither the form that was asked for nor a problem.
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

    /// A service's 401 and 403 are a fault of ours, never of the client.
    fn into_problem(self) -> Problem {
        match self {
            Self::Refused(_) => Problem::internal(self),
            _ => Problem::upstream_unavailable().caused_by(self),
        }
    }
}

/// A service's answer, if it is one that a route has.
fn checked(answer: Response<Bytes>, format: Format) -> Result<Response<Bytes>, Failure> {
    let kind = answer.headers().get(CONTENT_TYPE);
    check(answer.status(), kind, format).map(|()| answer)
}

fn check(status: StatusCode, kind: Option<&HeaderValue>, format: Format) -> Result<(), Failure> {
    let is = |expected: &str| kind.is_some_and(|kind| kind == expected);
    let right_kind = match status.as_u16() {
        // A service of the version before knows JSON only, which every client has to expect.
        200 => is(Format::Json.content_type()) || is(format.content_type()),
        304 => true,
        400 | 404 | 500 | 503 => is("application/problem+json"),
        401 | 403 => return Err(Failure::Refused(status)),
        _ => return Err(Failure::Status(status)),
    };
    right_kind.then_some(()).ok_or(Failure::WrongType)
}
