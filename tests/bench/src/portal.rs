//! The portal: its pages and sessions beside nginx, its list of keys beside the API server's own, and the
//! memory that people who are signed in take.

mod asker;
mod cluster;
mod listing;
mod pages;
mod people;
mod scale;
mod site;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::report::{Report, Row, Target};
use crate::spread::Spread;
use scale::{FULL, SMOKE, Scale};
use site::Site;

/// Proves that everything runs and is answered right.
pub async fn smoke() -> Result<()> {
    let (rows, _) = compare(SMOKE).await?;
    let doubts: Vec<&str> = rows.iter().filter_map(Row::doubt).collect();
    ensure!(doubts.is_empty(), "{}", doubts.join("\n"));
    println!("the portal answers as nginx and lists the keys that the API server has");
    Ok(())
}

/// Measures everything.
pub async fn measure() -> Result<Report> {
    let (rows, kubernetes) = compare(FULL).await?;
    let versions = BTreeMap::from([("kubernetes", kubernetes)]);
    Ok(Report::new(rows)?.with_versions(versions))
}

async fn compare(scale: Scale) -> Result<(Vec<Row>, String)> {
    let site = Site::start(scale).await?;
    let (cookies, mut rows) = sessions(&site, scale).await?;
    let others = [
        listing::measure(&site, &cookies, scale).await?,
        pages::measure(&site, &cookies, scale).await?,
    ];
    rows.extend(others.into_iter().flatten());
    rows.push(said(
        "memory of a replica after all that was measured",
        "MiB",
        site.memory()?,
    ));
    Ok((rows, site.cluster.version))
}

/// Signs people in, each of whom looks at the keys once, and reads what that has taken.
async fn sessions(site: &Site, scale: Scale) -> Result<(Vec<String>, Vec<Row>)> {
    let empty = site.memory()?;
    let stored = site.redis_memory().await?;
    eprintln!("signing in {} people", scale.people);
    let cookies = people::sign_in(site, scale.people).await?;
    let keys = format!("/account/v1/accounts/{}/keys", cluster::ACCOUNT);
    for cookie in &cookies {
        site.body(&keys, &[("Cookie", cookie)]).await?;
    }
    let stored = (site.redis_memory().await? - stored) / scale.people as f64;
    let rows = vec![
        Row::judged(
            format!("memory of a replica with {} sessions", scale.people),
            "MiB",
            Spread::of([site.memory()?]),
            Target::AtMost(48.0),
        ),
        said("memory of a replica without sessions", "MiB", empty),
        said("memory of Redis for a session", "KiB", stored / 1024.0),
    ];
    Ok((cookies, rows))
}

fn said(name: &str, unit: &'static str, value: f64) -> Row {
    Row::said(name, unit, Spread::of([value]))
}
