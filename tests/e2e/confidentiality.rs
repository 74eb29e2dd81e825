//! A key's text is in its Secret and in its requests, and nowhere else.

use anyhow::{Context, Result, ensure};
use water_e2e::{ApiKey, Cluster, RELEASE};
use water_harness::find_key_text;

/// Kinds of objects that are shown to more people than Secrets are.
const KINDS: [&str; 7] = [
    "apikeys",
    "waterdataapis",
    "events",
    "configmaps",
    "deployments",
    "pods",
    "jobs",
];

/// Returns the logs of all pods.
fn logs(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    let pods = cluster.kubectl.run(&["get", "pods", "-o", "name"])?;
    // A pod that has just begun or just gone has no log to show.
    let log = |pod| cluster.kubectl.run(&["logs", pod]).unwrap_or_default();
    Ok(pods.lines().map(|pod| (pod.to_owned(), log(pod))).collect())
}

/// Returns the objects of a kind.
fn objects(cluster: &Cluster, kind: &str) -> Result<String> {
    cluster.kubectl.run(&["get", kind, "-o", "yaml"])
}

/// Whether these bytes are anywhere in a dump.
fn holds(dump: &[u8], text: &str) -> bool {
    dump.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn neither_store_holds_a_keys_text() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.issue(&ApiKey::named("confidential-store")).await?;
    cluster.water.get("/api/v1/stress?dept=34", &key).await?;
    cluster.water.get("/api/v1/hydrorisk", &key).await?;
    let (redis, postgres) = (cluster.redis_dump()?, cluster.postgres_dump()?);
    // Where the key's public part and a table's rows are, a text would be seen too.
    let public = key.split('_').nth(1).context("a key has an id")?;
    ensure!(holds(&redis, public), "Redis' dump lacks the key's id");
    ensure!(holds(&postgres, "COPY "), "PostgreSQL's dump has no rows");
    for (name, dump) in [("Redis", redis), ("PostgreSQL", postgres)] {
        assert_eq!(find_key_text(&dump), None, "in the dump of {name}");
        let planted = [dump, key.as_bytes().to_vec()].concat();
        assert!(find_key_text(planted).is_some(), "{name}");
    }
    cluster.delete("confidential-store")
}

#[tokio::test]
async fn no_log_event_or_status_holds_a_keys_text() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let key = cluster.issue(&ApiKey::named("confidential")).await?;
    let unknown = format!("wdk_{}_{}", "unknown00000", "0".repeat(49));
    for key in [&key, &unknown] {
        cluster.water.get("/api/v1/stress?dept=34", key).await?;
        cluster
            .water
            .get_without_key(&format!("/api/v1/stress?key={key}"))
            .await?;
    }
    cluster.delete("confidential")?;
    let logs = logs(&cluster)?;
    // Where little was logged little was searched.
    for component in ["gate", "departements", "history", "operator"] {
        let pod = format!("pod/{RELEASE}-{component}-");
        let logged = logs
            .iter()
            .any(|(name, log)| name.starts_with(&pod) && log.contains(r#""level":"DEBUG""#));
        ensure!(
            logged,
            "no {component} logs at debug level: run `cargo dev test`"
        );
    }
    for (pod, log) in &logs {
        assert_eq!(find_key_text(log), None, "in the log of {pod}");
    }
    for kind in KINDS {
        assert_eq!(find_key_text(objects(&cluster, kind)?), None, "in {kind}");
    }
    // A planted one is found in the same way.
    let literal = format!("--from-literal=key={unknown}");
    let kubectl = &cluster.kubectl;
    let remove = || kubectl.run(&["delete", "configmap", "planted", "--ignore-not-found"]);
    remove()?;
    kubectl.run(&["create", "configmap", "planted", &literal])?;
    let planted = objects(&cluster, "configmaps");
    remove()?;
    assert!(find_key_text(planted?).is_some());
    Ok(())
}
