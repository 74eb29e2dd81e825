//! Whatever Redis holds is evicted, one kind after the other.

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;
use water_kit::operator::stage::Stage;
use water_kit::operator::world::{API, PATIENCE};

use crate::faults::population::Population;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_25_whatever_redis_evicts_is_put_back_amid_changes() -> Result<()> {
    const EVICT: &str =
        "local keys = redis.call('KEYS', ARGV[1]) return redis.call('DEL', unpack(keys))";
    let stage = Stage::new("evicted").await?;
    let population = Population::make(&stage).await?;
    population.change(&stage)?;
    for kind in ["records:", "owners:", "held:", "revoked"] {
        let earlier = stage.point().await?.generation;
        let pattern = format!("wd:{{evicted.{API}}}:{kind}*");
        let evicted = stage.redis.command(&["EVAL", EVICT, "0", &pattern]).await?;
        ensure!(evicted.starts_with(':') && evicted != ":0\r\n", "{evicted}");
        // What there is is counted once a minute, the first time soon after a leadership began.
        stage.operator.stop(PATIENCE).await?;
        stage.start_again()?;
        let started = Instant::now();
        stage.rebuilt(earlier).await.context(kind)?;
        population.rest(&stage, started).await.context(kind)?;
    }
    stage.holds_for_good().await
}
