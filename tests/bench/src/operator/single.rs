//! Single ApiKeys, made and deleted one after the other while all others exist, and while leaders change.

use std::time::Duration;

use anyhow::{Result, bail};
use futures::future::try_join_all;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout};
use tokio::try_join;

use super::api::Session;
use super::life::Name;
use super::site::Site;
use crate::load::Connection;
use crate::programs::Server;

/// Time between two questions to a gate, or to the API server.
const ASK_EVERY: Duration = Duration::from_millis(2);
/// Longer than it should ever take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Seconds of each sample: from the request that makes the ApiKey until every gate has accepted its key, from
/// the request that deletes it until every gate refuses it, and from the answer to that request.
pub const SAMPLES: [Name; 3] = [
    ("create to usable at three gates", "s"),
    ("delete to dead at three gates", "s"),
    (
        "the API server's answer to a deletion to dead at three gates",
        "s",
    ),
];

/// Seconds of each change, from the leader's kill or from the moment that it was asked to stop, until a key can
/// be used that was asked for then.
pub const FAILOVER: [Name; 2] = [
    ("leader killed, until another acts", "s"),
    ("leader asked to stop, until another acts", "s"),
];

/// Makes and deletes ApiKeys one after the other.
pub async fn sample(site: &Site) -> Result<[Vec<f64>; 3]> {
    let count = site.scale.samples;
    eprintln!("making and deleting {count} more keys, one by one");
    let mut session = site.api.session().await?;
    let [mut usable, mut dead, mut dead_after_answer] = [const { Vec::new() }; 3];
    for number in 0..count {
        let name = format!("sample-{number:03}");
        let made = Instant::now();
        session.create(&name).await?;
        let key = until_usable(&mut session, &name, &site.gates).await?;
        usable.push(made.elapsed().as_secs_f64());
        let asked = Instant::now();
        let deleted = async {
            session.delete(&name).await?;
            Ok(Instant::now())
        };
        let (answered, refused) = try_join!(deleted, until_dead(&site.gates, &key))?;
        dead.push((refused - asked).as_secs_f64());
        let after = refused.saturating_duration_since(answered);
        dead_after_answer.push(after.as_secs_f64());
    }
    Ok([usable, dead, dead_after_answer])
}

/// Ends leaders while another operator is ready.
pub async fn change_leaders(site: &mut Site) -> Result<[Vec<f64>; 2]> {
    eprintln!("killing and stopping leaders");
    let [mut killed, mut stopped] = [const { Vec::new() }; 2];
    for number in 0..site.scale.rounds {
        killed.push(change(site, &format!("killed-{number}"), true).await?);
        stopped.push(change(site, &format!("stopped-{number}"), false).await?);
    }
    Ok([killed, stopped])
}

async fn change(site: &mut Site, name: &str, is_killed: bool) -> Result<f64> {
    let standby = site.operator()?;
    standby.stands_by().await?;
    let mut session = site.api.session().await?;
    let ended = Instant::now();
    let ending = async {
        if is_killed {
            site.leader.kill()
        } else {
            site.leader.stop().await
        }
    };
    let acted = async {
        session.create(name).await?;
        until_usable(&mut session, name, &site.gates).await?;
        Ok(ended.elapsed().as_secs_f64())
    };
    let ((), acted) = try_join!(ending, acted)?;
    session.delete(name).await?;
    site.leader = standby;
    Ok(acted)
}

/// Waits until the key can be read and every gate has accepted it. Returns its text.
pub async fn until_usable(session: &mut Session, name: &str, gates: &[Server]) -> Result<Box<str>> {
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
    try_join_all(gates.iter().map(|gate| until(gate, &text, 200))).await?;
    Ok(text)
}

/// Waits until every gate refuses the key. Returns the moment of the last one.
pub async fn until_dead(gates: &[Server], key: &str) -> Result<Instant> {
    let refused = gates.iter().map(|gate| until(gate, key, 401));
    let refused = try_join_all(refused).await?;
    Ok(refused.into_iter().max().unwrap_or_else(Instant::now))
}

/// Asks a gate until it answers so. 429: one wrong key of many from this client.
async fn until(gate: &Server, key: &str, status: u16) -> Result<Instant> {
    let mut connection = Connection::open(gate.address()).await?;
    let asking = async {
        let mut pace = pace();
        loop {
            pace.tick().await;
            match connection.status(key).await? {
                answered if answered == status => return Ok(Instant::now()),
                429 if status == 401 => return Ok(Instant::now()),
                200 | 401 | 429 => {}
                _ => bail!("{}", connection.answer_text()),
            }
        }
    };
    timeout(PATIENCE, asking).await?
}

fn pace() -> Interval {
    let mut pace = interval(ASK_EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}
