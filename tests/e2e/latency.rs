//! How long a change of a key takes to reach a client: from the start of kubectl
//! to the first answer that shows it, over 50 keys.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::{process::Command, time::Instant};
use water_e2e::{ApiKey, Cluster, Kubectl, load::percentile};
use water_harness::{HttpClient, wait_until};

const KEYS: usize = 50;
/// What the first version has to show.
const BOUND: Duration = Duration::from_secs(2);
/// A latency above the bound is measured as well.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_apply_to_200_and_kubectl_delete_to_401_take_at_most_2_seconds() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let (mut created, mut deleted) = (Vec::new(), Vec::new());
    for number in 0..KEYS {
        let name = format!("latency-{number:02}");
        cluster.delete(&name)?;
        let (key, taken) = create(&cluster, &name).await?;
        created.push(taken);
        deleted.push(delete(&cluster, &name, &key).await?);
    }
    println!("kubectl apply to the first 200: {}", summary(&created));
    println!("kubectl delete to the first 401: {}", summary(&deleted));
    let slowest = created
        .iter()
        .chain(&deleted)
        .max()
        .context("no key was measured")?;
    assert!(
        *slowest <= BOUND,
        "created {created:?}\ndeleted {deleted:?}"
    );
    Ok(())
}

fn summary(latencies: &[Duration]) -> String {
    let (half, most) = (percentile(latencies, 0.5), percentile(latencies, 1.0));
    format!("p50 {half:.0?}, maximum {most:.0?} of {}", latencies.len())
}

/// `kubectl wait` sees the Secret as it is written; the key is in force before it can be read.
async fn create(cluster: &Cluster, name: &str) -> Result<(String, Duration)> {
    let key = ApiKey::named(name).of_account(&format!("{name}-{}", std::process::id()));
    let start = Instant::now();
    cluster.kubectl.apply(&key.manifest())?;
    let secret = format!("secret/{name}-apikey");
    let template = "go-template={{index .data \"api-key\" | base64decode}}";
    let wait = [
        "wait",
        "--for=create",
        &secret,
        "--timeout=20s",
        "-o",
        template,
    ];
    let text = cluster.kubectl.run(&wait)?;
    first_answer(cluster, &text, 200).await?;
    Ok((text, start.elapsed()))
}

async fn delete(cluster: &Cluster, name: &str, key: &str) -> Result<Duration> {
    let start = Instant::now();
    let deleting = Command::from(deletion(&cluster.kubectl, name)).output();
    let (output, refused) = tokio::join!(deleting, async {
        first_answer(cluster, key, 401)
            .await
            .map(|()| start.elapsed())
    });
    let output = output.context("run kubectl delete")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    refused
}

fn deletion(kubectl: &Kubectl, name: &str) -> std::process::Command {
    let mut command = kubectl.command();
    command.args(["delete", "apikey", name, "--timeout=20s"]);
    command
}

async fn first_answer(cluster: &Cluster, key: &str, status: u16) -> Result<()> {
    let mut client: HttpClient = cluster.water.connect().await?;
    wait_until(&format!("the first {status}"), PATIENCE, async || {
        let answer = client.get("/api/v1/stress?dept=34", key).await?;
        if answer.status != status {
            bail!("{answer:?}");
        }
        Ok(())
    })
    .await
}
