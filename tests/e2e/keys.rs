//! The life of an API key, as its owner sees it: in answers and in the events of `kubectl describe`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sha2::{Digest, Sha256};
use water_e2e::{ApiKey, Cluster};

use crate::requests::assert_problem;

const SOON: Duration = Duration::from_secs(60);

/// Returns the events about the object with this uid, one a line.
fn events(cluster: &Cluster, uid: &str) -> Result<Vec<String>> {
    let columns = "custom-columns=:.type,:.reason,:.message";
    let about = format!("involvedObject.uid={uid}");
    let events = ["get", "events", "--field-selector", &about, "-o", columns];
    let printed = cluster.kubectl.run(&events)?;
    let lines = printed.lines().map(|line| line.split_whitespace());
    let lines = lines.map(|words| words.collect::<Vec<_>>().join(" "));
    let mut lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.sort();
    Ok(lines)
}

#[tokio::test]
async fn each_change_of_a_key_is_in_its_answers_at_once_and_in_its_events() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (kubectl, name) = (&cluster.kubectl, "life");
    let text = cluster.issue(&ApiKey::named(name)).await?;
    let past = "2026-01-01T00:00:00Z";
    for (change, ready, reason, status, code) in [
        (json!({}), "True", "Active", 200, ""),
        (
            json!({ "suspend": true }),
            "True",
            "Suspended",
            401,
            "key_suspended",
        ),
        (json!({ "suspend": false }), "True", "Active", 200, ""),
        (
            json!({ "plan": "Free" }),
            "True",
            "PlanWithoutAccess",
            403,
            "plan_insufficient",
        ),
        (json!({ "plan": "Enterprise" }), "True", "Active", 200, ""),
        (
            json!({ "notBefore": "2126-01-01T00:00:00Z" }),
            "True",
            "NotYetValid",
            401,
            "key_not_yet_valid",
        ),
        (
            json!({ "notBefore": null, "expirationTime": past }),
            "False",
            "Expired",
            401,
            "key_expired",
        ),
    ] {
        kubectl.patch("apikey/life", &json!({ "spec": change }))?;
        cluster.wait_for_key(name, ready, Some(reason)).await?;
        let answer = cluster.water.get("/api/v1/stress?dept=34", &text).await?;
        match code {
            "" => assert_eq!(answer.status, status, "{change}"),
            code => assert_problem(&answer, status, code, "")?,
        }
    }
    let key = kubectl.get(&format!("apikey/{name}"))?;
    let id = key["status"]["keyId"].as_str().context("no key id")?;
    let uid = key["metadata"]["uid"].as_str().context("no uid")?;
    cluster.delete(name)?;
    let answer = cluster.water.get("/api/v1/stress", &text).await?;
    assert_problem(&answer, 401, "invalid_key", "")?;
    let expected = [
        format!("Normal KeyIssued key {id} can be used"),
        "Normal KeyPostponed the key is refused until spec.notBefore".to_owned(),
        "Normal KeyResumed the key is no longer suspended".to_owned(),
        format!("Normal KeyRevoked key {id} is refused for good"),
        "Normal KeySuspended the key is refused until it is resumed".to_owned(),
        format!("Normal PlanChanged key {id} has the plan Enterprise instead of Free"),
        format!("Normal PlanChanged key {id} has the plan Free instead of Enterprise"),
        "Warning KeyExpired the key is refused: spec.expirationTime has passed".to_owned(),
    ];
    // Events are written after the status.
    let told = async || {
        let events = events(&cluster, uid)?;
        ensure!(events == expected, "{events:#?}");
        Ok(())
    };
    cluster
        .wait_until("the events of the key's life", SOON, told)
        .await
}

/// The text never enters the cluster: only its hash does.
#[tokio::test]
async fn a_key_that_was_brought_along_works_without_a_secret() -> Result<()> {
    let cluster = Cluster::shared().await?;
    // A new text for each run: what was once revoked does not come back.
    let text = format!("brought-along-by-its-owner-{:010}", std::process::id());
    let material = json!({ "hash": { "sha256": hex::encode(Sha256::digest(&text)) } });
    let key = ApiKey::named("brought").with("material", material);
    cluster.delete("brought")?;
    cluster.kubectl.apply(&key.manifest())?;
    cluster
        .wait_for_key("brought", "True", Some("Active"))
        .await?;
    assert_eq!(
        cluster.water.get("/api/v1/stress", &text).await?.status,
        200
    );
    let secret = ["get", "secret", "brought-apikey", "--ignore-not-found"];
    assert_eq!(cluster.kubectl.run(&secret)?, "");
    Ok(())
}
