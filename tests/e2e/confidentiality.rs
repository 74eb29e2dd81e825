//! A key's text is in its Secret and in its requests, and nowhere else.

use anyhow::{Result, ensure};
use water_e2e::{ApiKey, Cluster, RELEASE, find_key_text};

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
    // Where nothing was logged nothing was looked at.
    for component in ["gate", "departements", "history", "operator"] {
        let pod = format!("pod/{RELEASE}-{component}-");
        let logged = shown
            .iter()
            .any(|(name, log)| name.starts_with(&pod) && !log.is_empty());
        ensure!(logged, "no {component} has logged anything");
    }
    for (name, text) in &shown {
        assert_eq!(find_key_text(text), None, "in {name}");
    }
    Ok(())
}
