//! A restart that finds everything as it was left.

use anyhow::Result;
use tokio::time::sleep;

use super::Scale;
use super::audit::summary;
use super::process::Operator;
use super::site::Site;

/// What the next operator did.
pub struct Restart {
    /// Its writes to the API server, but for its Lease.
    pub writes: f64,
    /// Its peak memory, in MiB.
    pub memory: f64,
}

/// Stops the operator, starts another, and watches that.
pub async fn measure(site: &Site, leader: &mut Operator, scale: Scale) -> Result<Restart> {
    leader.stop().await?;
    let mut audit = site.audit()?;
    *leader = site.operator()?;
    leader.leads().await?;
    sleep(scale.restart).await;
    let requests = audit.next()?;
    let writes = requests
        .iter()
        .filter(|request| request.is_write() && !request.is_of_lease());
    let writes: Vec<_> = writes.collect();
    eprintln!("after the restart: {}", summary(&requests));
    for write in writes.iter().take(20) {
        eprintln!("{} {} {}", write.verb, write.resource, write.name);
    }
    Ok(Restart {
        writes: writes.len() as f64,
        memory: leader.peak_memory()?,
    })
}
