//! The bounded queue before the exporter, and what became of the spans that came to it.
//!
//! The SDK's processor has the queue and the batches; here they are bounded and counted, which it
//! does for its own log only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor,
};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Spans that wait or are on their way: some seconds of a busy gate, some MB of memory.
const CAPACITY: usize = 8192;

/// What became of a span.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    spans: Family<Outcome, Counter>,
    waiting: Arc<AtomicUsize>,
}

impl Counts {
    fn add(&self, outcome: &'static str, spans: usize) {
        self.spans
            .get_or_create(&Outcome { outcome })
            .inc_by(spans as u64);
    }
}

/// The processor that hands spans to an exporter.
pub(super) fn before(exporter: impl SpanExporter + 'static, metrics: &mut Registry) -> Bounded {
    let counts = Counts::default();
    for outcome in ["exported", "failed", "dropped"] {
        counts.add(outcome, 0);
    }
    metrics.register(
        "spans",
        "Spans by what became of them: exported, failed to be, or dropped from a full queue",
        counts.spans.clone(),
    );
    let counted = Counted {
        exporter,
        counts: counts.clone(),
    };
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(CAPACITY)
        .build();
    let batches = BatchSpanProcessor::builder(counted)
        .with_batch_config(config)
        .build();
    Bounded { batches, counts }
}

/// Takes spans as long as there is room.
#[derive(Debug)]
pub(super) struct Bounded {
    batches: BatchSpanProcessor,
    counts: Counts,
}

impl SpanProcessor for Bounded {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.counts.waiting.fetch_add(1, Ordering::Relaxed) < CAPACITY {
            self.batches.on_end(span);
        } else {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.add("dropped", 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Counts what an exporter does.
#[derive(Debug)]
struct Counted<E> {
    exporter: E,
    counts: Counts,
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        self.counts.waiting.fetch_sub(spans, Ordering::Relaxed);
        let outcome = if result.is_ok() { "exported" } else { "failed" };
        self.counts.add(outcome, spans);
        result
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
