//! The operator's clock is wrong, or a gate's: keys begin, end and rotate by Redis' clock.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use water_domain::{KeyHash, KeyPrefix, PlainKey, Timestamp};
use water_harness::{Clock, Program, Redis, scratch_directory};

use crate::clients::Expected;
use crate::gate_process::GateProcess;
use crate::objects::{current, shown};
use crate::scenario::{Scenario, Subject};
use crate::stage::Stage;
use crate::world::{OPERATOR, PATIENCE, World, key};

/// Seconds from the start until the boundaries of half of the keys, …
const SOON: i64 = 1800;
/// … until where Redis' clock is put, …
const PASSED: i64 = 2400;
/// … and until the boundaries of the others. To a clock that is an hour ahead all boundaries are over,
/// and to one that is an hour behind none will be.
const LATER: i64 = 3300;
/// An earlier key works for so many seconds: longer than the test.
const OVERLAP: i64 = 1500;
/// A clock that was read so many seconds before it is judged is not wrong by that.
const READING: i64 = 60;

/// What happens to a key at its boundary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Boundary {
    Rotates,
    Ends,
    Begins,
}

use Boundary::{Begins, Ends, Rotates};

/// Keys with their boundaries, and in how many seconds these come.
const KEYS: [(&str, Boundary, i64); 8] = [
    ("rotates-1", Rotates, SOON),
    ("rotates-2", Rotates, SOON),
    ("rotates-later-1", Rotates, LATER),
    ("rotates-later-2", Rotates, LATER),
    ("ends", Ends, SOON),
    ("ends-later", Ends, LATER),
    ("begins", Begins, SOON),
    ("begins-later", Begins, LATER),
];

/// A key of which the boundary is to come.
struct Waiting {
    subject: Subject,
    hash: KeyHash,
    boundary: Boundary,
    is_due: bool,
}

impl Boundary {
    /// What is told of a key before, or after.
    fn told(self, is_over: bool) -> &'static str {
        match (self, is_over) {
            (Self::Rotates, _) | (Self::Ends, false) | (Self::Begins, true) => "True/Active",
            (Self::Ends, true) => "False/Expired",
            (Self::Begins, false) => "True/NotYetValid",
        }
    }

    /// What clients are answered.
    fn expected(self, is_over: bool) -> Expected {
        match self.told(is_over) {
            "True/Active" => Expected::Accepted,
            _ => Expected::Refused,
        }
    }

    /// The ApiKey of that name whose boundary comes in so many seconds.
    async fn declared(self, stage: &Stage, name: &str, seconds: i64) -> Result<Value> {
        let mut key = key(name);
        let at = stage.in_seconds(seconds.try_into()?).await?.to_string();
        let rotation = json!({ "periodSeconds": seconds, "overlapSeconds": OVERLAP });
        key["spec"][self.field()] = match self {
            Self::Rotates => rotation,
            Self::Ends | Self::Begins => at.into(),
        };
        Ok(key)
    }

    /// Where an ApiKey says when it comes.
    fn field(self) -> &'static str {
        match self {
            Self::Rotates => "rotation",
            Self::Ends => "expirationTime",
            Self::Begins => "notBefore",
        }
    }
}

impl Waiting {
    async fn new(stage: &Stage, (name, boundary, seconds): (&str, Boundary, i64)) -> Result<Self> {
        let declared = boundary.declared(stage, name, seconds).await?;
        stage.objects.create(&declared).await?;
        let hash = told(stage, name, boundary.told(false)).await?;
        stage.clients.expect(hash, boundary.expected(false));
        Ok(Self {
            subject: Subject {
                name: name.into(),
                before: Some(hash),
            },
            hash,
            boundary,
            is_due: seconds < PASSED,
        })
    }

    /// A pass that sees an edit, which changes nothing, leaves it as it is.
    async fn is_as_it_was(&self, stage: &Stage) -> Result<()> {
        let name = &self.subject.name;
        let hash = looked_at(stage, name, "wrong", self.boundary.told(false)).await?;
        ensure!(hash == self.hash, "{name} was rotated");
        Ok(())
    }

    /// Its boundary is over if it is due, and nothing has happened to it if it is not.
    async fn has_turned(&self, stage: &Stage) -> Result<()> {
        let (name, is_over) = (&self.subject.name, self.is_due);
        let hash = looked_at(stage, name, "passed", self.boundary.told(is_over)).await?;
        if is_over && self.boundary == Rotates {
            let rotated = async || Scenario::Rotate.has_ended(stage, &self.subject).await;
            return stage.wait(name, PATIENCE, rotated).await;
        }
        ensure!(hash == self.hash, "{name} was rotated");
        let expected = self.boundary.expected(is_over);
        let answered = async || {
            let accepted = stage.gate.account(&hash)?.is_some();
            ensure!(accepted == (expected == Expected::Accepted), "{accepted}");
            Ok(())
        };
        stage.wait(name, PATIENCE, answered).await?;
        stage.clients.expect(hash, expected);
        Ok(())
    }
}

/// Waits until that is told of a key. Returns its hash.
async fn told(stage: &Stage, name: &str, wanted: &str) -> Result<KeyHash> {
    let told = async || {
        let key = stage.objects.key(name).await?.context("no ApiKey")?;
        let shown = shown(&key, "Ready");
        ensure!(shown == wanted, "{shown}: {:?}", key.status);
        current(&key)
    };
    let what = format!("{name} to be {wanted}");
    stage.wait(&what, PATIENCE, told).await
}

/// The same by a pass that has seen an edit, which changes nothing.
async fn looked_at(stage: &Stage, name: &str, note: &str, wanted: &str) -> Result<KeyHash> {
    let edit = json!({ "spec": { "description": note } });
    stage.objects.edit(name, &edit).await?;
    told(stage, name, wanted).await
}

/// Waits until the operator shows such a time in its Lease, by which nothing is decided.
async fn shows(stage: &Stage, ahead: i64) -> Result<()> {
    let shows = async || {
        let lease = stage.world.get("lease/water-operator")?;
        let renewed = lease["spec"]["renewTime"].as_str().context("no time")?;
        let shown = Timestamp::parse(renewed)?.as_millis() - stage.now().await?.as_millis();
        let off = (shown / 1000 - ahead).abs();
        ensure!(off < READING, "{shown} ms ahead");
        Ok(())
    };
    stage.wait("the wrong clock", PATIENCE, shows).await
}

async fn all_is_by_redis_clock(namespace: &str, ahead: i64) -> Result<()> {
    let (clock, redis_clock) = (Clock::new()?, Clock::new()?);
    let redis = Redis::start_on(&redis_clock).await?;
    let world = World::with_redis(namespace, &redis.url()).await?;
    let stage = Stage::of(world, redis, |operator| clock.under(operator)).await?;
    let mut keys = Vec::new();
    for key in KEYS {
        keys.push(Waiting::new(&stage, key).await?);
    }
    clock.set(ahead)?;
    shows(&stage, ahead).await?;
    for key in &keys {
        key.is_as_it_was(&stage).await?;
    }
    for key in keys
        .iter()
        .filter(|key| key.is_due && key.boundary != Rotates)
    {
        stage.clients.expect(key.hash, Expected::Either);
    }
    redis_clock.set(PASSED)?;
    for key in &keys {
        key.has_turned(&stage).await?;
    }
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_begin_end_and_rotate_by_redis_clock_under_an_operator_an_hour_ahead() -> Result<()> {
    all_is_by_redis_clock("operator-ahead", 3600).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_begin_end_and_rotate_by_redis_clock_under_an_operator_an_hour_behind() -> Result<()> {
    all_is_by_redis_clock("operator-behind", -3600).await
}

/// Half an hour: less than a clock is wrong by, and less than Redis' clock is put ahead.
const AROUND: i64 = 1800;
/// Keys with a boundary that long after Redis' time, and what a gate answers: first, and when Redis'
/// clock has been put ahead.
const ASKED: [(&str, Boundary, i64, [u16; 2]); 4] = [
    ("ended", Ends, -AROUND, [401, 401]),
    ("ends", Ends, AROUND, [200, 401]),
    ("begun", Begins, -AROUND, [200, 200]),
    ("begins", Begins, AROUND, [401, 200]),
];

/// The text of the key of that name, which is brought along.
fn text(name: &str) -> Result<PlainKey<'static>> {
    let place = ASKED.iter().position(|(known, ..)| *known == name);
    let seed = u8::try_from(place.context("no such key")?)?;
    Ok(PlainKey::generate(&KeyPrefix::default(), &[seed; 48]))
}

/// Makes the key, of an account of its own, and waits until the other gates know it.
async fn bring(stage: &Stage, name: &str, boundary: Boundary, after: i64) -> Result<()> {
    let at = stage.now().await?.as_millis() + after * 1000;
    let at = Timestamp::from_millis(at).context("a time")?;
    let mut key = key(name);
    key["spec"]["accountId"] = name.into();
    key["spec"]["material"]["hash"]["sha256"] = text(name)?.hash().to_string().into();
    key["spec"][boundary.field()] = at.to_string().into();
    stage.objects.create(&key).await?;
    let (apikey, told) = (format!("apikey/{name}"), boundary.told(after < 0));
    stage.world.condition(&apikey, "Ready", told).await?;
    Ok(())
}

/// The gate's program as it runs on that clock. It is a script, since a gate is started by the path of
/// its program alone.
async fn gate_on(clock: &Clock) -> Result<PathBuf> {
    let environment = clock.under(Program::new("env")).start()?;
    environment.ended(PATIENCE).await?;
    let environment = environment.log();
    let exports = environment.lines().map(|line| format!("export '{line}'\n"));
    let gate = Path::new(OPERATOR).with_file_name("water-gate");
    let exports: String = exports.collect();
    let script = format!("#!/bin/sh\n{exports}exec {}\n", gate.display());
    let file = scratch_directory("gate")?.join("water-gate");
    fs::write(&file, script)?;
    fs::set_permissions(&file, Permissions::from_mode(0o755))?;
    Ok(file)
}

/// Waits until the gate answers so to each key, and shows a clock that is that many seconds ahead.
async fn answers(stage: &Stage, gate: &GateProcess, ahead: i64, moment: usize) -> Result<()> {
    for (name, _, _, statuses) in ASKED {
        let answered = async || {
            let mut client = gate.connect().await?;
            let answer = client.get("/api/v1/stress", text(name)?.expose()).await?;
            ensure!(answer.status == statuses[moment], "{name}: {answer:?}");
            let date = answer.header("date").context("no date")?;
            Ok(chrono::DateTime::parse_from_rfc2822(date)?.timestamp())
        };
        let shown = stage.wait_for_all(name, PATIENCE, answered).await?;
        let off = shown - stage.now().await?.as_millis() / 1000 - ahead;
        ensure!(off.abs() < READING, "{name}: the clock is off by {off} s");
    }
    Ok(())
}

async fn a_gate_goes_by_redis_clock(namespace: &str, ahead: i64) -> Result<()> {
    let (clock, redis_clock) = (Clock::new()?, Clock::new()?);
    clock.set(ahead)?;
    let redis = Redis::start_on(&redis_clock).await?;
    let world = World::with_redis(namespace, &redis.url()).await?;
    let stage = Stage::of(world, redis, |operator| operator).await?;
    for (name, boundary, after, _) in ASKED {
        bring(&stage, name, boundary, after).await?;
    }
    let gate = GateProcess::start_of(&gate_on(&clock).await?, &stage.world, "gate-1").await?;
    answers(&stage, &gate, ahead, 0).await?;
    redis_clock.set(PASSED)?;
    answers(&stage, &gate, ahead - PASSED, 1).await?;
    stage.holds_for_good().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_an_hour_ahead_begins_and_ends_keys_by_redis_clock() -> Result<()> {
    a_gate_goes_by_redis_clock("gate-ahead", 3600).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_an_hour_behind_begins_and_ends_keys_by_redis_clock() -> Result<()> {
    a_gate_goes_by_redis_clock("gate-behind", -3600).await
}
