//! All keys rotated at once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;
use tokio::try_join;

use super::Scale;
use super::api::Session;
use super::issuance::name;
use super::process::Operator;
use super::samples::usable;
use super::site::Site;
use crate::gate::TARGET;
use crate::gate::process::Gate;
use crate::load::{Connection, Requests};
use std::sync::Arc;

/// Longer than it should ever take.
const PATIENCE: Duration = Duration::from_secs(900);
/// Keys that are tried afterwards.
const TRIED: usize = 50;

/// What it took.
pub struct Rotation {
    /// All were asked for, in seconds from the first request.
    pub requested: f64,
    /// The last new key could be read, likewise.
    pub rotated: f64,
    /// The operator's peak memory, in MiB.
    pub memory: f64,
}

/// Asks for another key of every ApiKey, and tries some old and new ones.
pub async fn measure(
    site: &Site,
    gates: &[Gate],
    operator: &Operator,
    scale: Scale,
) -> Result<Rotation> {
    let before = site.api.texts().await?;
    let mut audit = site.audit()?;
    let began = Instant::now();
    let requested = async {
        let rotate =
            async |session: &mut Session, number: usize| session.rotate(&name(number)).await;
        site.api.each(scale.connections, scale.keys, rotate).await?;
        Ok::<_, anyhow::Error>(began.elapsed().as_secs_f64())
    };
    let rotated = async {
        audit
            .until_written("patch", "secrets", scale.keys, PATIENCE)
            .await?;
        Ok(began.elapsed().as_secs_f64())
    };
    let (requested, rotated) = try_join!(requested, rotated)?;
    audit.until_quiet(PATIENCE).await?;
    let mut session = site.api.session().await?;
    for number in 0..TRIED.min(scale.keys) {
        let name = name(number);
        let (new, old) = (
            usable(&mut session, &name, gates).await?,
            before.get(&name).context("a key before the rotation")?,
        );
        ensure!(new != *old, "{name} has its old key");
        ensure!(
            works(&gates[0], old).await?,
            "{name}: the overlap is not kept"
        );
    }
    Ok(Rotation {
        requested,
        rotated,
        memory: operator.peak_memory()?,
    })
}

async fn works(gate: &Gate, key: &str) -> Result<bool> {
    let requests = Requests::new(TARGET, Arc::new([key.into()]));
    let mut connection = Connection::open(gate.address()).await?;
    Ok(connection.exchange(&requests).await?.status == 200)
}
