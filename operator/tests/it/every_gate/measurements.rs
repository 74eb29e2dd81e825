//! The time that a deletion takes, from the moment at which the API server has answered the request that deletes.

use std::time::Duration;

use anyhow::{bail, ensure};
use futures::future::try_join_all;
use tokio::time::{Instant, interval};
use water_domain::PlainKey;
use water_harness::HttpClient;

use super::{accepts, name, probes, with_gates};
use crate::Result;
use crate::world::World;

const KEYS: u16 = 12;
/// Interval between two requests with a deleted key.
const ASK_EVERY: Duration = Duration::from_millis(5);

#[tokio::test]
async fn a_deleted_key_is_refused_by_each_of_three_gates_within_a_second_of_the_api_servers_answer()
-> Result {
    let (world, gates, keys) = with_gates("every-gate-times", KEYS).await?;
    let mut api_server = world.cluster.proxy().connect().await?;
    let mut latencies = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let mut probes = probes(&world, &gates, key).await?;
        let path = format!(
            "/apis/waterdata.dev/v1/namespaces/{}/apikeys/{}",
            world.namespace,
            name(number)
        );
        let answer = api_server.request("DELETE", &path, &[]).await?;
        ensure!(answer.status == 200, "{answer:?}");
        let answered = Instant::now();
        let refused = probes.iter_mut().map(|probe| refused(&world, probe, key));
        let last = try_join_all(refused).await?.into_iter().max();
        latencies.push(last.unwrap_or(answered).duration_since(answered));
    }
    latencies.sort();
    println!("{KEYS} deletions: refused by three gates after {latencies:?}");
    // One of them may have waited for a busy machine, but not for long.
    let [.., almost_all, slowest] = latencies[..] else {
        bail!("{latencies:?}");
    };
    assert!(almost_all <= Duration::from_secs(1), "{latencies:?}");
    assert!(slowest <= Duration::from_secs(2), "{latencies:?}");
    Ok(())
}

/// Time at which the gate has refused the key.
async fn refused(
    world: &World,
    probe: &mut HttpClient,
    key: &PlainKey<'static>,
) -> anyhow::Result<Instant> {
    let mut pace = interval(ASK_EVERY);
    loop {
        pace.tick().await;
        if !accepts(world, probe, key).await? {
            return Ok(Instant::now());
        }
    }
}
