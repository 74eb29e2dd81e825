//! Spans on their way to an OpenTelemetry collector: OTLP over HTTP, in batches, in the background.
//!
//! Without an endpoint there is no tracer and no span. A collector that is away or slow costs spans, never a
//! request: the queue is bounded, what finds it full is counted and dropped.

mod collector;
mod queue;
mod settings;

use std::time::Duration;

use opentelemetry::InstrumentationScope;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use prometheus_client::registry::Registry;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use crate::telemetry::chain;
use crate::{BoxError, Program};
use collector::Collector;
pub use opentelemetry_sdk::trace::Span;
pub use settings::{CollectorUrl, TraceSettings};

/// Makes spans that are exported.
pub type Tracer = SdkTracer;

/// Time for which the end of a process waits for the last spans to be taken.
const FLUSH: Duration = Duration::from_secs(2);

/// The export of a process' spans.
#[derive(Debug)]
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts the export, on its own thread; its connections live on the calling runtime.
    pub(crate) fn start(
        settings: &TraceSettings,
        endpoint: &CollectorUrl,
        program: &Program,
        metrics: &mut Registry,
    ) -> Result<Self, BoxError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::new(Handle::current()))
            .with_endpoint(endpoint.as_str())
            .with_protocol(Protocol::HttpBinary)
            .build()?;
        let service = settings.service_name.as_deref().unwrap_or(program.name);
        let resource = Resource::builder()
            .with_service_name(service.to_owned())
            .with_attribute(opentelemetry::KeyValue::new(
                "service.version",
                program.version,
            ))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_sampler(settings.sampler.clone())
            .with_span_processor(queue::before(exporter, metrics))
            .build();
        info!(endpoint = endpoint.as_str(), "spans are exported");
        Ok(Self(provider))
    }

    /// Makes a tracer.
    pub(crate) fn tracer(&self, program: &Program) -> Tracer {
        let scope = InstrumentationScope::builder(program.name)
            .with_version(program.version)
            .build();
        self.0.tracer_with_scope(scope)
    }

    /// Hands over what is queued, within a deadline. Spans that end later are lost.
    pub(crate) async fn finish(&self) {
        let provider = self.0.clone();
        // It blocks, and the export needs this runtime.
        let flushed = spawn_blocking(move || provider.shutdown_with_timeout(FLUSH)).await;
        if let Ok(Err(error)) = flushed {
            warn!(error = chain(&error), "the last spans were not exported");
        }
    }
}

impl Drop for Traces {
    /// Ends the export at once: a process that fails waits for no collector; after [`Traces::finish`] nothing
    /// is left to do.
    fn drop(&mut self) {
        let _ = self.0.shutdown_with_timeout(Duration::ZERO);
    }
}
