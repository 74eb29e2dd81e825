//! What has been learned about one request on its way: the headers that every answer carries, the
//! access log's line, the metrics and the span are made from it at the end.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response};
use water_http::representation::VARY_ON;
use water_http::request_id::X_REQUEST_ID;
use water_http::{Access, Code, HttpSpan, Problem, Spans, TraceId};
use water_keystore::Record;

use crate::cors::Cors;
use crate::forward::Visit;
use crate::limit::{self, Charge};
use crate::metrics::{Answered, Metrics};
use crate::route::Route;
use water_http::Received;

/// Filled from top to bottom as the request passes the checks; what it did not reach stays empty.
#[derive(Debug, Default)]
pub struct Journal {
    /// The key that it was sent with, once it was found good.
    pub record: Option<Record>,
    /// The route that it asks for, if there is one.
    pub route: Option<&'static Route>,
    /// Whether it was accepted, and how both windows stand.
    pub charge: Option<Charge>,
    /// The exchange with the service.
    pub visit: Option<Visit>,
    /// The request in its trace, if spans are exported.
    pub span: Option<HttpSpan>,
}

impl Journal {
    /// The journal of a request of which nothing is known yet.
    pub fn begin(request: &Received, spans: &Spans) -> Self {
        Self {
            span: spans.server(&request.method, request.trace.as_ref()),
            ..Self::default()
        }
    }

    /// The answer as it leaves: with the headers that every answer has, counted and logged.
    pub fn close(
        self,
        request: &Received,
        outcome: Result<Response<Bytes>, Problem>,
        cors: &Cors,
        metrics: &Metrics,
    ) -> Response<Bytes> {
        let reason = outcome.as_ref().err().map(Problem::code);
        let mut answer = outcome.unwrap_or_else(|problem| problem.into_response(&request.id));
        let headers = answer.headers_mut();
        headers.insert(X_REQUEST_ID, request.id.header());
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(VARY, VARY_ON);
        cors.label(&request.headers, headers);
        if let Some(decision) = self.charge.and_then(|charge| charge.decision) {
            limit::label(&decision, headers);
        }
        if let Some(deprecation) = self.route.and_then(|route| route.deprecation) {
            deprecation.label(headers);
        }
        if reason == Some(Code::BodyNotAllowed) {
            // Where the next request would begin is what two parties could read differently.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.note(request, &answer, reason, metrics);
        if let Some(mut span) = self.span {
            if let Some(route) = self.route {
                span.route(&request.method, route.path);
            }
            span.close(Some(answer.status()), reason.map(Code::as_str));
        }
        answer
    }

    fn note(
        &self,
        request: &Received,
        answer: &Response<Bytes>,
        reason: Option<Code>,
        metrics: &Metrics,
    ) {
        let duration = request.at.elapsed();
        let gate = self.time_in_gate(duration);
        metrics.request(&Answered {
            route: self.route,
            status: answer.status(),
            reason,
            gate,
            limiter: self.charge.map(|charge| charge.took),
            service: self.visit.map(|visit| visit.took),
            failure: self.visit.and_then(|visit| visit.failure),
        });
        let record = self.record.as_ref();
        Access {
            request_id: &request.id,
            trace: self.trace(request),
            method: &request.method,
            route: self.route.map_or("-", |route| route.path),
            status: answer.status(),
            reason,
            bytes: answer.body().len(),
            duration,
            gate: Some(gate),
            upstream: self.visit.map(|visit| visit.took),
            account: record.map(|record| &record.account),
            key: record.map(|record| &record.key_id),
            plan: record.map(|record| &record.plan),
        }
        .log();
    }

    /// A span may have begun a trace.
    fn trace(&self, request: &Received) -> Option<TraceId> {
        let span = self.span.as_ref().map(HttpSpan::trace);
        span.or_else(|| Some(request.trace.as_ref()?.trace))
    }

    /// What of a request's time neither the limiter nor the service took.
    fn time_in_gate(&self, whole: Duration) -> Duration {
        let limiter = self.charge.map_or(Duration::ZERO, |charge| charge.took);
        let service = self.visit.map_or(Duration::ZERO, |visit| visit.took);
        whole.saturating_sub(limiter + service)
    }
}
