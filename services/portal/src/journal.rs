//! Record of one request, for its line in the access log and its span.

use water_domain::{AccountId, PlanName};
use water_http::{Access, Code, HttpSpan, RequestHead, Spans};

use crate::account_request::Response;

/// Record of a request, filled as it passes the checks; what it did not reach stays empty.
#[derive(Debug)]
pub struct Journal {
    /// The route's name.
    pub route: &'static str,
    /// Account whose data it asks for, once that is known to be the reader's.
    pub account: Option<(AccountId, PlanName)>,
    span: Option<HttpSpan>,
}

impl Journal {
    /// Begins the record of a request of which nothing is known yet.
    pub fn begin(request: &RequestHead, spans: &Spans) -> Self {
        Self {
            route: "-",
            account: None,
            span: spans.server(&request.method, request.trace.as_ref()),
        }
    }

    /// Writes the line and ends the span.
    pub fn close(self, request: &RequestHead, answer: &Response, reason: Option<Code>) {
        let trace = self.span.as_ref().map(HttpSpan::trace);
        Access {
            request_id: &request.id,
            trace: trace.or_else(|| Some(request.trace.as_ref()?.trace)),
            method: &request.method,
            route: self.route,
            status: answer.status(),
            reason,
            bytes: answer.body().len(),
            duration: request.at.elapsed(),
            gate: None,
            upstream: None,
            account: self.account.as_ref().map(|(account, _)| account),
            key: None,
            plan: self.account.as_ref().map(|(_, plan)| plan),
        }
        .log();
        if let Some(mut span) = self.span {
            if self.route != "-" {
                span.route(&request.method, self.route);
            }
            span.close(Some(answer.status()), reason.map(Code::as_str));
        }
    }
}
