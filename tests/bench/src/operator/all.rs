//! Changes of all ApiKeys at once: their first issuance, a rotation, and their deletion.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;
use tokio::try_join;
use water_harness::wait_until;

use super::api::{Session, name};
use super::life::Name;
use super::single::{until_dead, until_usable};
use super::site::Site;
use crate::load::{Connection, Requests};

/// Longer than any of them should ever take.
const PATIENCE: Duration = Duration::from_secs(900);
/// Keys that gates are asked about afterwards one by one.
const ASKED: usize = 50;

/// Times in seconds from the first request.
pub const ISSUANCE: [Name; 3] = [
    ("created, all requests answered", "s"),
    // It is in force before that.
    ("first issuance, the last key readable", "s"),
    ("first issuance, peak memory", "MiB"),
];

/// Times in seconds from the first request.
pub const ROTATION: [Name; 3] = [
    ("rotated, all requests answered", "s"),
    ("rotated, the last new key readable", "s"),
    ("rotated, peak memory", "MiB"),
];

/// Times in seconds from the first request, and from the answer to the last one.
pub const DELETION: [Name; 4] = [
    ("deleted, all requests answered", "s"),
    ("deleted, the last dead after the last request", "s"),
    ("deleted, no ApiKey left after the last request", "s"),
    ("deleted, peak memory", "MiB"),
];

/// Makes all ApiKeys.
pub async fn issue(site: &Site) -> Result<[Vec<f64>; 3]> {
    let create = async |session: &mut Session, number: usize| session.create(&name(number)).await;
    change(site, "issuing", "create secrets", create).await
}

/// Asks for a new key of every ApiKey, and tries some old and new ones.
pub async fn rotate(site: &Site) -> Result<[Vec<f64>; 3]> {
    let before = site.api.texts().await?;
    let rotate = async |session: &mut Session, number: usize| session.rotate(&name(number)).await;
    let figures = change(site, "rotating", "patch secrets", rotate).await?;
    let mut session = site.api.session().await?;
    let mut gate = Connection::open(site.gates[0].address()).await?;
    for number in 0..ASKED.min(site.scale.keys) {
        let name = name(number);
        let new = until_usable(&mut session, &name, &site.gates).await?;
        let old = before.get(&name).context("a key before the rotation")?;
        ensure!(new != *old, "{name} has its old key");
        let status = gate.status(old).await?;
        ensure!(status == 200, "{name}: the overlap is not kept");
    }
    Ok(figures)
}

/// Sends one request for each ApiKey, and waits until the operator has written each Secret.
async fn change(
    site: &Site,
    doing: &str,
    write: &str,
    request: impl AsyncFn(&mut Session, usize) -> Result<()>,
) -> Result<[Vec<f64>; 3]> {
    let keys = site.scale.keys;
    eprintln!("{doing} {keys} keys");
    let mut audit = site.audit()?;
    let began = Instant::now();
    let seconds = || began.elapsed().as_secs_f64();
    let requested = async {
        site.api.each(site.scale.connections, keys, request).await?;
        Ok::<_, anyhow::Error>(seconds())
    };
    let written = async {
        audit.until_written(write, keys, PATIENCE).await?;
        Ok(seconds())
    };
    let (requested, written) = try_join!(requested, written)?;
    audit.until_quiet(PATIENCE).await?;
    let memory = site.leader.peak_memory()?;
    Ok([vec![requested], vec![written], vec![memory]])
}

/// Deletes all ApiKeys, each by a separate request that waits for nothing, and asks for every key afterwards.
pub async fn delete(site: &Site) -> Result<[Vec<f64>; 4]> {
    let keys = site.scale.keys;
    eprintln!("deleting {keys} ApiKeys");
    let texts = site.api.texts().await?;
    let texts = (0..keys).filter_map(|number| texts.get(&name(number)).cloned());
    let texts: Vec<Box<str>> = texts.collect();
    ensure!(texts.len() == keys, "{} Secrets", texts.len());
    let directory = site.directory()?;
    let began = Instant::now();
    let delete = async |session: &mut Session, number: usize| session.delete(&name(number)).await;
    site.api.each(site.scale.connections, keys, delete).await?;
    let requested = began.elapsed().as_secs_f64();
    let answered = Instant::now();
    wait_until("an empty key directory", PATIENCE, async || {
        let meta = directory.observe().await?.meta.context("no directory")?;
        ensure!(meta.complete && meta.counts.records == 0, "{meta:?}");
        Ok(())
    })
    .await?;
    for key in texts.iter().rev().take(ASKED) {
        until_dead(&site.gates, key).await?;
    }
    let dead = answered.elapsed().as_secs_f64();
    let requests = Requests::with_keys(&texts.into());
    for gate in &site.gates {
        let mut gate = Connection::open(gate.address()).await?;
        for _ in 0..keys {
            let (status, _) = gate.exchange(&requests).await?;
            // 429: one wrong key of many from this client.
            let is_refused = [401, 429].contains(&status);
            ensure!(is_refused, "a deleted key: {}", gate.answer_text());
        }
    }
    wait_until("the end of all ApiKeys", PATIENCE, async || {
        let left = site.api.count().await?;
        ensure!(left == 0, "{left} are left");
        Ok(())
    })
    .await
    .with_context(|| site.leader.log_end())?;
    let gone = answered.elapsed().as_secs_f64();
    let memory = site.leader.peak_memory()?;
    Ok([vec![requested], vec![dead], vec![gone], vec![memory]])
}
