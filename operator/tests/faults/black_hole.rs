//! The API server says nothing for two minutes, and closes no connection.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep_until};
use water_harness::Network;

use crate::scenario::Scenario;
use crate::stage::Stage;

const SILENCE: Duration = Duration::from_secs(120);
/// The lease is renewed every 2 s, and a leader gives up after 10.
const NOTICED_WITHIN: Duration = Duration::from_secs(65);
/// A change that is made when the network is back takes no longer.
const BACK_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_minutes_without_the_api_server_need_no_restart() -> Result<()> {
    let stage = Stage::new("black-hole").await?;
    let kept = Scenario::Suspend.prepare(&stage, "kept").await?;
    stage.to_api_server.set(Network::BlackHole);
    let began = Instant::now();
    let noticed = async || {
        let log = stage.operator.log();
        let told = log.contains("the lease was not renewed in time");
        ensure!(told, "{}", stage.operator.log_end());
        Ok(())
    };
    stage
        .wait("the leader to notice", NOTICED_WITHIN, noticed)
        .await?;
    // The length of the fault, not a wait for what comes of it.
    sleep_until(began + SILENCE).await;
    stage.to_api_server.set(Network::Good);
    let back = Instant::now();
    let subject = Scenario::Suspend.prepare(&stage, "after").await?;
    println!("converged after {:.3} s", back.elapsed().as_secs_f64());
    ensure!(back.elapsed() < BACK_WITHIN, "{:?}", back.elapsed());
    subject.before.context("a key")?;
    ensure!(
        stage.operator.exit_status()?.is_none(),
        "{}",
        stage.operator.log_end()
    );
    let text = stage.objects.text_hash("kept").await?;
    ensure!(text == kept.before, "another key");
    stage.holds_for_good().await
}
