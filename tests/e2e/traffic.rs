//! The product under a steady load from many accounts, beside one that wants too much.

use std::time::Duration;

use anyhow::{Result, ensure};
use water_e2e::{ApiKey, Cluster, load};

/// All four, in turn.
pub const TARGETS: [&str; 4] = [
    "/api/v1/stress",
    "/api/v1/risque",
    "/api/v1/hydrorisk",
    "/api/v1/conformite",
];
const MINUTE: Duration = Duration::from_secs(60);
/// Longer than a minute, so that a window that slides and one that is reset differ.
const GREEDY_TIME: Duration = Duration::from_secs(75);

/// 300 accounts, each at 100 requests a minute, below its limit of 120: 500 a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_under_the_limit_is_refused_beside_one_who_gets_exactly_120_a_minute() -> Result<()>
{
    let cluster = Cluster::alone().await?;
    let keys = cluster.keys_of_accounts("steady", 300).await?;
    let account = format!("greedy-{}", std::process::id());
    let greedy = cluster
        .issue(&ApiKey::named("greedy").of_account(&account))
        .await?;
    let steady = load::Load::evenly(&cluster.water, 500, keys, &TARGETS);
    let greedy = load::Load {
        expected: Some(429),
        ..load::Load::evenly(
            &cluster.water,
            50,
            vec![greedy],
            &["/api/v1/stress?dept=34"],
        )
    };
    let (steady, greedy) = tokio::join!(
        load::send_for(steady, MINUTE),
        load::send_for(greedy, GREEDY_TIME)
    );
    let (steady, greedy) = (steady?, greedy?);
    println!("500/s from 300 accounts: {steady}");
    println!("one account at 50/s beside them: {greedy}");
    steady.without_failures()?;
    greedy.without_failures()?;
    // 120 at once, then 120 as those leave the window: one at 50/s takes 2.4 s for either.
    assert_eq!(greedy.ok, 240, "{greedy}");
    let overfull = greedy.overfull(120, MINUTE);
    ensure!(overfull.is_none(), "121 were accepted within {overfull:?}");
    Ok(())
}
