//! The part of a WaterDataApi about the logs and traces of its pods.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Logs of the gate and the services, and spans for a collector.
#[derive(KubeSchema, Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "!has(self.logFilter) || self.logFilter.matches(\
         '^(([A-Za-z_][A-Za-z0-9_:]*=)?(off|error|warn|info|debug|trace)(,|$))+$')"
    ).field_path(".logFilter").message(
        "spec.telemetry.logFilter is no list of levels: give one for all, others by target, such as info,water_gate=debug"
    ),
    validation = Rule::new(
        "!has(self.otlpEndpoint) || self.otlpEndpoint.matches(\
         '^http://([A-Za-z0-9.-]+|\\\\[[0-9A-Fa-f:]+\\\\])(:[1-9][0-9]{0,4})?(/[A-Za-z0-9._~/-]*)?$')"
    ).field_path(".otlpEndpoint").message(
        "spec.telemetry.otlpEndpoint is not http://, a host, perhaps a port and a path: give the address of a collector \
         in the cluster, such as http://collector.observability:4318"
    )
)]
pub struct Telemetry {
    /// Levels of the lines that are logged. Left out: info.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub log_filter: Option<String>,
    /// The collector that takes spans as OTLP over HTTP. Left out: no spans are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub otlp_endpoint: Option<String>,
}

impl Telemetry {
    /// Returns the port on which the collector is reached.
    pub fn otlp_port(&self) -> Option<u16> {
        let (_, address) = self.otlp_endpoint.as_deref()?.split_once("://")?;
        let authority = address.split('/').next()?;
        match authority.rsplit_once(':') {
            Some((_, port)) if !port.ends_with(']') => port.parse().ok(),
            _ => Some(80),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_the_urls_or_that_of_http() {
        for (endpoint, port) in [
            ("http://collector:4318", Some(4318)),
            ("http://collector:4318/otlp", Some(4318)),
            ("http://collector.observability", Some(80)),
            ("http://[fd00::1]:4318", Some(4318)),
            ("http://[fd00::1]/otlp", Some(80)),
            ("http://collector:70000", None),
        ] {
            let telemetry = Telemetry {
                otlp_endpoint: Some(endpoint.into()),
                ..Telemetry::default()
            };
            assert_eq!(telemetry.otlp_port(), port, "{endpoint}");
        }
        assert_eq!(Telemetry::default().otlp_port(), None);
    }
}
