//! A new version under load: no request fails, and the version is seen where it is declared to be seen.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use water_e2e::load::{self, TARGETS};
use water_e2e::{Cluster, Component, PATIENCE, RELEASE, condition, is_current, rollout};

/// Components behind the API.
pub const SERVING: [Component; 3] = [Component::Gate, Component::Departements, Component::History];

fn names_of_pods(cluster: &Cluster, components: &[Component]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for component in components {
        names.extend(component.pods(cluster)?.into_iter().map(|pod| pod.name));
    }
    Ok(names)
}

/// Makes a change, and waits until it has replaced all pods of these components and is complete by `is_done`,
/// which is given the WaterDataApi.
pub async fn roll(
    cluster: &Cluster,
    what: &str,
    replaced: &[Component],
    change: impl FnOnce() -> Result<()>,
    is_done: impl Fn(&Value) -> Result<()>,
) -> Result<()> {
    let before = names_of_pods(cluster, replaced)?;
    change()?;
    cluster
        .wait_for_steps(what, async || {
            let api = cluster.api()?;
            let (ready, _) = condition(&api, "Ready")?;
            let state = rollout(&api);
            ensure!(ready == "True" && is_current(&api), "{state}");
            let now = names_of_pods(cluster, replaced)?;
            let left = before.intersection(&now).count();
            ensure!(left == 0, "{left} pods are left; {state}");
            is_done(&api)
        })
        .await
}

/// Waits until clients whose load has begun have got 200 answers about histories: sessions at the
/// database are open, as they are wherever clients go on asking.
pub async fn has_sessions(cluster: &Cluster) -> Result<()> {
    let answered = async || {
        let mut answered = 0.0;
        for pod in Component::Gate.pods(cluster)? {
            let count = "water_gate_service_seconds_count{service=\"history\"}";
            answered += pod.metric(count).await?;
        }
        Ok::<f64, anyhow::Error>(answered)
    };
    let before = answered().await?;
    cluster
        .wait_until("answers about histories", PATIENCE, async || {
            let now = answered().await? - before;
            ensure!(now >= 200.0, "{now}");
            Ok(())
        })
        .await
}

/// Changes the WaterDataApi.
pub fn patch(cluster: &Cluster, change: &Value) -> Result<()> {
    let api = format!("waterdataapi/{RELEASE}");
    cluster.kubectl.patch(&api, change).map(drop)
}

/// Checks the version that the pods of the three services themselves report.
async fn assert_pods_report(cluster: &Cluster, version: &str) -> Result<()> {
    for component in SERVING {
        for pod in component.pods(cluster)? {
            let metrics = pod.metrics().await?;
            let line = format!("water_build_info{{version=\"{version}\"}} 1");
            let reports = metrics.lines().any(|is| is == line);
            ensure!(reports, "{} says\n{metrics}", pod.name);
        }
    }
    Ok(())
}

/// Rolls to the other version of which there are images, and returns it. It stays, once it is everywhere: the next call
/// rolls back.
pub async fn roll_version(cluster: &Cluster) -> Result<String> {
    let api = cluster.api()?;
    let old = api["spec"]["image"]["tag"].as_str().context("no tag")?;
    let mut versions = cluster.environment.versions.iter();
    let new = versions
        .find(|version| *version != old)
        .context("no other version has images")?;
    let before = cluster.keep_spec()?;
    assert_pods_report(cluster, old).await?;
    let change = || patch(cluster, &json!({ "spec": { "image": { "tag": new } } }));
    roll(cluster, new, &SERVING, change, |api| {
        let version = &api["status"]["version"];
        ensure!(version == new, "{version}");
        Ok(())
    })
    .await?;
    assert_pods_report(cluster, new).await?;
    before.let_go();
    Ok(new.clone())
}

// The long tests judge how soon requests are answered meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_31_a_version_rolls_under_load_without_a_failed_request() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let load = load::Load::evenly(&cluster.water, 50, cluster.load_keys().await?, &TARGETS);
    let rolling = async {
        has_sessions(&cluster).await?;
        roll_version(&cluster).await
    };
    let (new, report) = load::send_during(load, rolling).await?;
    println!("{new}: {report}");
    report.without_failures()
}
