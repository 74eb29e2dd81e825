//! Benchmarks are only as good as what they compare: everything must run and answer right. What is
//! measured here is judged nowhere.

use std::process::Command;

/// The product's binaries are those that `cargo test --workspace` has built.
#[test]
fn everything_that_the_gate_is_compared_with_runs_and_answers_right() {
    smoke("gate");
}

/// So is the operator's.
#[test]
fn everything_that_the_operator_is_measured_with_runs_and_answers_right() {
    smoke("operator");
}

#[test]
fn everything_that_the_parts_are_compared_with_runs_and_answers_right() {
    smoke("parts");
}

#[test]
fn history_and_pgbench_read_the_same_pages() {
    smoke("history");
}

#[test]
fn the_loader_and_psql_load_the_same_rows() {
    smoke("ingest");
}

#[test]
fn the_service_in_memory_and_nginx_answer_the_same() {
    smoke("departements");
}

/// The portal's binary has the pages that `cargo dev web` builds.
#[test]
fn the_portal_answers_as_nginx_and_lists_the_keys_that_the_api_server_has() {
    smoke("portal");
}

fn smoke(part: &str) {
    let run = Command::new(env!("CARGO_BIN_EXE_water-bench"))
        .args([part, "--smoke"])
        .output()
        .expect("the benchmark was built before its tests");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
}
