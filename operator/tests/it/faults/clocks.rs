//! The operator's clock is an hour ahead of Redis', or behind: keys begin, end and rotate by Redis' clock.
//! Redis is put wrong, and the operator is not: clocks cannot be put wrong for a static program. The gate's
//! clock has the same test among the gate's.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use water_domain::{KeyHash, Timestamp};
use water_harness::{Clock, Redis};
use water_kit::operator::clients::Expected;
use water_kit::operator::objects::{current, shown};
use water_kit::operator::stage::Stage;
use water_kit::operator::world::{PATIENCE, key};

/// Seconds from the start until the boundaries of half of the keys, …
const SOON: u64 = 3600;
/// … until the time that Redis' clock is set to, …
const PASSED: i64 = 4200;
/// … and until the boundaries of the others. By then a clock that is an hour ahead is past all boundaries,
/// and one that is an hour behind before all of them.
const LATER: u64 = 6900;
/// An earlier key works for so many seconds: longer than the test.
const OVERLAP: u64 = 1500;
/// A clock that was read so many seconds before it is judged is not wrong by that: it is half of what the operator's is
/// wrong by.
const READING: i64 = 1800;

/// Change of a key at its boundary, by the field that declares it.
const ROTATES: &str = "rotation";
const ENDS: &str = "expirationTime";
const BEGINS: &str = "notBefore";

/// A key with a boundary to come.
struct Waiting {
    name: String,
    field: &'static str,
    is_due: bool,
    hash: KeyHash,
}

/// Reported state before a boundary, or after.
fn reported(field: &str, is_over: bool) -> &'static str {
    match (field, is_over) {
        (ENDS, true) => "False/Expired",
        (BEGINS, false) => "True/NotYetValid",
        _ => "True/Active",
    }
}

/// Required answer to clients before a boundary, or after.
fn expected(field: &str, is_over: bool) -> Expected {
    match reported(field, is_over) {
        "True/Active" => Expected::Accepted,
        _ => Expected::Refused,
    }
}

impl Waiting {
    async fn new(stage: &Stage, field: &'static str, seconds: u64) -> Result<Self> {
        let name = format!("{field}-{seconds}").to_lowercase();
        let mut key = key(&name);
        key["spec"][field] = match field {
            ROTATES => json!({ "periodSeconds": seconds, "overlapSeconds": OVERLAP }),
            _ => stage.in_seconds(seconds).await?.to_string().into(),
        };
        stage.objects.create(&key)?;
        let hash = current(&stage.key_is(&name, "Ready", reported(field, false)).await?)?;
        stage.clients.expect(hash, expected(field, false));
        Ok(Self {
            name,
            field,
            is_due: seconds == SOON,
            hash,
        })
    }

    /// Waits until a pass that has seen an edit, which changes nothing, reports the state before the
    /// boundary, or after. Returns the current key.
    async fn looked_at(&self, stage: &Stage, is_over: bool) -> Result<KeyHash> {
        let edit = json!({ "spec": { "description": format!("over: {is_over}") } });
        stage.objects.edit(&self.name, &edit)?;
        let wanted = reported(self.field, is_over);
        current(&stage.key_is(&self.name, "Ready", wanted).await?)
    }

    /// Waits until the boundary is over if it is due; nothing happens to a key of which it is not.
    async fn turns(&self, stage: &Stage) -> Result<()> {
        let rotates = self.is_due && self.field == ROTATES;
        let expected = expected(self.field, self.is_due);
        self.looked_at(stage, self.is_due).await?;
        let turned = async || {
            let key = stage.objects.key(&self.name)?.context("no ApiKey")?;
            let (shown, now) = (shown(&key, "Ready"), current(&key)?);
            ensure!(shown == reported(self.field, self.is_due), "{shown}");
            ensure!((now != self.hash) == rotates, "{now} after {}", self.hash);
            let accepted = stage.gate.account(&now)?.is_some();
            ensure!(accepted == (expected == Expected::Accepted), "{accepted}");
            Ok(now)
        };
        let now = stage.wait(&self.name, PATIENCE, turned).await?;
        stage.clients.expect(now, expected);
        Ok(())
    }
}

/// Seconds by which the operator's clock is ahead of Redis': its Lease shows a time by which nothing is
/// decided.
async fn ahead(stage: &Stage) -> Result<i64> {
    let lease = stage.get("lease/water-operator")?;
    let renewed = lease["spec"]["renewTime"].as_str().context("no time")?;
    let shown = Timestamp::parse(renewed)?.as_millis() - stage.now().await?.as_millis();
    Ok(shown / 1000)
}

async fn all_is_by_redis_clock(namespace: &str, wrong_by: i64) -> Result<()> {
    let clock = Clock::new()?;
    clock.set(-wrong_by)?;
    let stage = Stage::with_redis(namespace, Redis::start_on(&clock).await?).await?;
    let mut keys = Vec::new();
    for field in [ROTATES, ENDS, BEGINS] {
        for seconds in [SOON, LATER] {
            keys.push(Waiting::new(&stage, field, seconds).await?);
        }
    }
    let off = ahead(&stage).await? - wrong_by;
    ensure!(
        off.abs() < READING,
        "the operator's clock is off by {off} s"
    );
    for key in &keys {
        let hash = key.looked_at(&stage, false).await?;
        ensure!(hash == key.hash, "{} was rotated", key.name);
    }
    for key in keys.iter().filter(|key| key.is_due && key.field != ROTATES) {
        stage.clients.expect(key.hash, Expected::Either);
    }
    clock.set(PASSED - wrong_by)?;
    for key in &keys {
        key.turns(&stage).await?;
    }
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_36_keys_begin_end_and_rotate_by_redis_clock_under_an_operator_an_hour_ahead()
-> Result<()> {
    all_is_by_redis_clock("operator-ahead", 3600).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_36_keys_begin_end_and_rotate_by_redis_clock_under_an_operator_an_hour_behind()
-> Result<()> {
    all_is_by_redis_clock("operator-behind", -3600).await
}
