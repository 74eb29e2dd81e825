//! Keys that the sweep finds, a minute or two later.

use nix::sys::signal::Signal;

use super::{bind, bound, correct};
use crate::Result;
use crate::steps::{NOTHING, count, event, generation, holds, rebuilt, spoil, strip};
use crate::world::{World, brought};

#[tokio::test]
async fn fault_16_a_key_that_is_stripped_after_it_could_not_be_read_is_swept() -> Result {
    let (redis, world, operator) = World::on_own_redis("unreadable-stripped").await?;
    world.in_force(&brought("acme", 'a')).await?;
    spoil(&world, "acme").await?;
    // What a rebuild carries over is forgotten once the ApiKey can be read again.
    let (published, earlier) = (world.published().await?, generation(&world).await?);
    redis.command(&["FLUSHALL"]).await?;
    rebuilt(&world, &published, earlier).await?;
    correct(&world, "acme").await?;
    // It would put the finalizer back.
    operator.signal(Signal::SIGSTOP)?;
    strip(&world, "acme").await?;
    operator.signal(Signal::SIGCONT)?;
    holds(&world, &NOTHING).await?;
    event(&world, "water-data", "KeysSwept").await
}

#[tokio::test]
async fn keys_whose_namespace_is_admitted_no_longer_are_found_by_the_sweep() -> Result {
    let (_redis, world, _operator) = bound("unbound-swept").await?;
    count(&world, 2).await?;
    bind(&world, "-")?;
    // Nothing reports a namespace's labels here, and no pass is due.
    holds(&world, &NOTHING).await
}
