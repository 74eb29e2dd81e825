//! Access log: one line for each request, with its target, its outcome and its duration.

use std::time::Duration;

use http::{Method, StatusCode};
use tracing::{Level, event, field};
use water_domain::{AccountId, KeyId, PlanName};

use crate::{Code, RequestId, TraceId};

/// A request and its answer. Never the query, the key's text, or a header.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// Request id, the same in the answer and in the lines of gate and service.
    pub request_id: &'a RequestId,
    /// Trace of the request.
    pub trace: Option<TraceId>,
    /// Method as sent; one that HTTP does not have is logged as `-`.
    pub method: &'a Method,
    /// Path of a known route, else `-`: a client's text is not repeated.
    pub route: &'a str,
    /// Status of the answer.
    pub status: StatusCode,
    /// Code of the problem, unless the request succeeded.
    pub reason: Option<Code>,
    /// Length of the sent body.
    pub bytes: usize,
    /// Time from the request's head to the answer.
    pub duration: Duration,
    /// Part of the duration in the gate itself, without its limiter and the service.
    pub gate: Option<Duration>,
    /// Part of the duration in the service behind the gate.
    pub upstream: Option<Duration>,
    /// Account of the request, once known.
    pub account: Option<&'a AccountId>,
    /// Public name of the key.
    pub key: Option<&'a KeyId>,
    /// Plan of the key.
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

/// Returns `-` for a method that HTTP does not have. Any token can be sent as a method, even a key: a client's text is
/// not repeated.
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

/// Rounds to three decimals, which is a microsecond.
fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}
