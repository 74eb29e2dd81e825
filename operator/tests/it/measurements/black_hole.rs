//! The API server says nothing for two minutes, and closes no connection.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep_until, timeout};
use water_harness::Network;
use water_kit::operator::stage::{Stage, converged};

const SILENCE: Duration = Duration::from_secs(120);
/// The lease is renewed every 2 s, and a leader gives up after 10.
const NOTICED_WITHIN: Duration = Duration::from_secs(65);
/// A change that is made when the network is back takes no longer.
const BACK_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_08_two_minutes_without_the_api_server_need_no_restart() -> Result<()> {
    let stage = Stage::new("black-hole").await?;
    let kept = stage.generate("kept").await?;
    stage.to_api_server.set(Network::BlackHole);
    let began = Instant::now();
    let noticed = stage.logged(&stage.operator, "the lease was not renewed in time");
    timeout(NOTICED_WITHIN, noticed).await??;
    // The length of the fault, not a wait for what comes of it.
    sleep_until(began + SILENCE).await;
    stage.to_api_server.set(Network::Good);
    let back = Instant::now();
    stage.generate("after").await?;
    converged(back);
    ensure!(back.elapsed() < BACK_WITHIN, "{:?}", back.elapsed());
    let text = stage.objects.text_hash("kept")?;
    ensure!(text == Some(kept), "another key");
    stage.holds_for_good().await
}
