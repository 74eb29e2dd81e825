//! How random changes and faults are made.

use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::sleep;
use water_domain::Timestamp;
use water_harness::Network;
use water_resources::ApiKey;

use crate::change::{Change, LONG_OVERLAP, PLANS, declared, name, offering, renamed, rotated};
use crate::operators::Operators;
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
        match change {
            Change::Create(_) | Change::Return(_) => {
                objects.create(&declared(place, number)).await?;
            }
            // One that its ApiKey has left behind.
            Change::DeleteSecret(_) => drop(objects.delete_secret(&name).await),
            _ => {}
        }
        return Ok(());
    };
    let in_seconds = async |seconds: Option<u8>| match seconds {
        Some(seconds) => anyhow::Ok(Some(stage.in_seconds(seconds.into()).await?)),
        None => Ok(None),
    };
    match change {
        Change::Suspend(_, on) => edit(json!({ "spec": { "suspend": on } })).await,
        Change::Plan(_, plan) => {
            let plan = PLANS[usize::from(plan) % PLANS.len()];
            edit(json!({ "spec": { "plan": plan } })).await
        }
        Change::Expire(_, end) => {
            let end = in_seconds(end).await?;
            edit(span(found.spec.not_before, end)).await
        }
        Change::Begin(_, begin) => {
            let begin = in_seconds(begin).await?;
            edit(span(begin, found.spec.expiration_time)).await
        }
        Change::Period(_, period) => {
            // An overlap must be shorter than the period.
            let overlap = if period.is_some() { 2 } else { LONG_OVERLAP };
            edit(json!({ "spec": { "rotation": {
                "periodSeconds": period, "overlapSeconds": overlap,
            } } }))
            .await
        }
        Change::Overlap(_, overlap) => {
            let period = found.spec.rotation.period_seconds;
            let is_too_long = period.is_some_and(|period| i64::from(overlap) >= period);
            let period = period.filter(|_| !is_too_long);
            edit(json!({ "spec": { "rotation": {
                "periodSeconds": period, "overlapSeconds": overlap,
            } } }))
            .await
        }
        Change::Retain(_, on) => {
            let policy = if on { "Retain" } else { "Delete" };
            let generated = json!({ "deletionPolicy": policy });
            edit(json!({ "spec": { "material": { "generated": generated } } })).await
        }
        Change::Reinstate(_) => match remedy(&found) {
            Some(remedy) => {
                edit(json!({ "metadata": { "annotations": { REINSTATE: remedy } } })).await
            }
            None => Ok(()),
        },
        Change::Describe(_) => edit(json!({ "spec": { "description": number.to_string() } })).await,
        Change::Rotate(_) => edit(rotated(&found, number)?).await,
        Change::Rename(_, id) if found.spec.material.hash.is_some() => {
            edit(renamed(&found, number, id)).await
        }
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
            // There may be none.
            let _ = objects.edit_secret(&name, &text).await;
            Ok(())
        }
        Change::TakeSecret(_) => {
            let taken = json!({
                "metadata": { "annotations": null, "ownerReferences": null },
                "stringData": { "api-key": "somebody else's" },
            });
            // There may be none.
            let _ = objects.edit_secret(&name, &taken).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The patch that lets a key begin and end at these times. The end of one that would begin after it
/// is taken away.
fn span(begin: Option<Timestamp>, end: Option<Timestamp>) -> Value {
    let is_empty = begin.zip(end).is_some_and(|(begin, end)| begin >= end);
    let end = end.filter(|_| !is_empty);
    json!({ "spec": {
        "notBefore": begin.map(|begin| begin.to_string()),
        "expirationTime": end.map(|end| end.to_string()),
    } })
}

const REINSTATE: &str = "waterdata.dev/reinstate";

/// What the annotation has to say that accepts a revoked hash again, as the status spells it out.
fn remedy(key: &ApiKey) -> Option<String> {
    let conditions = &key.status.as_ref()?.conditions;
    let told = conditions.iter().find_map(|told| {
        let (_, remedy) = told.message.split_once(&format!("{REINSTATE}: "))?;
        remedy.split_whitespace().next()
    });
    told.map(str::to_owned)
}

/// A key whose deletion was under way may go at any moment.
pub fn unless_gone(made: Result<()>) -> Result<()> {
    made.or_else(|error| match error.downcast_ref() {
        Some(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        _ => Err(error),
    })
}

/// Makes a change that is about no key.
pub async fn of_world(change: Change, stage: &Stage, operators: &Operators) -> Result<()> {
    let pause = |millis: u16| sleep(Duration::from_millis(millis.into()));
    match change {
        Change::OfferPlan(on) => stage.objects.edit_api(&offering(on)).await?,
        // Nobody leads.
        Change::Kill | Change::Pause(_) if !operators.run() => {}
        Change::Kill => {
            let leader = operators.leader(stage).await?;
            leader.kill()?;
            leader.start_again()?;
        }
        Change::Pause(millis) => {
            let leader = operators.leader(stage).await?;
            leader.signal(Signal::SIGSTOP)?;
            pause(millis).await;
            leader.signal(Signal::SIGCONT)?;
        }
        Change::Hold => operators.hold(stage).await?,
        Change::Stop => operators.stop().await?,
        Change::Continue => operators.go_on()?,
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
