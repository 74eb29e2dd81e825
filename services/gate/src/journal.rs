//! Results of one request's steps, from which the headers of every answer, the access log's line, the metrics and the
//! span are made at the end.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response};
use water_http::representation::VARY_ON;
use water_http::request_id::X_REQUEST_ID;
use water_http::{Access, Code, HttpSpan, Language, Problem, Route, Spans, TraceId};
use water_keystore::Record;

use crate::cors::Cors;
use crate::forward::Visit;
use crate::limit::{self, Charge};
use crate::metrics::{AnsweredRequest, Metrics};
use water_http::RequestHead;

/// Filled from top to bottom as the request passes the steps; fields of steps that it did not reach stay empty.
#[derive(Debug, Default)]
pub struct Journal {
    /// Record of its key, once the key was accepted.
    pub record: Option<Record>,
    /// Route of the request, if there is one.
    pub route: Option<&'static Route>,
    /// Charge against the limits: the limiter's decision and the state of both windows.
    pub charge: Option<Charge>,
    /// Exchange with the service.
    pub visit: Option<Visit>,
    /// Span of the request, if spans are exported.
    pub span: Option<HttpSpan>,
}

impl Journal {
    /// Starts the journal of a new request.
    pub fn begin(request: &RequestHead, spans: &Spans) -> Self {
        Self {
            span: spans.server(&request.method, request.trace.as_ref()),
            ..Self::default()
        }
    }

    /// Completes the answer: adds the headers of every answer, counts it and logs it.
    pub fn close(
        self,
        request: &RequestHead,
        outcome: Result<Response<Bytes>, Problem>,
        cors: &Cors,
        metrics: &Metrics,
    ) -> Response<Bytes> {
        let reason = outcome.as_ref().err().map(Problem::code);
        let mut answer = outcome.unwrap_or_else(|problem| {
            problem.into_response(&request.id, Language::preferred(&request.headers))
        });
        let headers = answer.headers_mut();
        headers.insert(X_REQUEST_ID, request.id.header());
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // A problem varies by its language too, the description by fewer headers.
        headers.entry(VARY).or_insert(VARY_ON);
        cors.label(&request.headers, headers);
        if let Some(decision) = self.charge.and_then(|charge| charge.decision) {
            limit::label(&decision, headers);
        }
        if let Some(deprecation) = self.route.and_then(|route| route.deprecation) {
            deprecation.label(headers);
        }
        if reason == Some(Code::BodyNotAllowed) {
            // Two parties could disagree on where the next request begins.
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
        request: &RequestHead,
        answer: &Response<Bytes>,
        reason: Option<Code>,
        metrics: &Metrics,
    ) {
        let duration = request.at.elapsed();
        let gate = self.time_in_gate(duration);
        metrics.request(&AnsweredRequest {
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

    /// Returns the trace id: of the span, which may have started a trace, or as received.
    fn trace(&self, request: &RequestHead) -> Option<TraceId> {
        let span = self.span.as_ref().map(HttpSpan::trace);
        span.or_else(|| Some(request.trace.as_ref()?.trace))
    }

    /// Returns the request's time without that of the limiter and the service.
    fn time_in_gate(&self, whole: Duration) -> Duration {
        let limiter = self.charge.map_or(Duration::ZERO, |charge| charge.took);
        let service = self.visit.map_or(Duration::ZERO, |visit| visit.took);
        whole.saturating_sub(limiter + service)
    }
}
