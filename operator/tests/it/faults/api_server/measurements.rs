//! Requests without an answer, and refusals that name ten minutes: the operator asks again within seconds.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::Instant;
use water_harness::Fault;
use water_kit::operator::stage::{Stage, converged};
use water_kit::operator::world::key;

use super::{NAME, answer, asked, order};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_08_a_request_that_is_never_answered_ends_within_15_seconds_and_is_made_again()
-> Result<()> {
    let stage = Stage::new("request-hangs").await?;
    stage.bring("kept", 'a').await?;
    order(&stage, "/secrets/acme-apikey", Fault::Hang);
    stage.objects.create(&key(NAME))?;
    let asked_at = Instant::now();
    let given_up = "the pass took longer than 15s";
    stage.logged(&stage.operator, given_up).await?;
    let took = asked_at.elapsed();
    ensure!(took < Duration::from_secs(20), "given up after {took:?}");
    stage.interceptor.recall();
    let answered = Instant::now();
    stage.key_is(NAME, "Ready", "True/Active").await?;
    converged(answered);
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_09_refusals_that_name_ten_minutes_are_asked_again_within_seconds() -> Result<()> {
    let stage = Stage::new("retry-after").await?;
    stage.bring("kept", 'a').await?;
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        order(&stage, " /", answer(status, "Retry-After: 600\r\n", 0, ""));
        stage.interceptor.cut();
        // Until the leadership is lost, too.
        asked(&stage, &["/leases/"], 7).await?;
        stage.interceptor.recall();
        let served = Instant::now();
        stage.generate(&format!("after-{}", &status[..3])).await?;
        converged(served);
        let took = served.elapsed();
        ensure!(took < Duration::from_secs(20), "{took:?}");
    }
    stage.holds_for_good().await
}
