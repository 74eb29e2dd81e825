//! Too many clients, or too few descriptors: a good client is still served.

mod measurements;

use std::fs;
use std::net::Ipv4Addr;

use water_harness::HttpClient;
use water_kit::Gate;
use water_kit::gate::Overdue;

use crate::deadline::{decided, in_time, timed};

const TARGET: &str = "/api/v1/stress";

/// Connects from 127.0.1.`source`: one address may have 256 connections.
async fn connect_from(gate: &Gate, source: u8) -> HttpClient {
    let source = Ipv4Addr::new(127, 0, 1, source);
    let client = HttpClient::connect_from(source, gate.address()).await;
    client.unwrap()
}

#[tokio::test]
async fn a_gate_with_few_descriptors_serves_a_good_client_beside_many_idle_connections() {
    in_time(serves_beside_idle_connections).await;
}

async fn serves_beside_idle_connections() -> Result<(), Overdue> {
    let few = Gate::builder().under(&["prlimit", "--nofile=256:256"]);
    let gate = few.start().await;
    let key = gate.key().await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        for number in 0..10 {
            idle.push(connect_from(&gate, number % 2).await);
        }
        let answer = timed(gate.get(TARGET, &key)).await;
        let status = decided(&answer)?;
        assert_eq!(status, 200, "beside {}: {answer:?}", idle.len());
    }
    assert!(!gate.process.log().contains("cannot accept connections"));
    let open = fs::read_dir(format!("/proc/{}/fd", gate.process.id()));
    assert!(open.unwrap().count() < 200);
    Ok(())
}
