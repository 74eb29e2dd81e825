//! The making of random changes and faults.

use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::sleep;
use water_domain::Timestamp;
use water_harness::Network;
use water_kit::operator::objects::{is_missing, secret_of};
use water_kit::operator::stage::Stage;
use water_resources::ApiKey;

use super::change::{Change, Edit, LONG_OVERLAP, PLANS, declared, material, name, offering};
use super::operators::Operators;

const REINSTATE: &str = "waterdata.dev/reinstate";

/// Changes the key of a place, which is that one if there is any. One that cannot be changed so stays
/// as it is. No other change has this number.
pub async fn of_key(
    edit: Edit,
    stage: &Stage,
    place: u8,
    found: Option<ApiKey>,
    number: u64,
) -> Result<()> {
    let (objects, name) = (&stage.objects, name(place));
    let (object, secret) = (format!("apikey/{name}"), secret_of(&name));
    let Some(found) = found else {
        return match edit {
            Edit::Create | Edit::Return => objects.create(&declared(place, number)),
            // One that its ApiKey has left behind.
            Edit::DeleteSecret => unless_gone(objects.delete(&secret)),
            _ => Ok(()),
        };
    };
    let patch = |patch: Value| unless_gone(objects.patch(&object, &patch));
    let spec = |spec: Value| patch(json!({ "spec": spec }));
    let in_seconds = async |seconds: Option<u8>| match seconds {
        Some(seconds) => anyhow::Ok(Some(stage.in_seconds(seconds.into()).await?)),
        None => Ok(None),
    };
    let rotation = |period: Option<i64>, overlap: u16| {
        spec(json!({ "rotation": { "periodSeconds": period, "overlapSeconds": overlap } }))
    };
    match edit {
        Edit::Create | Edit::Return => Ok(()),
        Edit::Suspend(on) => spec(json!({ "suspend": on })),
        Edit::Plan(plan) => spec(json!({ "plan": PLANS[usize::from(plan) % PLANS.len()] })),
        Edit::Expire(end) => spec(span(found.spec.not_before, in_seconds(end).await?)),
        Edit::Begin(begin) => spec(span(in_seconds(begin).await?, found.spec.expiration_time)),
        // An overlap must be shorter than the period.
        Edit::Period(Some(period)) => rotation(Some(period.into()), 2),
        Edit::Period(None) => rotation(None, LONG_OVERLAP),
        Edit::Overlap(overlap) => {
            let period = found.spec.rotation.period_seconds;
            rotation(
                period.filter(|period| i64::from(overlap) < *period),
                overlap,
            )
        }
        Edit::Retain(on) => {
            let policy = if on { "Retain" } else { "Delete" };
            spec(json!({ "material": { "generated": { "deletionPolicy": policy } } }))
        }
        Edit::Reinstate => match remedy(&found) {
            Some(remedy) => patch(json!({ "metadata": { "annotations": { REINSTATE: remedy } } })),
            None => Ok(()),
        },
        Edit::Describe => spec(json!({ "description": number.to_string() })),
        Edit::Rotate if found.spec.material.hash.is_some() => spec(under(None, number)),
        Edit::Rotate => {
            let revision = found.spec.rotation.revision.unwrap_or(0);
            spec(json!({ "rotation": { "revision": revision + 1 } }))
        }
        Edit::Rename(id) => match &found.spec.material.hash {
            Some(before) => {
                // No two hashes of a key have one key id.
                let id = format!("sequence{id:04}");
                let before = before.key_id.as_ref().map(ToString::to_string);
                let is_other = before.as_ref() != Some(&id);
                spec(under(is_other.then_some(id), number))
            }
            None => Ok(()),
        },
        Edit::Delete => unless_gone(objects.delete(&object)),
        Edit::Strip => {
            patch(json!({ "metadata": { "finalizers": null } }))?;
            // It is gone already if it was being deleted.
            unless_gone(objects.delete(&object))
        }
        Edit::DeleteSecret => unless_gone(objects.delete(&secret)),
        Edit::ChangeSecret => {
            let text = json!({ "stringData": { "api-key": "another" } });
            unless_gone(objects.patch(&secret, &text))
        }
        Edit::TakeSecret => {
            let taken = json!({
                "metadata": { "annotations": null, "ownerReferences": null },
                "stringData": { "api-key": "somebody else's" },
            });
            unless_gone(objects.patch(&secret, &taken))
        }
    }
}

/// Another hash, perhaps under a key id.
fn under(id: Option<String>, number: u64) -> Value {
    let mut material = material(number);
    material["hash"]["keyId"] = id.into();
    json!({ "material": material })
}

/// Beginning and end of a key. The end of one that would begin after it is taken away.
fn span(begin: Option<Timestamp>, end: Option<Timestamp>) -> Value {
    let is_empty = begin.zip(end).is_some_and(|(begin, end)| begin >= end);
    let end = end.filter(|_| !is_empty);
    json!({
        "notBefore": begin.map(|begin| begin.to_string()),
        "expirationTime": end.map(|end| end.to_string()),
    })
}

/// The annotation that accepts a revoked hash again, as the status spells it out.
fn remedy(key: &ApiKey) -> Option<String> {
    let mut conditions = key.status.as_ref()?.conditions.iter();
    let remedy = conditions.find_map(|condition| {
        let (_, remedy) = condition.message.split_once(&format!("{REINSTATE}: "))?;
        remedy.split_whitespace().next()
    });
    remedy.map(str::to_owned)
}

/// A key whose deletion was under way may go at any moment, and there may be no Secret.
pub fn unless_gone(made: Result<()>) -> Result<()> {
    made.or_else(|error| {
        if is_missing(&error) {
            Ok(())
        } else {
            Err(error)
        }
    })
}

/// Makes a change that is about no key.
pub async fn of_world(change: Change, stage: &Stage, operators: &Operators) -> Result<()> {
    let pause = |millis: u16| sleep(Duration::from_millis(millis.into()));
    match change {
        Change::OfferPlan(on) => stage.objects.edit_api(&offering(on))?,
        // Nobody leads.
        Change::Kill | Change::Pause(_) if !operators.run() => {}
        Change::Kill => {
            let leader = operators.leader(stage)?;
            leader.kill()?;
            leader.start_again()?;
        }
        Change::Pause(millis) => {
            let leader = operators.leader(stage)?;
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
        Change::Key(..) | Change::CutGate(_) | Change::Age(_) | Change::Enforce => {}
    }
    Ok(())
}
