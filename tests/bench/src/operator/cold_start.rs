//! A start before a Redis that has lost everything.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::Scale;
use super::process::Operator;
use super::site::Site;

/// What follows a start comes to its end.
const SETTLED_WITHIN: Duration = Duration::from_secs(300);

/// One value for each start.
#[derive(Default)]
pub struct ColdStart {
    /// From the process' start until the key directory is complete, in seconds.
    pub complete: Vec<f64>,
    /// The process' peak memory, in MiB, once all ApiKeys had been looked at.
    pub memory: Vec<f64>,
}

/// Stops the operator, empties Redis and starts another.
pub async fn measure(site: &Site, leader: &mut Operator, scale: Scale) -> Result<ColdStart> {
    let mut starts = ColdStart::default();
    for _ in 0..scale.rounds {
        leader.stop().await?;
        site.store.redis.command(&["FLUSHALL"]).await?;
        let mut audit = site.audit()?;
        let began = Instant::now();
        *leader = site.operator()?;
        site.complete(scale.keys as u64).await?;
        starts.complete.push(began.elapsed().as_secs_f64());
        audit.until_quiet(SETTLED_WITHIN).await?;
        starts.memory.push(leader.peak_memory()?);
    }
    Ok(starts)
}
