//! A short pass of each benchmark: all that is compared must run and answer right. Nothing is judged here.
//! The product's binaries are those that `cargo test --workspace` has built.

use std::process::Command;

#[test]
fn the_gate_and_what_it_is_compared_with_answer_right() {
    pass("gate");
}

#[test]
fn the_operator_lives_through_all_that_is_measured() {
    pass("operator");
}

#[test]
fn history_and_pgbench_read_the_same_pages() {
    pass("history");
}

#[test]
fn the_service_of_the_departements_and_nginx_answer_the_same() {
    pass("departements");
}

#[test]
fn the_loader_and_psql_bring_the_same_rows() {
    pass("ingest");
}

fn pass(part: &str) {
    let run = Command::new(env!("CARGO_BIN_EXE_water-bench"))
        .args([part, "--smoke"])
        .output()
        .expect("the benchmark was built before its tests");
    let log = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{log}");
}
