//! The binary: its settings, its start and its stop.

use std::process::Command;

use water_harness::{Postgres, Program, wait_until};

use crate::fixture::{CURRENT, SOON, migrated};

const BINARY: &str = env!("CARGO_BIN_EXE_water-departements");

#[test]
fn bad_settings_are_all_said_at_once_and_exit_64() {
    let mut binary = Command::new(BINARY);
    let set = [
        ("WATER_IDENTITY_CURRENT", "too short"),
        ("WATER_LISTEN_ADDRESS", "nowhere"),
    ];
    let output = binary.env_clear().envs(set).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{said}");
    for name in [
        "WATER_LISTEN_ADDRESS",
        "WATER_POSTGRES_URL",
        "WATER_IDENTITY_CURRENT",
    ] {
        assert!(said.contains(name), "{name} in {said}");
    }
    assert!(!said.contains("too short"), "{said}");
}

#[tokio::test]
async fn it_starts_announces_its_ports_and_stops_when_asked() {
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let running = Program::new(BINARY)
        .env("WATER_LISTEN_ADDRESS", "127.0.0.1:0")
        .env("WATER_ADMIN_ADDRESS", "127.0.0.1:0")
        .env("WATER_POSTGRES_URL", database.url_as("water_reader"))
        .env("WATER_IDENTITY_CURRENT", CURRENT)
        .env("WATER_STOP_DELAY_SECONDS", "0")
        .start()
        .unwrap();
    let serving = async || match running.log() {
        log if log.contains("serving new datasets") => Ok(()),
        log => anyhow::bail!(log),
    };
    wait_until("the first dataset", SOON, serving)
        .await
        .unwrap();
    let status = running.stop(SOON).await.unwrap();
    assert!(
        status.success() && running.log().contains("drained in time"),
        "{status}: {}",
        running.log()
    );
}

#[test]
fn its_version_is_its_images_and_else_its_packages() {
    for (image, version) in [
        ("1.2.3-next", "1.2.3-next"),
        ("", env!("CARGO_PKG_VERSION")),
    ] {
        let mut binary = Command::new(BINARY);
        let binary = binary.env_clear().env("WATER_VERSION", image);
        let output = binary.arg("--version").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("water-departements {version}\n"));
    }
}
