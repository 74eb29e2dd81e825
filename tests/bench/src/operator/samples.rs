//! Single ApiKeys, made and deleted one after the other while all others exist.

use std::time::Duration;

use anyhow::{Result, bail};
use futures::future::try_join_all;
use std::sync::Arc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::Scale;
use super::api::Session;
use super::site::Site;
use crate::gate::TARGET;
use crate::gate::process::Gate;
use crate::load::{Connection, Requests};

/// Between two questions to a gate, or to the API server.
const ASK_EVERY: Duration = Duration::from_millis(2);
/// Longer than it should ever take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Each sample's seconds.
#[derive(Default)]
pub struct Samples {
    /// From the request that makes the ApiKey until every gate has accepted its key.
    pub usable: Vec<f64>,
    /// From the request that deletes it until every gate refuses it.
    pub dead: Vec<f64>,
    /// From the API server's answer to that request, likewise.
    pub dead_after_answer: Vec<f64>,
}

/// Makes and deletes ApiKeys one after the other.
pub async fn measure(site: &Site, gates: &[Gate], scale: Scale) -> Result<Samples> {
    let mut session = site.api.session().await?;
    let mut samples = Samples::default();
    for number in 0..scale.samples {
        let name = format!("sample-{number:03}");
        let made = Instant::now();
        session.create(&name).await?;
        let key = usable(&mut session, &name, gates).await?;
        samples.usable.push(made.elapsed().as_secs_f64());
        let asked = Instant::now();
        let deleted = async {
            session.delete(&name).await?;
            Ok(Instant::now())
        };
        let (answered, dead) = tokio::try_join!(deleted, dead(gates, &key))?;
        samples.dead.push((dead - asked).as_secs_f64());
        let after = dead.saturating_duration_since(answered);
        samples.dead_after_answer.push(after.as_secs_f64());
    }
    Ok(samples)
}

/// Waits until the key can be read and every gate has accepted it. Returns its text.
pub async fn usable(session: &mut Session, name: &str, gates: &[Gate]) -> Result<Box<str>> {
    let reading = async {
        let mut pace = pace();
        loop {
            pace.tick().await;
            if let Some(text) = session.text(name).await? {
                return Ok::<_, anyhow::Error>(text);
            }
        }
    };
    let text = timeout(PATIENCE, reading).await??;
    let accepted = gates.iter().map(|gate| until(gate, &text, 200));
    try_join_all(accepted).await?;
    Ok(text)
}

/// When the last gate has refused the key.
pub async fn dead(gates: &[Gate], key: &str) -> Result<Instant> {
    let refused = gates.iter().map(|gate| until(gate, key, 401));
    let refused = try_join_all(refused).await?;
    Ok(refused.into_iter().max().unwrap_or_else(Instant::now))
}

/// Asks a gate until it answers so. 429: one wrong key of many from this client.
async fn until(gate: &Gate, key: &str, status: u16) -> Result<Instant> {
    let requests = Requests::new(TARGET, Arc::new([key.into()]));
    let mut connection = Connection::open(gate.address()).await?;
    let asking = async {
        let mut pace = pace();
        loop {
            pace.tick().await;
            match connection.exchange(&requests).await?.status {
                answered if answered == status => return Ok(Instant::now()),
                429 if status == 401 => return Ok(Instant::now()),
                200 | 401 | 429 => {}
                _ => bail!("{}", connection.answer_text()),
            }
        }
    };
    timeout(PATIENCE, asking).await?
}

fn pace() -> tokio::time::Interval {
    let mut pace = interval(ASK_EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}
