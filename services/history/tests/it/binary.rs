//! The binary: its settings, its start and its stop, its part of a trace.

use water_kit::Binary;

const BINARY: Binary = Binary {
    name: "water-history",
    path: env!("CARGO_BIN_EXE_water-history"),
    version: env!("CARGO_PKG_VERSION"),
};

#[test]
fn bad_settings_are_all_reported_at_once_and_versions_are_the_images() {
    BINARY.refuses_bad_settings();
    BINARY.reports_its_version();
}

#[tokio::test]
async fn a_request_is_a_span_inside_the_gates_until_the_binary_is_stopped() {
    BINARY.reports_a_span("/api/v1/hydrorisk", 200, None).await;
}
