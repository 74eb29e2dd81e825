//! The bounded queue before the exporter, and the outcomes of the spans that came to it.
//!
//! The SDK's processor has the queue and the batches; here they are bounded and counted, which it does for
//! its own log only.

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

/// Outcome of a span.
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

/// Makes the processor that hands spans to an exporter.
pub(super) fn before(
    exporter: impl SpanExporter + 'static,
    metrics: &mut Registry,
) -> BoundedProcessor {
    let counts = Counts::default();
    for outcome in ["exported", "failed", "dropped"] {
        counts.add(outcome, 0);
    }
    metrics.register(
        "spans",
        "Spans by what became of them: exported, failed to be, or dropped from a full queue",
        counts.spans.clone(),
    );
    let counted = CountingExporter {
        exporter,
        counts: counts.clone(),
    };
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(CAPACITY)
        .build();
    let batches = BatchSpanProcessor::builder(counted)
        .with_batch_config(config)
        .build();
    BoundedProcessor { batches, counts }
}

/// Takes spans as long as there is room.
#[derive(Debug)]
pub(super) struct BoundedProcessor {
    batches: BatchSpanProcessor,
    counts: Counts,
}

impl SpanProcessor for BoundedProcessor {
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

/// Exporter that counts its spans.
#[derive(Debug)]
struct CountingExporter<E> {
    exporter: E,
    counts: Counts,
}

impl<E: SpanExporter> SpanExporter for CountingExporter<E> {
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

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{Span as _, Tracer, TracerProvider};
    use opentelemetry_sdk::error::OTelSdkError;
    use opentelemetry_sdk::trace::SdkTracerProvider;

    use super::*;

    #[derive(Debug)]
    struct Refusing;

    impl SpanExporter for Refusing {
        async fn export(&self, _batch: Vec<SpanData>) -> OTelSdkResult {
            Err(OTelSdkError::InternalFailure("refused".to_owned()))
        }
    }

    #[test]
    fn a_span_whose_export_failed_leaves_its_place_to_another() {
        const AT_ONCE: usize = CAPACITY / 4;
        let queue = before(Refusing, &mut Registry::default());
        let spans = queue.counts.spans.clone();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(queue)
            .build();
        let tracer = provider.tracer("test");
        for _ in 0..8 {
            (0..AT_ONCE).for_each(|_| tracer.start("span").end());
            // An error if anything was left of these: full batches go by themselves.
            let _ = provider.force_flush();
        }
        let counted = |outcome| spans.get_or_create(&Outcome { outcome }).get();
        assert_eq!(
            (counted("failed"), counted("dropped")),
            (8 * AT_ONCE as u64, 0)
        );
    }
}
