//! A new password, a new version and new identity keys under load: no request fails, and the version is seen
//! where it is declared to be seen.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use water_e2e::{Cluster, Component, RELEASE, condition, load};

use crate::traffic::TARGETS;

/// Six pods, one after the other, each ready for 5 s before the next one goes.
const ROLLOUT: Duration = Duration::from_secs(240);
/// Components behind the API.
const SERVING: [Component; 3] = [Component::Gate, Component::Departements, Component::History];
/// Components behind the API that read the database.
const READING: [Component; 2] = [Component::Departements, Component::History];
/// Name, in the Secret, of the URL by which they read it.
const READER_URL: &str = "reader-url";

fn names_of_pods(cluster: &Cluster, components: &[Component]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for component in components {
        names.extend(component.pods(cluster)?.into_iter().map(|pod| pod.name));
    }
    Ok(names)
}

/// Makes a change, and waits until it has replaced all pods of these components and is complete by `is_done`,
/// which is given the WaterDataApi.
async fn roll(
    cluster: &Cluster,
    what: &str,
    replaced: &[Component],
    change: impl FnOnce() -> Result<()>,
    is_done: impl Fn(&Value) -> Result<()>,
) -> Result<()> {
    let before = names_of_pods(cluster, replaced)?;
    change()?;
    cluster
        .wait_until(what, ROLLOUT, async || {
            let api = cluster.kubectl.get(&["waterdataapi", RELEASE])?;
            let current = api["status"]["observedGeneration"] == api["metadata"]["generation"];
            let (ready, reason) = condition(&api, "Ready")?;
            ensure!(ready == "True" && current, "{reason}");
            let now = names_of_pods(cluster, replaced)?;
            let left = before.intersection(&now).count();
            ensure!(left == 0, "{left} pods are left");
            is_done(&api)
        })
        .await
}

fn patch(cluster: &Cluster, change: &Value) -> Result<()> {
    let api = format!("waterdataapi/{RELEASE}");
    cluster.kubectl.patch(&api, change).map(drop)
}

/// Returns the URL by which the services read the database, in the Secret of that name.
fn readers_url(cluster: &Cluster, secret: &str) -> Result<String> {
    let secret = cluster.kubectl.get(&["secret", secret])?;
    let url = secret["data"][READER_URL].as_str().context("no URL")?;
    Ok(String::from_utf8(BASE64.decode(url)?)?)
}

/// Waits until clients whose load has begun have got a thousand answers about histories: sessions at the
/// database are open, as they are wherever clients go on asking.
async fn has_sessions(cluster: &Cluster) -> Result<()> {
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
        .wait_until("answers about histories", ROLLOUT, async || {
            let now = answered().await? - before;
            ensure!(now >= 1000.0, "{now}");
            Ok(())
        })
        .await
}

/// Changes the password in PostgreSQL and then in the Secret.
fn change_password(cluster: &Cluster, secret: &str, password: &str) -> Result<()> {
    let url = cluster.change_readers_password(&readers_url(cluster, secret)?, password)?;
    let changed = json!({ "data": { READER_URL: BASE64.encode(url) } });
    let secret = format!("secret/{secret}");
    cluster.kubectl.patch(&secret, &changed).map(drop)
}

/// Asks for new identity keys. Gates and services are rolled one after the other; a request that one signs is
/// believed by the other all the while.
async fn rotate_identity(cluster: &Cluster) -> Result<()> {
    let name = format!("{RELEASE}-identity");
    let identity = || cluster.kubectl.get(&["secret", &name]);
    let before = identity()?;
    let keys = &before["data"];
    // Any word that was not there before.
    let word = &before["metadata"]["resourceVersion"];
    let asked = json!({ "metadata": { "annotations": { "waterdata.dev/rotate-identity": word } } });
    let rotate = || patch(cluster, &asked);
    roll(
        cluster,
        "new identity keys everywhere",
        &SERVING,
        rotate,
        |_| {
            let now = &identity()?["data"];
            let old = [&keys["current"], &keys["next"]];
            let rotated = now["current"] == keys["next"] && !old.contains(&&now["next"]);
            ensure!(rotated, "the Secret's keys are not rotated");
            Ok(())
        },
    )
    .await
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

/// Sets another password for a while, and the version that does not run, which stays: the next run rolls
/// back to this one. Sessions at the database that are open serve on, and the pods that the Secret rolls know
/// the new password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_31_passwords_versions_and_identity_keys_roll_under_load_without_a_failed_request()
-> Result<()> {
    let cluster = Cluster::alone().await?;
    let api = cluster.kubectl.get(&["waterdataapi", RELEASE])?;
    let old = api["spec"]["image"]["tag"].as_str().context("no tag")?;
    let new = cluster.environment.next_tag.as_str();
    ensure!(
        old != new,
        "WATER_NEXT_TAG is what runs: ask `cargo dev env` again"
    );
    let secret = api["spec"]["postgres"]["secretRef"]["name"].as_str();
    let secret = secret.context("no Secret")?;
    let url = readers_url(&cluster, secret)?;
    let password = url.split(['@', ':']).nth(2).context("no password")?;
    let load = load::Load::evenly(&cluster.water, 200, cluster.load_keys().await?, &TARGETS);
    assert_pods_report(&cluster, old).await?;
    let rolling = async {
        has_sessions(&cluster).await?;
        let change = || change_password(&cluster, secret, "another");
        let changed = roll(&cluster, "the new password", &READING, change, |_| Ok(())).await;
        let back_and_on = || {
            // Whatever came of it.
            change_password(&cluster, secret, password)?;
            changed?;
            patch(&cluster, &json!({ "spec": { "image": { "tag": new } } }))
        };
        roll(&cluster, new, &SERVING, back_and_on, |api| {
            let version = &api["status"]["version"];
            ensure!(version == new, "{version}");
            Ok(())
        })
        .await?;
        assert_pods_report(&cluster, new).await?;
        rotate_identity(&cluster).await
    };
    let ((), report) = load::send_during(load, rolling).await?;
    println!("password, {new} and identity keys: {report}");
    report.without_failures()
}
