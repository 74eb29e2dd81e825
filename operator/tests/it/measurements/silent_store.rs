//! Several WaterDataApis under one operator, each on a separate Redis, of which one is silent.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};
use water_domain::{KeyHash, Timestamp};
use water_harness::{Redis, wait_until};
use water_keystore::connection::Purpose;
use water_keystore::{ConnectionSettings, Directory, Instance};
use water_kit::is_all_asked_for;
use water_kit::operator::objects::{name, shown};
use water_kit::operator::world::{API, PATIENCE, World, api, brought, redis_secret};
use water_resources::ApiKey;

use crate::Result;

const SILENT_KEYS: u32 = 500;
/// Keys of each of the others: half of them are deleted, and half suspended.
const OTHER_KEYS: u32 = 50;
/// Time without a leader, and until another acts.
const LEADERSHIP: Duration = Duration::from_secs(20);
/// Interval between two restrictions of the long form, which go on for five minutes.
const PACE: Duration = Duration::from_secs(3);
/// Interval between them in the short form: one comes as soon as that before is in force.
const SHORT_PACE: Duration = Duration::from_millis(1);
const IN_FORCE: Duration = Duration::from_secs(1);
const CAUGHT_UP: Duration = Duration::from_secs(10);

/// A WaterDataApi in addition to the world's own, on another Redis.
struct Beside {
    name: &'static str,
    directory: Directory,
    _redis: Redis,
}

impl Beside {
    async fn apply(world: &World, name: &'static str) -> anyhow::Result<Self> {
        let redis = Redis::start().await?;
        let secret = format!("{name}-redis");
        world.apply(&redis_secret(&secret, &redis.url()))?;
        let mut api = api();
        api["metadata"]["name"] = name.into();
        api["spec"]["redis"]["secretRef"]["name"] = secret.into();
        api["spec"]["exposure"]["ingress"]["host"] = format!("{name}.example").into();
        world.apply(&api)?;
        let settings = ConnectionSettings::new(&redis.url(), None)?;
        let instance = Instance::new(&world.namespace, name)?;
        Ok(Self {
            name,
            directory: Directory::new(settings.connect(Purpose::Directory), instance),
            _redis: redis,
        })
    }

    /// The state of a key; `None`: it is not published.
    async fn state(&self, hash: &KeyHash) -> anyhow::Result<Option<String>> {
        let mut stored = self.directory.stored().await?;
        let record = stored.remove(hash).and_then(|stored| stored.record);
        Ok(record.map(|record| format!("{:?}", record.state)))
    }

    /// Waits until a key is in that state.
    async fn becomes(&self, hash: &KeyHash, wanted: Option<&str>) -> Result {
        wait_until(&format!("{wanted:?}"), PATIENCE, async || {
            let state = self.state(hash).await?;
            ensure!(state.as_deref() == wanted, "{state:?}");
            Ok(())
        })
        .await
    }
}

fn hash(api: u32, number: u32) -> String {
    format!("{:064x}", u64::from(api) << 32 | u64::from(number))
}

fn apply_key(world: &World, api: &str, name: &str, hash: &str) -> Result {
    let mut key = brought(name, '0');
    key["spec"]["apiRef"] = json!({ "name": api });
    key["spec"]["material"]["hash"]["sha256"] = hash.into();
    world.apply(&key)
}

/// Waits until so many keys of the world's own WaterDataApi are in a state.
async fn count(world: &World, state: &str, wanted: usize) -> Result {
    world
        .wait(&format!("{wanted} {state}"), PATIENCE, async || {
            let published = world.published().await?;
            let found = published.iter().filter(|key| key.ends_with(state)).count();
            ensure!(found == wanted, "{found}");
            Ok(())
        })
        .await
}

fn is_ready(key: &ApiKey) -> bool {
    shown(key, "Ready").starts_with("True")
}

/// Last transitions of `Ready`, of the world's own keys that are not suspended.
fn ready_since(world: &World) -> anyhow::Result<BTreeMap<String, Timestamp>> {
    let mut since = BTreeMap::new();
    for key in world.objects.keys()? {
        let own = name(&key).to_owned();
        if own.starts_with("silent-") && !key.spec.suspend {
            let conditions = key.status.context("a status")?.conditions;
            let mut conditions = conditions.into_iter();
            let ready = conditions.find(|condition| condition.kind == "Ready");
            since.insert(own, ready.context("no Ready")?.last_transition_time);
        }
    }
    Ok(since)
}

#[tokio::test]
async fn fault_47_a_silent_redis_delays_no_restriction_of_another_api_through_a_change_of_leader()
-> Result {
    let (silent, world, leader) = World::on_own_redis("silent-store").await?;
    let others = [
        Beside::apply(&world, "second").await?,
        Beside::apply(&world, "third").await?,
    ];
    for number in 0..SILENT_KEYS {
        apply_key(&world, API, &format!("silent-{number}"), &hash(1, number))?;
    }
    for (api, other) in (2..).zip(&others) {
        for number in 0..OTHER_KEYS {
            let name = format!("{}-{number}", other.name);
            apply_key(&world, other.name, &name, &hash(api, number))?;
        }
    }
    count(&world, "Active", SILENT_KEYS as usize).await?;
    for (api, other) in (2..).zip(&others) {
        for number in 0..OTHER_KEYS {
            other
                .becomes(&hash(api, number).parse()?, Some("Active"))
                .await?;
        }
    }

    world
        .wait("each ApiKey to be Ready", PATIENCE, async || {
            let keys = world.objects.keys()?;
            let waiting = keys.iter().find(|key| !is_ready(key));
            ensure!(waiting.is_none(), "{waiting:?}");
            Ok(())
        })
        .await?;
    let since = ready_since(&world)?;

    let _standby = world.operator("operator-1")?;
    silent.pause()?;
    let suspended = json!({ "spec": { "suspend": true } });
    for number in (0..SILENT_KEYS).step_by(2) {
        let name = format!("apikey/silent-{number}");
        world.objects.patch(&name, &suspended)?;
    }
    leader.kill()?;
    let killed = Instant::now();
    world
        .wait("another leader", PATIENCE, async || {
            let leader = world.objects.leader()?;
            ensure!(leader.as_deref() == Some("operator-1"), "{leader:?}");
            Ok(())
        })
        .await?;
    let led = killed.elapsed();
    ensure!(led <= LEADERSHIP, "{led:?}");
    let mut times = Vec::new();
    let mut pace = interval(if is_all_asked_for() { PACE } else { SHORT_PACE });
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..OTHER_KEYS {
        for (api, other) in (2..).zip(&others) {
            let object = format!("apikey/{}-{number}", other.name);
            let hash = hash(api, number).parse()?;
            pace.tick().await;
            let asked = Instant::now();
            let wanted = if number % 2 == 0 {
                world.objects.delete(&object)?;
                None
            } else {
                world.objects.patch(&object, &suspended)?;
                Some("Suspended")
            };
            other.becomes(&hash, wanted).await?;
            times.push(asked.elapsed());
        }
    }
    // One in a hundred may be late: p99.
    times.sort();
    let late = times.iter().filter(|time| **time > IN_FORCE).count();
    println!("restrictions beside a silent Redis: {times:?}");
    ensure!(late <= times.len() / 100, "{times:?}");

    for key in world.objects.keys()? {
        let is_changed = key.spec.suspend && name(&key).starts_with("silent-");
        ensure!(!is_changed || !is_ready(&key), "{:?}", key.status);
    }
    silent.resume()?;
    let resumed = Instant::now();
    count(&world, "Suspended", SILENT_KEYS as usize / 2).await?;
    let caught_up = resumed.elapsed();
    ensure!(caught_up <= CAUGHT_UP, "{caught_up:?}");
    // A status that had said otherwise meanwhile would show a later transition. In the long form it has, rightly: no
    // gate serves them for minutes without Redis.
    let still = ready_since(&world)?;
    ensure!(still.len() == SILENT_KEYS as usize / 2, "{still:?}");
    let has_stayed = |(name, time): (&String, &Timestamp)| since[name] == *time;
    ensure!(
        is_all_asked_for() || still.iter().all(has_stayed),
        "{still:?}"
    );
    Ok(())
}
