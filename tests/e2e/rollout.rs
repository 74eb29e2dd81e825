//! A new version, new identity keys and a new password under load: no request fails, and the
//! version is seen where it is declared to be seen.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use water_e2e::{Cluster, Component, RELEASE, condition, load};

use crate::traffic::TARGETS;

/// Six pods, one after the other, each ready for 5 s before the next one goes.
const ROLLOUT: Duration = Duration::from_secs(240);

async fn roll_to(cluster: &Cluster, version: &str) -> Result<()> {
    let change = json!({ "spec": { "image": { "tag": version } } });
    cluster
        .kubectl
        .patch(&format!("waterdataapi/{RELEASE}"), &change)?;
    cluster
        .wait_until(&format!("the rollout of {version}"), ROLLOUT, async || {
            let api = cluster.kubectl.get(&["waterdataapi", RELEASE])?;
            let conditions = api["status"]["conditions"]
                .as_array()
                .context("no conditions")?;
            let ready = conditions
                .iter()
                .any(|is| is["type"] == "Ready" && is["status"] == "True");
            let current = api["status"]["observedGeneration"] == api["metadata"]["generation"];
            if !(ready && current && api["status"]["version"] == version) {
                bail!("{}", api["status"]);
            }
            Ok(())
        })
        .await
}

/// The components whose pods a rollout replaces.
const SERVING: [Component; 3] = [Component::Gate, Component::Departements, Component::History];

/// Those of them that read the database.
const READING: [Component; 2] = [Component::Departements, Component::History];
/// Where the Secret holds the URL by which they do.
const READER_URL: &str = "reader-url";

/// What the pods of the three services themselves say that they are.
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

fn names_of_pods(cluster: &Cluster, components: &[Component]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for component in components {
        names.extend(component.pods(cluster)?.into_iter().map(|pod| pod.name));
    }
    Ok(names)
}

/// Asks for new identity keys and waits until no pod is left that knew only the old ones.
async fn rotate_identity(cluster: &Cluster) -> Result<()> {
    let identity = || {
        cluster
            .kubectl
            .get(&["secret", &format!("{RELEASE}-identity")])
    };
    let (before, pods) = (identity()?, names_of_pods(cluster, &SERVING)?);
    let keys = &before["data"];
    // Any word that was not there before.
    let word = &before["metadata"]["resourceVersion"];
    let word = json!({ "waterdata.dev/rotate-identity": word });
    let asked = json!({ "metadata": { "annotations": word } });
    cluster
        .kubectl
        .patch(&format!("waterdataapi/{RELEASE}"), &asked)?;
    cluster
        .wait_until("new identity keys everywhere", ROLLOUT, async || {
            let now = identity()?;
            let rotated = now["data"]["current"] == keys["next"]
                && [&keys["current"], &keys["next"]]
                    .iter()
                    .all(|old| now["data"]["next"] != **old);
            ensure!(rotated, "the Secret's keys are not rotated");
            let left = pods
                .intersection(&names_of_pods(cluster, &SERVING)?)
                .count();
            ensure!(left == 0, "{left} pods are left");
            let api = cluster.kubectl.get(&["waterdataapi", RELEASE])?;
            let (ready, reason) = condition(&api, "Ready")?;
            ensure!(ready == "True", "{reason}");
            Ok(())
        })
        .await
}

/// Gates and services are rolled one after the other; a request that one signs is believed by the
/// other all the while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identity_keys_are_rotated_under_load_without_a_failed_request() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let keys = cluster.keys_of_accounts("identity", 120).await?;
    let load = load::Load::evenly(&cluster.water, 100, keys, &TARGETS);
    let ((), report) = load::send_during(load, rotate_identity(&cluster)).await?;
    println!("identity keys rotated: {report}");
    report.without_failures()
}

/// The URL by which the services read the database, in the Secret of that name.
fn readers_url(cluster: &Cluster, secret: &str) -> Result<String> {
    let secret = cluster.kubectl.get(&["secret", secret])?;
    let url = secret["data"][READER_URL].as_str().context("no URL")?;
    Ok(String::from_utf8(BASE64.decode(url)?)?)
}

/// Changes the password in PostgreSQL and then in the Secret, and waits until both services are rolled.
async fn change_password(cluster: &Cluster, secret: &str, password: &str) -> Result<()> {
    let before = names_of_pods(cluster, &READING)?;
    let url = cluster.change_readers_password(&readers_url(cluster, secret)?, password)?;
    let changed = json!({ "data": { READER_URL: BASE64.encode(url) } });
    cluster
        .kubectl
        .patch(&format!("secret/{secret}"), &changed)?;
    cluster
        .wait_until("pods with the new password", ROLLOUT, async || {
            let left = before
                .intersection(&names_of_pods(cluster, &READING)?)
                .count();
            ensure!(left == 0, "{left} pods are left");
            let api = cluster.kubectl.get(&["waterdataapi", RELEASE])?;
            let (ready, reason) = condition(&api, "Ready")?;
            ensure!(ready == "True", "{reason}");
            Ok(())
        })
        .await
}

/// Sessions that are open serve on, and the pods that the Secret rolls know the new password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_readers_password_is_changed_under_load_without_a_failed_request() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let api = cluster.kubectl.get(&["waterdataapi", RELEASE])?;
    let secret = api["spec"]["postgres"]["secretRef"]["name"].as_str();
    let secret = secret.context("no Secret")?;
    let url = readers_url(&cluster, secret)?;
    let before = url.split(['@', ':']).nth(2).context("no password")?;
    let keys = cluster.keys_of_accounts("password", 120).await?;
    let load = load::Load::evenly(&cluster.water, 200, keys, &TARGETS);
    let changed = load::send_during(load, change_password(&cluster, secret, "another")).await;
    // Whatever came of it: the next test finds the password that was there before.
    change_password(&cluster, secret, before).await?;
    let ((), report) = changed?;
    println!("password changed: {report}");
    report.without_failures()
}

/// 200 a second from 120 accounts: 100 a minute each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_version_rolls_under_load_without_a_failed_request() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let api = cluster.kubectl.get(&["waterdataapi", RELEASE])?;
    let old = api["spec"]["image"]["tag"].as_str().context("no tag")?;
    let new = &cluster.environment.next_tag;
    let keys = cluster.keys_of_accounts("rollout", 120).await?;
    let load = load::Load::evenly(&cluster.water, 200, keys, &TARGETS);
    assert_pods_report(&cluster, old).await?;
    let rolled = load::send_during(load, roll_to(&cluster, new)).await;
    let reported = assert_pods_report(&cluster, new).await;
    // Whatever came of it: the next test finds the version that was there before.
    roll_to(&cluster, old).await?;
    let ((), report) = rolled?;
    println!("from {old} to {new}: {report}");
    report.without_failures()?;
    reported
}
