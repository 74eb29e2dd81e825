//! A key's text is in its Secret and in its requests, and nowhere else.

use anyhow::{Context, Result, ensure};
use water_e2e::{ApiKey, Cluster, RELEASE};
use water_harness::find_key_text;

/// All that the product shows of itself: what every pod has logged, and every object but the Secrets.
fn everything_shown(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    let kubectl = &cluster.kubectl;
    let mut shown = Vec::new();
    for pod in kubectl.run(&["get", "pods", "-o", "name"])?.lines() {
        // A pod that has just begun or just gone has no log to show.
        shown.push((
            pod.to_owned(),
            kubectl.run(&["logs", pod]).unwrap_or_default(),
        ));
    }
    for kind in [
        "apikeys",
        "waterdataapis",
        "events",
        "configmaps",
        "deployments",
        "pods",
        "jobs",
    ] {
        shown.push((kind.to_owned(), kubectl.run(&["get", kind, "-o", "yaml"])?));
    }
    Ok(shown)
}

/// Whether these bytes stand somewhere in a dump.
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
async fn a_planted_key_is_found_among_what_is_shown() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let planted = format!("wdk_{}_{}", "planted00000", "0".repeat(49));
    let literal = format!("--from-literal=key={planted}");
    let object = ["configmap", "planted"];
    let remove = [&["delete", "--ignore-not-found"], &object[..]].concat();
    cluster.kubectl.run(&remove)?;
    cluster
        .kubectl
        .run(&[&["create"], &object[..], &[&literal]].concat())?;
    let shown = everything_shown(&cluster);
    cluster.kubectl.run(&remove)?;
    let found = shown?
        .iter()
        .find_map(|(name, text)| Some((name.clone(), find_key_text(text)?)));
    let expected = ("configmaps".to_owned(), "wdk_planted00000".to_owned());
    assert_eq!(found, Some(expected));
    Ok(())
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
    let shown = everything_shown(&cluster)?;
    // Where little was logged little was looked at.
    for component in ["gate", "departements", "history", "operator"] {
        let pod = format!("pod/{RELEASE}-{component}-");
        let logged = shown
            .iter()
            .any(|(name, log)| name.starts_with(&pod) && log.contains(r#""level":"DEBUG""#));
        ensure!(
            logged,
            "no {component} logs at debug level: run `cargo dev test`"
        );
    }
    for (name, text) in &shown {
        assert_eq!(find_key_text(text), None, "in {name}");
    }
    Ok(())
}
