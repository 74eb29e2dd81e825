//! Reports of the installation about signing in.

use std::time::Duration;

use anyhow::{Result, ensure};
use water_e2e::Cluster;

#[tokio::test]
async fn the_installation_says_that_people_can_sign_in() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let told = async || {
        let api = cluster.api()?;
        let conditions = api["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let sign_in = conditions.find(|condition| condition["type"] == "SignInReady");
        let sign_in = sign_in.map(|condition| (&condition["status"], &condition["reason"]));
        ensure!(
            sign_in.is_some_and(|(status, reason)| status == "True" && reason == "ProviderUsable"),
            "{api}"
        );
        Ok(())
    };
    // The operator asks every ten seconds.
    cluster
        .wait_until("SignInReady", Duration::from_secs(60), told)
        .await
}
