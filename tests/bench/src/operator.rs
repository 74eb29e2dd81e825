//! The operator with many ApiKeys: a real etcd, kube-apiserver and Redis, three real gates, and the
//! operator's own binary with the chart's rights. There is no node: Deployments get no pods, and the
//! gates' pods are objects that this program makes.

pub mod api;
mod audit;
mod cold_start;
mod deletion;
mod failover;
mod issuance;
mod process;
mod rest;
mod restart;
mod rotation;
mod rows;
mod samples;
mod site;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::report::{Report, Row};
use rows::Measured;
use site::Site;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// ApiKeys that exist.
    keys: usize,
    /// Requests to the API server under way when all ApiKeys are changed.
    connections: usize,
    /// ApiKeys that are made and deleted one by one beside them.
    samples: usize,
    /// ApiKeys that are used before the operator is restarted.
    used: usize,
    /// How long the operator is watched at rest, and how often.
    rest: Duration,
    windows: usize,
    /// How long the operator is watched after a restart.
    restart: Duration,
    /// Cold starts, and changes of leader of each kind.
    rounds: usize,
}

impl Scale {
    /// A restart is watched through a sweep and a look for last uses.
    fn of(keys: usize) -> Self {
        Self {
            keys,
            connections: 32,
            samples: 200,
            used: 50,
            rest: Duration::from_secs(60),
            windows: 3,
            restart: Duration::from_secs(90),
            rounds: 3,
        }
    }

    /// What grows is compared with this.
    fn few() -> Self {
        Self {
            samples: 50,
            used: 10,
            windows: 1,
            rounds: 1,
            ..Self::of(100)
        }
    }
}

const SMOKE: Scale = Scale {
    keys: 20,
    connections: 4,
    samples: 2,
    used: 0,
    rest: Duration::from_secs(3),
    windows: 1,
    restart: Duration::from_secs(3),
    rounds: 1,
};

/// Proves that everything runs and is answered right.
pub async fn smoke() -> Result<()> {
    let measured = at(SMOKE).await?;
    let rows = rows::of(&measured);
    let doubts: Vec<&str> = rows.iter().filter_map(Row::doubt).collect();
    ensure!(doubts.is_empty(), "{}", doubts.join("\n"));
    println!("everything that the operator is measured with runs and answers right");
    Ok(())
}

/// Measures the operator with few ApiKeys and with `keys`.
pub async fn measure(keys: usize) -> Result<Report> {
    let many = at(Scale::of(keys)).await?;
    // What comes now takes minutes.
    eprintln!("{}", Report::new(rows::judged(&many))?);
    let few = at(Scale::few()).await?;
    let rows = [rows::judged(&many), rows::growth(&few, &many)];
    let said = [rows::of(&many), rows::of(&few)];
    let rows = rows.into_iter().chain(said).flatten().collect();
    let versions = BTreeMap::from([("kubernetes", many.kubernetes)]);
    Ok(Report::new(rows)?.with_versions(versions))
}

/// The life of so many ApiKeys, from the first to the last. What fails makes its own rows doubtful; the
/// others are still told.
async fn at(scale: Scale) -> Result<Measured> {
    eprintln!("starting the servers for {} ApiKeys", scale.keys);
    let site = Site::start().await?;
    let mut leader = site.operator()?;
    let gates = site.gates().await?;
    eprintln!("issuing {} keys", scale.keys);
    let issuance = issuance::measure(&site, &leader, scale).await;
    eprintln!("making and deleting {} more, one by one", scale.samples);
    let samples = samples::measure(&site, &gates, scale).await;
    eprintln!("watching the operator at rest");
    let rest = rest::measure(&site, &gates, &leader, scale).await;
    eprintln!("restarting the operator");
    let restart = restart::measure(&site, &mut leader, scale).await;
    eprintln!("starting the operator before an empty Redis");
    let cold_start = cold_start::measure(&site, &mut leader, scale).await;
    eprintln!("killing and stopping leaders");
    let failover = failover::measure(&site, &gates, &mut leader, scale).await;
    eprintln!("rotating all keys");
    let rotation = rotation::measure(&site, &gates, &leader, scale).await;
    eprintln!("deleting all ApiKeys");
    let deletion = deletion::measure(&site, &gates, &leader, scale).await;
    Ok(Measured {
        keys: scale.keys,
        kubernetes: site.api.version().await?,
        issuance,
        samples,
        rest,
        restart,
        cold_start,
        failover,
        rotation,
        deletion,
    })
}
