//! The operator's clock is wrong: keys begin, end and rotate by Redis' clock.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use water_domain::Timestamp;
use water_harness::{Clock, Redis};

use crate::clients::Expected;
use crate::objects::{current, shown};
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::world::{PATIENCE, World, key};

/// Waits until a pass that has seen an edit, which changes nothing, tells of the key so.
async fn looked_at(stage: &Stage, name: &str, note: i64, wanted: &str) -> Result<()> {
    let edit = json!({ "spec": { "description": note.to_string() } });
    stage.objects.edit(name, &edit).await?;
    let told = async || {
        let key = stage.objects.key(name).await?.context("no ApiKey")?;
        let shown = shown(&key, "Ready");
        ensure!(shown == wanted, "{shown}: {:?}", key.status);
        Ok(())
    };
    let what = format!("{name} on a clock {note} s ahead");
    stage.wait(&what, PATIENCE, told).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_an_hour_ahead_or_behind_ends_begins_and_rotates_no_key() -> Result<()> {
    let clock = Clock::new()?;
    let redis = Redis::start().await?;
    let world = World::with_redis("operator-clock", &redis.url()).await?;
    let stage = Stage::of(world, redis, |operator| clock.under(operator)).await?;
    let subject = Scenario::Suspend.prepare(&stage, "rotates").await?;
    let first = subject.before.context("a key")?;
    let issued = stage.objects.key("rotates").await?.context("no ApiKey")?;
    let issued = issued.status.and_then(|status| status.current);
    let issued = issued.context("no key")?.issued_time;
    let in_half_an_hour: Timestamp = issued.plus(std::time::Duration::from_secs(1800));
    let period = json!({ "spec": { "rotation": { "periodSeconds": 3000 } } });
    stage.objects.edit("rotates", &period).await?;
    for (name, field) in [("ends", "expirationTime"), ("begins", "notBefore")] {
        let mut key = key(name);
        key["spec"][field] = in_half_an_hour.to_string().into();
        stage.objects.create(&key).await?;
    }
    for ahead in [3600, -3600] {
        clock.set(ahead)?;
        for (name, wanted) in [
            ("rotates", "True/Active"),
            ("ends", "True/Active"),
            ("begins", "True/NotYetValid"),
        ] {
            looked_at(&stage, name, ahead, wanted).await?;
        }
        let key = stage.objects.key("rotates").await?.context("no ApiKey")?;
        ensure!(
            current(&key)? == first,
            "rotated on a clock {ahead} s ahead"
        );
    }
    stage.clients.expect(first, Expected::Accepted);
    stage.holds_for_good().await
}
