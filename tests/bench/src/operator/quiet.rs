//! The operator while nobody changes anything: at rest, after a restart that finds everything as it was left, and
//! after a start before a Redis that has lost everything.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};
use water_harness::wait_until;

use super::api::name;
use super::audit::{Request, summary, writes_but_renewals};
use super::life::{self, Name};
use super::single::until_usable;
use super::site::Site;

/// A gate reports uses every 15 s, the operator asks for them once a minute.
const SHOWN_WITHIN: Duration = Duration::from_secs(150);
/// Changes that were under way before come to their end.
const SETTLED_WITHIN: Duration = Duration::from_secs(300);

/// Figures at rest, a value for each window.
pub const REST: [Name; 5] = [
    (life::REQUESTS, "a minute"),
    // The Lease included.
    (life::WRITES, "a minute"),
    (life::CPU, "cores"),
    ("at rest, memory", "MiB"),
    // Also while single ApiKeys were made and deleted.
    ("from the first issuance to rest, peak memory", "MiB"),
];

/// Writes and memory of the operator that follows.
pub const RESTART: [Name; 2] = [
    ("restart, writes but for the Lease", ""),
    ("restart, peak memory", "MiB"),
];

/// Figures of cold starts, a value for each start; memory once all ApiKeys were judged.
pub const COLD_START: [Name; 2] = [
    (
        "cold start, from the process' start to a complete directory",
        "s",
    ),
    ("cold start, peak memory", "MiB"),
];

/// Uses some keys, waits until statuses show that and nothing is written any more, and watches.
pub async fn rest(site: &Site) -> Result<[Vec<f64>; 5]> {
    eprintln!("watching the operator at rest");
    use_keys(site).await?;
    let mut audit = site.audit()?;
    audit.until_quiet(SETTLED_WITHIN).await?;
    let [mut requests, mut writes, mut cpu, mut memory] = [const { Vec::new() }; 4];
    for _ in 0..site.scale.windows {
        audit.next()?;
        let (began, used) = (Instant::now(), site.leader.cpu_time()?);
        sleep(site.scale.rest).await;
        let made = audit.next()?;
        let seconds = began.elapsed().as_secs_f64();
        eprintln!("at rest: {}", summary(&made));
        let a_minute = |count: usize| count as f64 * 60.0 / seconds;
        requests.push(a_minute(made.len()));
        let written = made.iter().filter(|request| Request::is_write(request));
        writes.push(a_minute(written.count()));
        cpu.push((site.leader.cpu_time()? - used).as_secs_f64() / seconds);
        memory.push(site.leader.memory()?);
    }
    let peak = vec![site.leader.peak_memory()?];
    Ok([requests, writes, cpu, memory, peak])
}

/// Uses the first keys, and waits until their statuses show that.
async fn use_keys(site: &Site) -> Result<()> {
    let mut session = site.api.session().await?;
    for number in 0..site.scale.used {
        until_usable(&mut session, &name(number), &site.gates[..1]).await?;
    }
    wait_until("last uses in statuses", SHOWN_WITHIN, async || {
        for number in 0..site.scale.used {
            let name = name(number);
            let is_shown = session.shows_use(&name).await?;
            ensure!(is_shown, "the status of {name} shows no use");
        }
        Ok(())
    })
    .await
}

/// Stops the operator, starts another, and watches that.
pub async fn restart(site: &mut Site) -> Result<[Vec<f64>; 2]> {
    eprintln!("restarting the operator");
    site.leader.stop().await?;
    let mut audit = site.audit()?;
    site.leader = site.operator()?;
    site.leader.leads().await?;
    sleep(site.scale.restart).await;
    let requests = audit.next()?;
    let writes: Vec<_> = writes_but_renewals(&requests).collect();
    eprintln!("after the restart: {}", summary(&requests));
    for write in writes.iter().take(20) {
        eprintln!("{}", write.described());
    }
    let memory = site.leader.peak_memory()?;
    Ok([vec![writes.len() as f64], vec![memory]])
}

/// Stops the operator, empties Redis and starts another.
pub async fn start_cold(site: &mut Site) -> Result<[Vec<f64>; 2]> {
    eprintln!("starting the operator before an empty Redis");
    let [mut complete, mut memory] = [const { Vec::new() }; 2];
    for _ in 0..site.scale.rounds {
        site.leader.stop().await?;
        site.store.redis.command(&["FLUSHALL"]).await?;
        let mut audit = site.audit()?;
        let began = Instant::now();
        site.leader = site.operator()?;
        site.until_complete(site.scale.keys as u64).await?;
        complete.push(began.elapsed().as_secs_f64());
        audit.until_quiet(SETTLED_WITHIN).await?;
        memory.push(site.leader.peak_memory()?);
    }
    Ok([complete, memory])
}
