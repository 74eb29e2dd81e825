//! Benchmarks are only as good as what they compare: everything must run and answer right. What is
//! measured here is judged nowhere.

use std::process::Command;

/// The gate's binary is the one that `cargo test --workspace` has built.
#[test]
fn everything_that_the_gate_is_compared_with_runs_and_answers_right() {
    smoke("gate");
}

#[test]
fn everything_that_the_parts_are_compared_with_runs_and_answers_right() {
    smoke("parts");
}

fn smoke(part: &str) {
    let run = Command::new(env!("CARGO_BIN_EXE_water-bench"))
        .args([part, "--smoke"])
        .output()
        .expect("the benchmark was built before its tests");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
}
