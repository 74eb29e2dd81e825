//! All ApiKeys deleted at once, each by a request of its own that waits for nothing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;
use water_harness::wait_until;

use super::Scale;
use super::api::Session;
use super::issuance::name;
use super::process::Operator;
use super::samples::dead;
use super::site::Site;
use crate::gate::TARGET;
use crate::gate::process::Gate;
use crate::load::{Connection, Requests};

/// Longer than it should ever take.
const PATIENCE: Duration = Duration::from_secs(900);
/// Keys that every gate is asked about before the time is taken.
const ASKED: usize = 50;

/// What it took.
pub struct Deletion {
    /// All were asked for, in seconds from the first request.
    pub requested: f64,
    /// Every gate refused every key, in seconds from the answer to the last request.
    pub dead: f64,
    /// No ApiKey was left, likewise.
    pub gone: f64,
    /// The operator's peak memory, in MiB.
    pub memory: f64,
}

/// Deletes all ApiKeys, and asks for every key afterwards.
pub async fn measure(
    site: &Site,
    gates: &[Gate],
    operator: &Operator,
    scale: Scale,
) -> Result<Deletion> {
    let texts = site.api.texts().await?;
    let directory = site.directory()?;
    let began = Instant::now();
    let delete = async |session: &mut Session, number: usize| session.delete(&name(number)).await;
    site.api.each(scale.connections, scale.keys, delete).await?;
    let requested = began.elapsed().as_secs_f64();
    let answered = Instant::now();
    wait_until("an empty key directory", PATIENCE, async || {
        let meta = directory.observe().await?.meta.context("no directory")?;
        ensure!(meta.complete && meta.counts.records == 0, "{meta:?}");
        Ok(())
    })
    .await?;
    let named = (0..scale.keys).map(|number| texts.get(&name(number)));
    let named: Vec<&str> = named.flatten().map(|text| &**text).collect();
    ensure!(named.len() == scale.keys, "{} Secrets", named.len());
    for key in named.iter().rev().take(ASKED) {
        dead(gates, key).await?;
    }
    let dead = answered.elapsed().as_secs_f64();
    for gate in gates {
        all_refused(gate, &named).await?;
    }
    wait_until("the end of all ApiKeys", PATIENCE, async || {
        let left = site.api.count().await?;
        ensure!(left == 0, "{left} are left");
        Ok(())
    })
    .await
    .with_context(|| operator.log_end())?;
    Ok(Deletion {
        requested,
        dead,
        gone: answered.elapsed().as_secs_f64(),
        memory: operator.peak_memory()?,
    })
}

/// 429: one wrong key of many from this client.
async fn all_refused(gate: &Gate, keys: &[&str]) -> Result<()> {
    let texts = keys.iter().map(|key| Box::from(*key));
    let requests = Requests::new(TARGET, texts.collect::<Arc<[Box<str>]>>());
    let mut connection = Connection::open(gate.address()).await?;
    for _ in keys {
        let status = connection.exchange(&requests).await?.status;
        ensure!(
            [401, 429].contains(&status),
            "a deleted key is answered {}",
            connection.answer_text()
        );
    }
    Ok(())
}
