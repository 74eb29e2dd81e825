//! The first issuance of all keys.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;
use tokio::try_join;

use super::Scale;
use super::process::Operator;
use super::site::Site;

/// Longer than it should ever take.
const PATIENCE: Duration = Duration::from_secs(900);

/// What it took.
pub struct Issuance {
    /// All ApiKeys were made, in seconds from the first request.
    pub requested: f64,
    /// The last key could be read, likewise. It is in force before that.
    pub issued: f64,
    /// The operator's peak memory, in MiB.
    pub memory: f64,
}

/// Makes all ApiKeys at once.
pub async fn measure(site: &Site, operator: &Operator, scale: Scale) -> Result<Issuance> {
    let mut audit = site.audit()?;
    let began = Instant::now();
    let requested = async {
        let create = async |session: &mut super::api::Session, number: usize| {
            session.create(&name(number)).await
        };
        site.api.each(scale.connections, scale.keys, create).await?;
        Ok::<_, anyhow::Error>(began.elapsed().as_secs_f64())
    };
    let issued = async {
        audit
            .until_written("create", "secrets", scale.keys, PATIENCE)
            .await?;
        Ok(began.elapsed().as_secs_f64())
    };
    let (requested, issued) = try_join!(requested, issued)?;
    audit.until_quiet(PATIENCE).await?;
    Ok(Issuance {
        requested,
        issued,
        memory: operator.peak_memory()?,
    })
}

/// The name of an ApiKey, and of its account.
pub fn name(number: usize) -> String {
    format!("key-{number:05}")
}
