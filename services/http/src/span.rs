//! Spans of requests, with the names of OpenTelemetry's conventions for HTTP.
//!
//! A span holds method, route, status and problem, and nothing else of a request: no path or query as sent, no header,
//! no `tracestate`, no account. A client can put a key into any of them.

use http::{HeaderValue, Method, StatusCode};
use opentelemetry::trace::{
    self, Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, TraceFlags,
    TraceState, Tracer as _,
};
use opentelemetry::{Context, KeyValue};
use water_runtime::Tracer;
use water_runtime::traces::Span;

use crate::access::known;
use crate::{SpanId, TraceContext, TraceId};

/// Makes spans if they are exported, and none otherwise.
#[derive(Clone, Debug)]
pub struct Spans(Option<Tracer>);

/// Span of a request that is being answered, or sent to another service. Ends when it is closed, or dropped with the
/// request.
#[derive(Debug)]
pub struct HttpSpan {
    span: Box<Span>,
    /// `tracestate`, passed on unchanged.
    state: Option<HeaderValue>,
}

impl Spans {
    /// Makes spans of this tracer; `None` makes none.
    pub fn new(tracer: Option<Tracer>) -> Self {
        Self(tracer)
    }

    /// Starts the span of a received request, in its own trace or in a new one.
    pub fn server(&self, method: &Method, trace: Option<&TraceContext>) -> Option<HttpSpan> {
        let tracer = self.0.as_ref()?;
        let parent = trace.map_or_else(Context::new, |trace| within(remote(trace)));
        let state = trace.and_then(|trace| trace.state.clone());
        Some(HttpSpan::start(
            tracer,
            SpanKind::Server,
            method,
            &parent,
            state,
        ))
    }

    /// Starts the span of a request for `route` to the service at `address` (`host:port`), as part of the request that
    /// is being answered.
    pub fn client(
        &self,
        method: &Method,
        route: &str,
        address: &str,
        server: Option<&HttpSpan>,
    ) -> Option<HttpSpan> {
        let (tracer, server) = (self.0.as_ref()?, server?);
        let parent = within(server.span.span_context().clone());
        let state = server.state.clone();
        let mut span = HttpSpan::start(tracer, SpanKind::Client, method, &parent, state);
        span.span.update_name(format!("{} {route}", name(method)));
        span.set("url.template", route.to_owned());
        if let Some((host, port)) = address.rsplit_once(':') {
            span.set("server.address", host.to_owned());
            span.set("server.port", port.parse().unwrap_or(0i64));
        }
        Some(span)
    }
}

impl HttpSpan {
    fn start(
        tracer: &Tracer,
        kind: SpanKind,
        method: &Method,
        parent: &Context,
        state: Option<HeaderValue>,
    ) -> Self {
        let known = match known(method) {
            "-" => "_OTHER",
            known => known,
        };
        let builder = SpanBuilder::from_name(name(method).to_owned())
            .with_kind(kind)
            .with_attributes([KeyValue::new("http.request.method", known.to_owned())]);
        Self {
            span: Box::new(tracer.build_with_context(builder, parent)),
            state,
        }
    }

    /// Returns the id of its trace.
    pub fn trace(&self) -> TraceId {
        TraceId(self.span.span_context().trace_id().to_bytes())
    }

    /// Returns the context for a request to another service within this span.
    pub fn context(&self) -> TraceContext {
        let context = self.span.span_context();
        TraceContext {
            trace: self.trace(),
            parent: SpanId(context.span_id().to_bytes()),
            sampled: context.is_sampled(),
            state: self.state.clone(),
        }
    }

    /// Sets the route of the request.
    pub fn route(&mut self, method: &Method, route: &str) {
        self.span.update_name(format!("{} {route}", name(method)));
        self.set("http.route", route.to_owned());
    }

    /// Ends the span with the answer's status, and the error if it is not a success.
    pub fn close(mut self, status: Option<StatusCode>, error: Option<&'static str>) {
        if let Some(status) = status {
            self.set("http.response.status_code", i64::from(status.as_u16()));
        }
        if let Some(error) = error {
            self.set("error.type", error);
        }
        if status.is_none_or(|status| status.is_server_error()) {
            self.span.set_status(Status::error(""));
        }
        self.span.end();
    }

    fn set(&mut self, name: &'static str, value: impl Into<opentelemetry::Value>) {
        self.span.set_attribute(KeyValue::new(name, value));
    }
}

/// Returns a method as part of a span's name.
fn name(method: &Method) -> &str {
    match known(method) {
        "-" => "HTTP",
        known => known,
    }
}

/// Makes the context of another process' span. Its state is not part of spans.
fn remote(trace: &TraceContext) -> SpanContext {
    SpanContext::new(
        trace::TraceId::from_bytes(trace.trace.0),
        trace::SpanId::from_bytes(trace.parent.0),
        TraceFlags::NOT_SAMPLED.with_sampled(trace.sampled),
        true,
        TraceState::NONE,
    )
}

fn within(parent: SpanContext) -> Context {
    Context::new().with_remote_span_context(parent)
}
