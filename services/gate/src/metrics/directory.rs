//! Metrics of the key directory's state, read at each scrape.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use water_keystore::Replica;

/// Registers the directory's metrics.
pub(super) fn register(registry: &mut Registry, directory: Arc<Replica>) {
    registry.register_collector(Box::new(Directory(directory)));
}

#[derive(Debug)]
struct Directory(Arc<Replica>);

impl Collector for Directory {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let status = self.0.status();
        // Before the first reply the feed's lag has no bound.
        let lag = status
            .since_reply
            .map_or(f64::INFINITY, |since| since.as_secs_f64());
        let gauges = [
            (
                "directory_keys",
                "Keys in this gate's copy",
                status.keys as f64,
            ),
            (
                "directory_undecodable",
                "Keys that cannot be decoded",
                status.undecodable as f64,
            ),
            (
                "directory_generation",
                "The copy's generation",
                status.generation as f64,
            ),
            (
                "directory_seq",
                "The last change in the copy",
                status.seq as f64,
            ),
            (
                "directory_current",
                "1 while the copy is known to be current",
                f64::from(u8::from(status.current)),
            ),
            (
                "directory_feed_lag_seconds",
                "Since the feed's last reply",
                lag,
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        let counters = [
            ("directory_loads", "Complete loads", status.loads),
            (
                "directory_setbacks",
                "Failures to follow or to load",
                status.setbacks,
            ),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        Ok(())
    }
}
