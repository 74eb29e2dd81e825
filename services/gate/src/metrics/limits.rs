//! Metrics of how the limits are decided, read at each scrape.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::grace::{Grace, Mode};

/// Registers the limits' metrics.
pub(super) fn register(registry: &mut Registry, grace: Arc<Grace>) {
    registry.register_collector(Box::new(Limits(grace)));
}

#[derive(Debug)]
struct Limits(Arc<Grace>);

impl Collector for Limits {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (current, status) = (self.0.mode().as_str(), self.0.standby.status());
        let help = "1 for how requests are decided: by Redis, by this gate's share, not at all";
        let mut modes = encoder.encode_descriptor("limits_mode", help, None, MetricType::Gauge)?;
        for mode in Mode::ALL {
            let gauge = ConstGauge::new(u64::from(mode == current));
            gauge.encode(modes.encode_family(&[("mode", mode)])?)?;
        }
        let gauges = [
            (
                "limits_accounts",
                "Accounts counted in memory",
                status.accounts as u64,
            ),
            (
                "limits_gates",
                "Gates that share the limits while Redis is away",
                u64::from(status.gates),
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        let help = "Requests decided by this gate's share";
        let mut shared =
            encoder.encode_descriptor("limits_shared", help, None, MetricType::Counter)?;
        for (outcome, count) in [("admitted", status.admitted), ("refused", status.refused)] {
            let counter = ConstCounter::new(count);
            counter.encode(shared.encode_family(&[("outcome", outcome)])?)?;
        }
        let help = "Questions and probes that Redis did not answer";
        let mut failures =
            encoder.encode_descriptor("limiter_failures", help, None, MetricType::Counter)?;
        for (reason, count) in status.failures {
            let counter = ConstCounter::new(count);
            counter.encode(failures.encode_family(&[("reason", reason.as_str())])?)?;
        }
        Ok(())
    }
}
