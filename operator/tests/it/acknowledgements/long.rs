//! Memory of gone keys, which is forgotten once a minute.

use std::time::Duration;

use anyhow::ensure;
use nix::sys::signal::Signal;
use tokio::time::Instant;
use water_harness::Redis;

use super::awaits;
use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::steps::{calls, strip, until};
use crate::world::{World, brought};

/// Number of times that Redis has read a whole hash, as each check of the gates' leases does.
async fn looks(redis: &Redis) -> anyhow::Result<u64> {
    calls(redis, "hgetall").await
}

#[tokio::test]
async fn no_gate_is_looked_at_for_a_key_that_has_vanished() -> Result {
    // A look comes twice a second while anything is waited for; what is gone is forgotten each minute.
    const QUIET: Duration = Duration::from_secs(5);
    let (redis, world, operator) = World::on_own_redis("ack-vanished").await?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    gate.fall_silent();
    world.apply(&brought("acme", 'a'))?;
    awaits(&world, "gate-0", "AwaitingGates").await?;
    let first = looks(&redis).await?;
    until(&world, "looks at the gate", async || {
        let now = looks(&redis).await?;
        ensure!(now > first + 3, "{first} looks, now {now}");
        Ok(())
    })
    .await?;
    // Without its finalizer no pass sees its end.
    operator.signal(Signal::SIGSTOP)?;
    strip(&world, "acme").await?;
    operator.signal(Signal::SIGCONT)?;
    let mut last = (looks(&redis).await?, Instant::now());
    until(&world, "no more looks", async || {
        let now = looks(&redis).await?;
        if now != last.0 {
            last = (now, Instant::now());
        }
        ensure!(last.1.elapsed() >= QUIET, "{now} looks");
        Ok(())
    })
    .await
}
