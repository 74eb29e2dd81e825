//! The binary: its settings, its start and its stop, its part of a trace.

use water_kit::Binary;

const BINARY: Binary = Binary {
    name: "water-history",
    path: env!("CARGO_BIN_EXE_water-history"),
    when_ready: "the database can be read",
};

#[test]
fn bad_settings_are_all_said_at_once_and_exit_64() {
    BINARY.refuses_bad_settings();
}

#[test]
fn its_version_is_its_images_and_else_its_packages() {
    BINARY.tells_its_version(env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn it_starts_announces_its_ports_and_stops_when_asked() {
    BINARY.starts_and_stops().await;
}

#[tokio::test]
async fn a_request_is_a_span_inside_the_gates() {
    BINARY.tells_a_span("/api/v1/hydrorisk", 200, None).await;
}
