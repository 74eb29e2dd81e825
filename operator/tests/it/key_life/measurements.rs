//! Uses, which are read twice a minute.

use std::time::Duration;

use anyhow::{Context, ensure};
use water_domain::{KeyId, Timestamp};
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, Instance, Usage};

use super::at_rest;
use crate::Result;
use crate::audit::restart_writes_nothing;
use crate::steps::until;
use crate::world::API;

#[tokio::test]
async fn a_first_use_shows_within_a_minute_and_a_later_one_not_for_a_restart() -> Result {
    let (world, operator, gate) = at_rest("key-used").await?;
    let status = world.get("apikey/acme")?["status"].clone();
    let id: KeyId = status["keyId"].as_str().context("a key id")?.parse()?;
    let settings = ConnectionSettings::new(&world.redis_url, None)?;
    let instance = Instance::new(&world.namespace, API)?;
    let uses = Usage::new(settings.connect(Purpose::Directory), instance);
    let used = status["current"]["issuedTime"].as_str().context("a time")?;
    let used = Timestamp::parse(used)?;
    let write = async |at: Timestamp| {
        let used = [(id.clone(), at)];
        until(&world, "Redis to answer", async || {
            Ok(uses.write_last_uses(&used).await?)
        })
        .await
    };
    write(used).await?;
    let shows = async || {
        let found = world.get("apikey/acme")?;
        ensure!(
            found["status"]["lastUsedTime"] == used.to_string(),
            "{found}"
        );
        Ok(())
    };
    // A gate may have kept it for 15 s of the minute.
    let rest = Duration::from_secs(45);
    world.wait("the first use to show", rest, shows).await?;
    gate.fall_silent();
    // A later use does not show for ten minutes, restarted or not.
    let later = Timestamp::from_millis(used.as_millis() + 1000);
    write(later.context("a time")?).await?;
    restart_writes_nothing(&world, &operator).await
}
