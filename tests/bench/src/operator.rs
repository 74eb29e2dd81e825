//! The operator with many ApiKeys: a real etcd, kube-apiserver and Redis, three real gates, and the operator's
//! own binary with the chart's rights. There is no node: Deployments get no pods, and the gates' pods are
//! objects that this program makes.

mod all;
mod api;
mod audit;
mod life;
mod process;
mod quiet;
mod single;
mod site;

use std::time::Duration;

use anyhow::Result;

use crate::report::Report;
use life::Life;
use site::Site;

/// Sizes of a measurement.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// ApiKeys that exist.
    keys: usize,
    /// Requests to the API server under way when all ApiKeys are changed.
    connections: usize,
    /// ApiKeys that are made and deleted one by one in addition to them.
    samples: usize,
    /// ApiKeys that are used before the operator is restarted.
    used: usize,
    /// Time without a write after which the operator is at rest.
    quiet: Duration,
    /// Time for which the operator is watched at rest, and the number of times.
    rest: Duration,
    windows: usize,
    /// Time for which the operator is watched after a restart: through a sweep and a look for last uses.
    restart: Duration,
    /// Cold starts, and changes of leader of each kind.
    rounds: usize,
}

const MANY: Scale = Scale {
    keys: 10_000,
    connections: 32,
    samples: 200,
    used: 50,
    quiet: Duration::from_secs(5),
    rest: Duration::from_secs(60),
    windows: 3,
    restart: Duration::from_secs(90),
    rounds: 3,
};

/// Growth is measured from here.
const FEW: Scale = Scale {
    keys: 100,
    samples: 50,
    used: 10,
    windows: 1,
    rounds: 1,
    ..MANY
};

const SMOKE: Scale = Scale {
    keys: 20,
    connections: 4,
    samples: 2,
    used: 0,
    quiet: Duration::from_secs(1),
    rest: Duration::from_secs(1),
    restart: Duration::from_secs(1),
    ..FEW
};

/// Measures the operator with `keys` ApiKeys and with few.
pub async fn measure(smoke: bool, keys: usize) -> Result<Report> {
    if smoke {
        let life = live(SMOKE).await?;
        return report(&life, &life);
    }
    let many = live(Scale { keys, ..MANY }).await?;
    // The others take minutes.
    eprintln!("{}", Report::new(many.judged(), &[])?);
    report(&many, &live(FEW).await?)
}

fn report(many: &Life, few: &Life) -> Result<Report> {
    let rows = [
        many.judged(),
        many.growth_from(few),
        many.explained(),
        few.explained(),
    ];
    let versions = [("kubernetes", many.kubernetes.clone())];
    Report::new(rows.into_iter().flatten().collect(), &versions)
}

/// Measures so many ApiKeys from the first to the last. A failure makes its own rows doubtful; the others are
/// still reported.
async fn live(scale: Scale) -> Result<Life> {
    let mut site = Site::start(scale).await?;
    let mut life = Life::new(scale.keys, site.api.version().await?);
    life.add(all::ISSUANCE, all::issue(&site).await);
    life.add(single::SAMPLES, single::sample(&site).await);
    life.add(quiet::REST, quiet::rest(&site).await);
    life.add(quiet::RESTART, quiet::restart(&mut site).await);
    life.add(quiet::COLD_START, quiet::start_cold(&mut site).await);
    life.add(single::FAILOVER, single::change_leaders(&mut site).await);
    life.add(all::ROTATION, all::rotate(&site).await);
    life.add(all::DELETION, all::delete(&site).await);
    Ok(life)
}
