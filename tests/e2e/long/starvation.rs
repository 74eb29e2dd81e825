//! A gate that waits for a core, or is throttled, is not a gate whose Redis is away: the limits stay
//! exact.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command};
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, interval};
use water_e2e::load::{self, TARGETS};
use water_e2e::{ApiKey, Cluster, Component, Pod, RELEASE};

const MINUTE: Duration = Duration::from_secs(60);
/// Longer than a minute, so that the account that asks too much is seen to get its next 120.
const LASTING: Duration = Duration::from_secs(75);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Requests a second of the accounts that keep to their limits.
const STEADY: u32 = 100;
/// Requests that leave at once, where gates shall be stopped: two seconds' worth.
const BURST: u32 = 2 * STEADY;
/// The CPU limit, as a multiple of what a gate uses on average without one: enough for all requests on a
/// machine that becomes slower meanwhile; and less than a burst takes, so that bursts stop the gate.
const SPARE: u32 = 3;
/// Time for which a gate's use is measured for it.
const MEASURED: Duration = Duration::from_secs(15);
/// The share of requests that may be decided without Redis, and of times that a gate may not be exact: where a host
/// takes a machine's cores away for 75 ms, Redis was slow indeed.
const SHARED: f64 = 0.1;
/// Fewest stops of the gates by the limit: 83 times in 37 bursts on a machine without other work.
const STOPS: u64 = 10;
/// Pods of each component of the release.
const REPLICAS: usize = 2;

/// Files of a control group's CPU weight in versions 1 and 2.
const WEIGHTS: [&str; 2] = ["cpu.shares", "cpu.weight"];
/// The kernel's default, and ten times that.
const DEFAULT: [&str; 2] = ["1024", "100"];
const TEN_TIMES: [&str; 2] = ["10240", "1000"];

/// Processes, one a core, that do nothing but compute, until it is dropped. Each is in a control group of its own,
/// beside the group of all pods. Meanwhile the cluster has no more weight than other groups, and within it the node's
/// services and the stores have most: so they take from the pods, not from the stores or from the load's sender.
struct BusyCores {
    _processes: Vec<Busy>,
    _weights: [Weight; 2],
}

struct Busy {
    group: PathBuf,
    process: Child,
}

/// Another weight of a control group, until it is dropped.
struct Weight {
    file: PathBuf,
    usual: String,
}

impl BusyCores {
    /// Takes a share of every core from the pods of the node that this one is on.
    fn on_node_of(pod: &Pod) -> Result<Self> {
        let node = pod.node_group()?;
        let weights = [
            Weight::set(&node, DEFAULT)?,
            Weight::set(&node.join("node"), TEN_TIMES)?,
        ];
        let cores = 0..available_parallelism()?.get();
        let busy = cores.map(|core| Busy::start(node.join(format!("busy{core}"))));
        Ok(Self {
            _processes: busy.collect::<Result<_>>()?,
            _weights: weights,
        })
    }
}

impl Weight {
    fn set(group: &Path, weights: [&str; 2]) -> Result<Self> {
        let files = WEIGHTS.map(|name| group.join(name)).into_iter();
        let (file, weight) = files
            .zip(weights)
            .find(|(file, _)| file.exists())
            .with_context(|| format!("{} has no weight", group.display()))?;
        let usual = fs::read_to_string(&file)?;
        fs::write(&file, weight).with_context(|| format!("write {}", file.display()))?;
        Ok(Self { file, usual })
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        // The group goes with the cluster.
        let _ = fs::write(&self.file, self.usual.trim_end());
    }
}

impl Busy {
    fn start(group: PathBuf) -> Result<Self> {
        fs::create_dir_all(&group).with_context(|| format!("make {}", group.display()))?;
        // A test program that is killed takes it along.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"])
            .spawn()
            .context("start setpriv")?;
        let busy = Self { group, process };
        fs::write(
            busy.group.join("cgroup.procs"),
            busy.process.id().to_string(),
        )
        .with_context(|| format!("join {}", busy.group.display()))?;
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // It may have ended; and a group that stays goes with the cluster's.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir(&self.group);
    }
}

/// Returns the requests that the gates decided by their shares, so far.
pub async fn decided_by_share(gates: &[Pod]) -> Result<f64> {
    let mut total = 0.0;
    for gate in gates {
        total += gate.metric("water_gate_limits_shared_total").await?;
    }
    Ok(total)
}

/// Fails if more of so many requests than a busy machine explains were decided without Redis.
pub fn few_are_decided_by_share(shared: f64, sent: usize) -> Result<()> {
    ensure!(
        shared <= sent as f64 * SHARED,
        "{shared} of {sent} were decided without Redis"
    );
    Ok(())
}

/// Checks every gate's mode until `end`, and then once more: few checks may find another than exact, the last none.
async fn stays_exact(cluster: &Cluster, gates: &[Pod], end: Instant) -> Result<()> {
    let (mut checks, mut inexact) = (0.0, 0.0);
    let mut times = interval(LOOK_EVERY);
    while times.tick().await < end {
        for gate in gates {
            checks += 1.0;
            inexact += 1.0 - exact(gate).await?;
        }
    }
    println!("{inexact} of {checks} times a gate was not exact");
    ensure!(
        inexact <= checks * SHARED,
        "{inexact} of {checks} times a gate was not exact"
    );
    for gate in gates {
        let what = format!("exact limits at {} without a load", gate.name);
        let is_exact = async || {
            ensure!(exact(gate).await? == 1.0, "not exact");
            Ok(())
        };
        cluster.wait_until(&what, MINUTE, is_exact).await?;
    }
    Ok(())
}

/// Returns 1 at a gate whose limits are exact, else 0.
async fn exact(gate: &Pod) -> Result<f64> {
    gate.metric("water_gate_limits_mode{mode=\"exact\"}").await
}

/// Sends what accounts within their limits send, that many at once, and one that asks for 50 a second, and
/// compares what they get with the limits.
async fn limits_are_exact(cluster: &Cluster, gates: &[Pod], at_once: u32) -> Result<()> {
    let keys = cluster.load_keys().await?;
    let name = format!("starved-greedy-{at_once}");
    // An account's minute outlives its key, and a test may run again.
    let account = format!("{name}-{}", process::id());
    let greedy = cluster
        .issue(&ApiKey::named(&name).of_account(&account))
        .await?;
    let steady = load::Load {
        at_once,
        ..load::Load::evenly(&cluster.water, STEADY, keys, &TARGETS).promptly()
    };
    let greedy = load::Load {
        expected: Some(429),
        ..load::Load::evenly(&cluster.water, 50, vec![greedy], &[TARGETS[0]]).promptly()
    };
    let before = decided_by_share(gates).await?;
    let (steady, greedy, exact) = tokio::join!(
        load::send_for(steady, LASTING),
        load::send_for(greedy, LASTING),
        stays_exact(cluster, gates, Instant::now() + LASTING),
    );
    let (steady, greedy) = (steady?, greedy?);
    let shared = decided_by_share(gates).await? - before;
    println!("accounts within their limits: {steady}");
    println!("one account at 50/s: {greedy}; {shared} of all decided without Redis");
    exact?;
    steady.without_failures()?;
    greedy.without_failures()?;
    // Two windows of 120. A gate that decides by its share may refuse one of them, and never accepts one more.
    let ok = greedy.ok as f64;
    ensure!(
        240.0 - shared <= ok && ok <= 240.0,
        "{greedy}; {shared} decided without Redis"
    );
    let overfull = greedy.overfull(120, MINUTE);
    ensure!(overfull.is_none(), "121 were accepted within {overfull:?}");
    few_are_decided_by_share(shared, steady.sent + greedy.sent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_stay_exact_while_every_core_is_busy_for_a_minute() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let gates = Component::Gate.healed(&cluster, REPLICAS, &[]).await?;
    let _busy = BusyCores::on_node_of(gates.first().context("a gate")?)?;
    limits_are_exact(&cluster, &gates, 1).await
}

/// Returns a gate's use of a core under the steady load, in thousandths.
async fn usage(cluster: &Cluster) -> Result<u32> {
    let gates = Component::Gate.healed(cluster, REPLICAS, &[]).await?;
    let used = || gates.iter().map(Pod::cpu_time).sum::<Result<Duration>>();
    let keys = cluster.load_keys().await?;
    let before = used()?;
    let load = load::Load::evenly(&cluster.water, STEADY, keys, &TARGETS).promptly();
    load::send_for(load, MEASURED).await?.without_failures()?;
    let of_each = (used()? - before) / u32::try_from(REPLICAS)?;
    let thousandths = (of_each * 1000).as_micros() / MEASURED.as_micros();
    Ok(u32::try_from(thousandths)?)
}

/// Gives the gates' containers these resources, and waits for pods that have them.
async fn give_gates(cluster: &Cluster, resources: &Value) -> Result<Vec<Pod>> {
    let old = Component::Gate.pods(cluster)?;
    let change = json!({ "spec": { "components": { "gate": { "resources": resources } } } });
    cluster
        .kubectl
        .patch(&format!("waterdataapi/{RELEASE}"), &change)?;
    let replaced = Component::Gate
        .healed(cluster, REPLICAS, &old.iter().collect::<Vec<_>>())
        .await?;
    cluster.wait_for_api("Ready", "True").await?;
    Ok(replaced)
}

/// Returns how often the gates have been stopped by their CPU limit so far.
fn throttled(gates: &[Pod]) -> Result<u64> {
    gates.iter().map(Pod::throttled).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_stay_exact_at_gates_that_their_cpu_limit_throttles() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let usual = cluster.keep_spec()?;
    let limit = format!("{}m", SPARE * usage(&cluster).await?);
    let tight = json!({ "requests": { "cpu": limit }, "limits": { "cpu": limit } });
    let gates = give_gates(&cluster, &tight).await?;
    let before = throttled(&gates)?;
    let outcome = limits_are_exact(&cluster, &gates, BURST).await;
    let times = throttled(&gates)? - before;
    println!("the gates were throttled {times} times at {limit}");
    outcome?;
    ensure!(
        times >= STOPS,
        "could not be measured: the gates were throttled {times} times only at {limit}"
    );
    drop(usual);
    cluster.as_installed().await
}
