//! One line of the access log for each request: what was asked, what it got, how long it took.

use std::time::Duration;

use http::{Method, StatusCode};
use tracing::{Level, event, field};
use water_domain::{AccountId, KeyId, PlanName};

use crate::{Code, RequestId, TraceId};

/// A request and its answer. Never the query, the key's text, or a header.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// The same in the answer and in the lines of gate and service.
    pub request_id: &'a RequestId,
    /// The trace that the request belongs to.
    pub trace: Option<TraceId>,
    /// As sent; one that HTTP does not have is logged as `-`.
    pub method: &'a Method,
    /// The path of a known route, else `-`: a client's text is not repeated.
    pub route: &'a str,
    /// As answered.
    pub status: StatusCode,
    /// Why it was no success.
    pub reason: Option<Code>,
    /// The length of the body that is sent.
    pub bytes: usize,
    /// From the request's head to the answer.
    pub duration: Duration,
    /// The part of it that the gate itself took: neither its limiter nor the service.
    pub gate: Option<Duration>,
    /// The part of it that was spent in the service behind the gate.
    pub upstream: Option<Duration>,
    /// Who asked, once that is known.
    pub account: Option<&'a AccountId>,
    /// With which key, by its public name.
    pub key: Option<&'a KeyId>,
    /// On which plan.
    pub plan: Option<&'a PlanName>,
}

impl Access<'_> {
    /// Writes the line. Its tracing target is `access`: `WATER_LOG=info,access=off` leaves it out.
    pub fn log(&self) {
        event!(
            target: "access",
            Level::INFO,
            request.id = self.request_id.as_str(),
            trace.id = self.trace.map(field::display),
            method = known(self.method),
            route = self.route,
            status = self.status.as_u16(),
            reason = self.reason.map(Code::as_str),
            bytes = self.bytes,
            duration_ms = milliseconds(self.duration),
            gate_ms = self.gate.map(milliseconds),
            upstream_ms = self.upstream.map(milliseconds),
            account.id = self.account.map(AccountId::as_str),
            key.id = self.key.map(KeyId::as_str),
            plan = self.plan.map(PlanName::as_str),
            "request"
        );
    }
}

/// Any token can stand in the place of a method, even a key: a client's text is not repeated.
pub(crate) fn known(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::DELETE
        | Method::CONNECT
        | Method::OPTIONS
        | Method::TRACE
        | Method::PATCH => method.as_str(),
        _ => "-",
    }
}

/// With three decimals, which is a microsecond.
fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}
