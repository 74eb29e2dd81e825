//! Pods that go away, asked and unasked, while clients go on.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use water_e2e::load::{self, TARGETS};
use water_e2e::{Cluster, Component, Pod};

/// Pods of each component of the release.
const REPLICAS: usize = 2;

/// Returns a load of 50 a second: each account is far below its limit.
async fn some_load(cluster: &Cluster) -> Result<load::Load> {
    let keys = cluster.load_keys().await?;
    Ok(load::Load::evenly(&cluster.water, 50, keys, &TARGETS).promptly())
}

/// Returns the pods of each component, all of them Ready.
async fn all_pods(cluster: &Cluster) -> Result<Vec<(Component, Vec<Pod>)>> {
    let mut all = Vec::new();
    for component in Component::ALL {
        let pods = component.healed(cluster, REPLICAS, &[]).await?;
        all.push((component, pods));
    }
    Ok(all)
}

/// Pods go at the same time, one of each component, as those of a node that is drained.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_04_33_deleting_each_pod_in_turn_loses_no_request() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let load = some_load(&cluster).await?;
    let deleting = async {
        let all = all_pods(&cluster).await?;
        for turn in 0..REPLICAS {
            let names = all.iter().map(|(_, pods)| pods[turn].name.as_str());
            // Ends when all of them have.
            let delete: Vec<_> = ["delete", "pod"].into_iter().chain(names).collect();
            cluster.kubectl.run(&delete)?;
            for (component, pods) in &all {
                let gone: Vec<_> = pods[..=turn].iter().collect();
                component.healed(&cluster, REPLICAS, &gone).await?;
            }
        }
        Ok(())
    };
    let ((), report) = load::send_during(load, deleting).await?;
    println!("each pod deleted in turn: {report}");
    ensure!(report.sent > 0, "nothing was sent");
    report.without_failures()
}

/// Failures are counted and not forbidden, since the work of a killed process is lost with it; required is that
/// each pod heals and that no request fails after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_of_all_components_heal() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let load = some_load(&cluster).await?;
    let killing = async {
        let all = all_pods(&cluster).await?;
        for turn in 0..REPLICAS {
            let doomed = || all.iter().map(|(component, pods)| (component, &pods[turn]));
            doomed().try_for_each(|(_, pod)| pod.kill())?;
            for (component, pod) in doomed() {
                restarted(&cluster, *component, pod).await?;
            }
        }
        Ok(())
    };
    let ((), report) = load::send_during(load, killing).await?;
    println!("each process killed in turn: {report}");
    let failures = report.failures.iter().take(3);
    failures.for_each(|failure| println!("  {}", failure.text));
    let afterwards = load::send_for(some_load(&cluster).await?, Duration::from_secs(5)).await?;
    afterwards.without_failures()
}

/// Waits until the pod's container was started again, and all pods of its component are Ready.
async fn restarted(cluster: &Cluster, component: Component, killed: &Pod) -> Result<()> {
    let what = format!("{} to be restarted", killed.name);
    let again = async || {
        let pods = component.pods(cluster)?;
        let pod = pods.iter().find(|pod| pod.uid == killed.uid);
        let pod = pod.context("the pod has gone")?;
        ensure!(pod.restarts > killed.restarts, "{pods:?}");
        Ok(())
    };
    cluster.wait_for_steps(&what, again).await?;
    component.healed(cluster, REPLICAS, &[]).await.map(drop)
}
