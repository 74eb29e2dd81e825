//! The life of an API key, as its owner sees it: in answers, in `kubectl get`
//! and in the events of `kubectl describe`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sha2::{Digest, Sha256};
use water_e2e::{
    ApiKey, Cluster,
    golden::{assert_golden, table},
};

const SOON: Duration = Duration::from_secs(60);

async fn status(cluster: &Cluster, key: &str) -> Result<u16> {
    Ok(cluster
        .water
        .get("/api/v1/stress?dept=34", key)
        .await?
        .status)
}

#[tokio::test]
async fn a_key_is_issued_used_suspended_resumed_and_deleted() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (kubectl, name) = (&cluster.kubectl, "life");
    let key = cluster.issue(&ApiKey::named(name)).await?;
    assert_eq!(status(&cluster, &key).await?, 200, "issued");
    kubectl.patch("apikey/life", &json!({ "spec": { "suspend": true } }))?;
    cluster
        .wait_for_key(name, "True", Some("Suspended"))
        .await?;
    assert_eq!(status(&cluster, &key).await?, 401, "suspended");
    kubectl.patch("apikey/life", &json!({ "spec": { "suspend": false } }))?;
    cluster.wait_for_key(name, "True", Some("Active")).await?;
    assert_eq!(status(&cluster, &key).await?, 200, "resumed");
    cluster.delete(name)?;
    assert_eq!(status(&cluster, &key).await?, 401, "deleted");
    Ok(())
}

#[tokio::test]
async fn a_key_follows_its_plan() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster
        .issue(&ApiKey::named("plan-change").on_plan("Free"))
        .await?;
    assert_eq!(status(&cluster, &key).await?, 403);
    cluster.kubectl.patch(
        "apikey/plan-change",
        &json!({ "spec": { "plan": "Enterprise" } }),
    )?;
    cluster
        .wait_for_key("plan-change", "True", Some("Active"))
        .await?;
    assert_eq!(status(&cluster, &key).await?, 200);
    Ok(())
}

/// The text never enters the cluster: only its hash does.
#[tokio::test]
async fn a_key_that_was_brought_along_works_without_a_secret() -> Result<()> {
    let cluster = Cluster::shared().await?;
    // A new text for each run: what was once revoked does not come back.
    let text = format!("brought-along-by-its-owner-{:010}", std::process::id());
    let hash = hex::encode(Sha256::digest(&text));
    let material = json!({ "hash": { "sha256": hash } });
    let key = ApiKey::named("brought").with("material", material);
    cluster.delete("brought")?;
    cluster.kubectl.apply(&key.manifest())?;
    cluster
        .wait_for_key("brought", "True", Some("Active"))
        .await?;
    assert_eq!(status(&cluster, &text).await?, 200);
    let secrets =
        cluster
            .kubectl
            .run(&["get", "secret", "brought-apikey", "--ignore-not-found"])?;
    assert_eq!(secrets, "");
    Ok(())
}

#[tokio::test]
async fn the_secret_says_where_the_key_is_used() -> Result<()> {
    let cluster = Cluster::shared().await?;
    cluster.issue(&ApiKey::named("secret-keys")).await?;
    let secret = cluster.kubectl.get(&["secret", "secret-keys-apikey"])?;
    let data = secret["data"].as_object().context("data")?;
    assert_eq!(
        data.keys().collect::<Vec<_>>(),
        ["api-key", "base-url", "key-id"]
    );
    Ok(())
}

#[tokio::test]
async fn kubectl_lists_keys_and_apis_as_in_the_golden_file() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let expiring = ApiKey::named("golden-list").with("expirationTime", "2126-01-01T00:00:00Z");
    cluster.issue(&expiring.of_account("acme")).await?;
    let objects = ["get", "apikey/golden-list", "waterdataapi/water-data"];
    let printed = cluster.kubectl.run(&objects)?;
    let changing = ["KEY-ID", "AGE", "LAST-USED", "VERSION", "KEYS"];
    assert_golden("get.txt", &table(&printed, &changing))
}

/// What `kubectl describe` shows below `Events:`, without ages, followed by what was written at its end.
#[tokio::test]
async fn the_events_of_a_keys_life_are_those_of_the_golden_file() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (kubectl, name) = (&cluster.kubectl, "golden-events");
    cluster.delete(name)?;
    kubectl.run(&[
        "delete",
        "events",
        "--field-selector",
        "involvedObject.name=golden-events",
    ])?;
    cluster.issue(&ApiKey::named(name)).await?;
    for (suspend, reason) in [(true, "Suspended"), (false, "Active")] {
        kubectl.patch(
            "apikey/golden-events",
            &json!({ "spec": { "suspend": suspend } }),
        )?;
        cluster.wait_for_key(name, "True", Some(reason)).await?;
    }
    let described = described_events(&cluster, name, "KeyResumed").await?;
    let key = kubectl.get(&["apikey", name])?;
    let key_id = key["status"]["keyId"].as_str().context("no key id")?;
    cluster.delete(name)?;
    let revoked = cluster
        .wait_until("the event of the key's end", SOON, async || {
            let selector = "involvedObject.name=golden-events,reason=KeyRevoked";
            let columns = "custom-columns=Type:.type,Reason:.reason,Message:.message";
            let events =
                kubectl.run(&["get", "events", "--field-selector", selector, "-o", columns])?;
            ensure!(events.contains("KeyRevoked"), "{events}");
            Ok(events)
        })
        .await?;
    let events = format!(
        "{described}\n\nafter kubectl delete:\n{}",
        table(&revoked, &[])
    );
    assert_golden("events.txt", &events.replace(key_id, "<KEY-ID>"))
}

/// Events are written beside the status, so the last one may come after it.
async fn described_events(cluster: &Cluster, name: &str, last: &str) -> Result<String> {
    cluster
        .wait_until(&format!("the event {last}"), SOON, async || {
            let described = cluster.kubectl.run(&["describe", "apikey", name])?;
            let events = described
                .split_once("Events:")
                .context("no events")?
                .1
                .trim_start_matches('\n');
            ensure!(events.contains(last), "{events}");
            let lines: Vec<_> = events
                .lines()
                .filter(|line| !line.trim_start().starts_with("----"))
                .collect();
            let unindented: Vec<_> = lines.iter().map(|line| line.trim_start()).collect();
            Ok(table(&unindented.join("\n"), &["Age"]))
        })
        .await
}
