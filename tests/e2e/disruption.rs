//! Pods that go away, asked and unasked, while clients go on.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use water_e2e::{Cluster, Component, NAMESPACE, load};

use crate::traffic::TARGETS;

/// Each component of the release runs this many pods.
const REPLICAS: usize = 2;
const HEALING: Duration = Duration::from_secs(60);

/// 50 a second from 120 accounts: each is far below its limit.
async fn some_load(cluster: &Cluster, prefix: &str) -> Result<load::Load> {
    let keys = cluster.keys_of_accounts(prefix, 120).await?;
    Ok(load::Load::evenly(&cluster.water, 50, keys, &TARGETS))
}

async fn delete_each_pod(component: Component) -> Result<()> {
    let cluster = Cluster::alone().await?;
    let load = some_load(&cluster, "deleted").await?;
    let (deleted, report) = load::send_during(load, async {
        let pods = component.healed(&cluster, REPLICAS, &[]).await?;
        for pod in &pods {
            cluster.kubectl.run(&["delete", "pod", &pod.name])?;
            component.healed(&cluster, REPLICAS, &[pod]).await?;
        }
        Ok(pods.len())
    })
    .await?;
    println!(
        "{deleted} pods of {} deleted in turn: {report}",
        component.label()
    );
    ensure!(report.sent > 0, "nothing was sent");
    report.without_failures()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_each_pod_of_the_gate_in_turn_loses_no_request() -> Result<()> {
    delete_each_pod(Component::Gate).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_each_pod_of_departements_in_turn_loses_no_request() -> Result<()> {
    delete_each_pod(Component::Departements).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_each_pod_of_history_in_turn_loses_no_request() -> Result<()> {
    delete_each_pod(Component::History).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_each_pod_of_the_operator_in_turn_loses_no_request() -> Result<()> {
    delete_each_pod(Component::Operator).await
}

/// What a killed process had in hand is lost with it, so failures are counted and not forbidden; what is
/// required is that the pod heals and that no request fails after that.
async fn kill_each_pod(component: Component) -> Result<()> {
    let cluster = Cluster::alone().await?;
    let load = some_load(&cluster, "killed").await?;
    let (killed, report) = load::send_during(load, async {
        let pods = component.healed(&cluster, REPLICAS, &[]).await?;
        for pod in &pods {
            pod.kill()?;
            restarted(&cluster, component, &pod.name, pod.restarts).await?;
        }
        Ok(pods.len())
    })
    .await?;
    println!(
        "{killed} pods of {} killed in turn: {report}",
        component.label()
    );
    report
        .failures
        .iter()
        .take(3)
        .for_each(|failure| println!("  {}", failure.replace('\n', " ")));
    let afterwards =
        load::send_for(some_load(&cluster, "healed").await?, Duration::from_secs(5)).await?;
    afterwards.without_failures()
}

async fn restarted(cluster: &Cluster, component: Component, name: &str, before: u64) -> Result<()> {
    cluster
        .wait_until(&format!("{name} to be restarted"), HEALING, async || {
            let pods = component.pods(cluster)?;
            let pod = pods
                .iter()
                .find(|pod| pod.name == name)
                .context("the pod has gone")?;
            if pod.restarts <= before {
                bail!("it was restarted {} times in {NAMESPACE}", pod.restarts);
            }
            Ok(())
        })
        .await?;
    component.healed(cluster, REPLICAS, &[]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gate_heals() -> Result<()> {
    kill_each_pod(Component::Gate).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_departements_service_heals() -> Result<()> {
    kill_each_pod(Component::Departements).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_history_service_heals() -> Result<()> {
    kill_each_pod(Component::History).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_operator_heals() -> Result<()> {
    kill_each_pod(Component::Operator).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_portal_heals() -> Result<()> {
    kill_each_pod(Component::Portal).await
}
