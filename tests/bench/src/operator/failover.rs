//! A change of leader: how soon another operator acts, shown by a key that was asked for when the
//! leader ended.

use anyhow::Result;
use tokio::time::Instant;

use super::Scale;
use super::process::Operator;
use super::samples::usable;
use super::site::Site;
use crate::gate::process::Gate;

/// One value for each change, in seconds.
#[derive(Default)]
pub struct Failover {
    /// From the leader's kill until the key can be used.
    pub killed: Vec<f64>,
    /// From the moment that the leader was asked to stop, likewise.
    pub stopped: Vec<f64>,
}

/// Ends leaders beside which another operator is ready.
pub async fn measure(
    site: &Site,
    gates: &[Gate],
    leader: &mut Operator,
    scale: Scale,
) -> Result<Failover> {
    let mut failover = Failover::default();
    for number in 0..scale.rounds {
        let killed = change(site, gates, leader, &format!("killed-{number}"), true).await?;
        failover.killed.push(killed);
        let stopped = change(site, gates, leader, &format!("stopped-{number}"), false).await?;
        failover.stopped.push(stopped);
    }
    Ok(failover)
}

async fn change(
    site: &Site,
    gates: &[Gate],
    leader: &mut Operator,
    name: &str,
    is_killed: bool,
) -> Result<f64> {
    let standby = site.operator()?;
    standby.stands_by().await?;
    let mut session = site.api.session().await?;
    let ended = Instant::now();
    let ending = async {
        if is_killed {
            leader.kill()
        } else {
            leader.stop().await
        }
    };
    let acted = async {
        session.create(name).await?;
        usable(&mut session, name, gates).await?;
        Ok(ended.elapsed().as_secs_f64())
    };
    let ((), acted) = tokio::try_join!(ending, acted)?;
    session.delete(name).await?;
    *leader = standby;
    Ok(acted)
}
