//! How random changes and faults are made.

use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::sleep;
use water_harness::Network;
use water_resources::ApiKey;

use crate::change::{Change, PLANS, declared, name, offering, rotated};
use crate::objects::secret_name;
use crate::stage::Stage;

/// Changes the key of a place, which is that one if there is any. One that cannot be changed so stays
/// as it is. No other change has this number.
pub async fn of_key(
    change: Change,
    stage: &Stage,
    place: u8,
    found: Option<ApiKey>,
    number: u64,
) -> Result<()> {
    let (objects, name) = (&stage.objects, name(place));
    let edit = async |patch: Value| unless_gone(objects.edit(&name, &patch).await);
    let Some(found) = found else {
        if matches!(change, Change::Create(_)) {
            objects.create(&declared(place, number)).await?;
        }
        return Ok(());
    };
    match change {
        Change::Suspend(_, on) => edit(json!({ "spec": { "suspend": on } })).await,
        Change::Plan(_, plan) => {
            let plan = PLANS[usize::from(plan) % PLANS.len()];
            edit(json!({ "spec": { "plan": plan } })).await
        }
        Change::Expire(_, end) => {
            let end = match end {
                None => None,
                Some(seconds) => Some(stage.in_seconds(seconds.into()).await?.to_string()),
            };
            edit(json!({ "spec": { "expirationTime": end } })).await
        }
        Change::Describe(_) => edit(json!({ "spec": { "description": number.to_string() } })).await,
        Change::Rotate(_) => edit(rotated(&found, number)?).await,
        Change::Delete(_) => unless_gone(objects.delete(&name).await),
        Change::Strip(_) => {
            edit(json!({ "metadata": { "finalizers": null } })).await?;
            // It is gone already if it was being deleted.
            let _ = objects.delete(&name).await;
            Ok(())
        }
        Change::DeleteSecret(_) => {
            // There may be none.
            let _ = objects.delete_secret(&name).await;
            Ok(())
        }
        Change::EditSecret(_) => {
            let text = json!({ "stringData": { "api-key": "another" } });
            let secret = format!("secret/{}", secret_name(&name));
            // There may be none.
            let _ = stage.world.patch(&secret, &text, &[]);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A key whose deletion was under way may go at any moment.
fn unless_gone(made: Result<()>) -> Result<()> {
    made.or_else(|error| match error.downcast_ref() {
        Some(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        _ => Err(error),
    })
}

/// Makes a change that is about no key.
pub async fn of_world(change: Change, stage: &Stage) -> Result<()> {
    let pause = |millis: u16| sleep(Duration::from_millis(millis.into()));
    match change {
        Change::OfferPlan(on) => stage.world.apply(&offering(on))?,
        Change::Kill => {
            stage.operator.kill()?;
            stage.operator.start_again()?;
        }
        Change::Pause(millis) => {
            stage.operator.signal(Signal::SIGSTOP)?;
            pause(millis).await;
            stage.operator.signal(Signal::SIGCONT)?;
        }
        Change::Flush => drop(stage.redis.command(&["FLUSHALL"]).await?),
        Change::Dump => drop(stage.redis.command(&["SAVE"]).await?),
        Change::Restore => {
            stage.redis.kill()?;
            stage.redis.start_again().await?;
        }
        Change::CutRedis(millis) => {
            stage.to_redis.set(Network::BlackHole);
            pause(millis).await;
            stage.to_redis.set(Network::Good);
        }
        Change::Disconnect => stage.interceptor.cut(),
        Change::Pass(millis) => pause(millis).await,
        _ => {}
    }
    Ok(())
}
