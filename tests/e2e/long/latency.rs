//! Time that a change of a key takes to reach a client: from the start of kubectl to the first answer that
//! shows it, over 20 keys.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::{SysconfVar, sysconf};
use tokio::{process::Command, time::Instant};
use water_e2e::{ApiKey, Cluster, Kubectl, load::percentile};
use water_harness::{HttpClient, wait_until};

const KEYS: usize = 20;
/// Longest time of a change, …
const BOUND: Duration = Duration::from_secs(2);
/// … but for one of ten, for which a busy machine's disk or name server may let it wait.
const LATE: usize = KEYS * 2 / 10;
/// Longest time of that one.
const LATEST: Duration = Duration::from_secs(8);
/// A latency above the bound is measured as well.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_apply_to_200_and_kubectl_delete_to_401_take_at_most_2_seconds() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let (mut created, mut deleted) = (Vec::new(), Vec::new());
    for number in 0..KEYS {
        let name = format!("latency-{number:02}");
        cluster.delete(&name)?;
        let before = stolen()?;
        let (key, taken) = create(&cluster, &name).await?;
        let between = stolen()?;
        created.push((taken, between - before));
        let taken = delete(&cluster, &name, &key).await?;
        deleted.push((taken, stolen()? - between));
    }
    println!("kubectl apply to the first 200: {}", summary(&created));
    println!("kubectl delete to the first 401: {}", summary(&deleted));
    judge(&[created, deleted].concat())
}

/// Fails if a change took too long without the time that was stolen meanwhile. Fails, too, if too long a time is due to
/// that for more changes than may be late: of those nothing was measured.
fn judge(measured: &[(Duration, Duration)]) -> Result<()> {
    let shown = || format!("times of changes, with the time stolen meanwhile: {measured:?}");
    let own = |(taken, stolen): &(Duration, Duration)| taken.saturating_sub(*stolen);
    let late = measured.iter().filter(|times| own(times) > BOUND).count();
    let slowest = measured.iter().map(own).max();
    ensure!(
        late <= LATE && slowest <= Some(LATEST),
        "{late} took longer than {BOUND:?}; {}",
        shown()
    );
    let longer = measured.iter().filter(|(taken, _)| *taken > BOUND).count();
    let slowest = measured.iter().map(|(taken, _)| *taken).max();
    ensure!(
        longer - late <= LATE && slowest <= Some(LATEST),
        "could not be measured: {longer} took longer than {BOUND:?}, {late} without the time stolen; {}",
        shown()
    );
    Ok(())
}

/// Returns the time that a virtual machine's processors had work and its host did not let them run, in sum:
/// nothing that runs on the machine is slow for it. See proc_stat(5).
fn stolen() -> Result<Duration> {
    let statistics = fs::read_to_string("/proc/stat")?;
    let ticks: f64 = statistics
        .split_ascii_whitespace()
        .nth(8)
        .context("/proc/stat has no stolen time")?
        .parse()?;
    let a_second = sysconf(SysconfVar::CLK_TCK)?.context("the clock has no ticks")?;
    Ok(Duration::from_secs_f64(ticks / a_second as f64))
}

fn summary(measured: &[(Duration, Duration)]) -> String {
    let latencies: Vec<_> = measured.iter().map(|(taken, _)| *taken).collect();
    let (half, most) = (percentile(&latencies, 0.5), percentile(&latencies, 1.0));
    let stolen: Duration = measured.iter().map(|(_, stolen)| stolen).sum();
    let count = latencies.len();
    format!("p50 {half:.0?}, maximum {most:.0?} of {count}; {stolen:.0?} were stolen meanwhile")
}

/// Creates a key. `kubectl wait` sees the Secret as it is written; the key is in force before it can be read.
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
        "--timeout=60s",
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
    command.args(["delete", "apikey", name, "--timeout=60s"]);
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

#[test]
fn stolen_time_excuses_few_changes_and_none_that_took_very_long() {
    let seconds =
        |taken: u64, stolen: u64| (Duration::from_secs(taken), Duration::from_secs(stolen));
    let with = |times: (Duration, Duration), count: usize| {
        let quick = vec![seconds(1, 0); 2 * KEYS - count];
        judge(&[quick, vec![times; count]].concat())
    };
    for (good, count) in [(seconds(3, 0), LATE), (seconds(3, 1), LATE)] {
        with(good, count).unwrap();
    }
    for (slow, count) in [(seconds(3, 0), LATE + 1), (seconds(9, 0), 1)] {
        let error = with(slow, count).unwrap_err().to_string();
        assert!(error.contains("took longer than 2s; times"), "{error}");
    }
    for (stolen, count) in [(seconds(3, 1), LATE + 1), (seconds(9, 8), 1)] {
        let error = with(stolen, count).unwrap_err().to_string();
        assert!(error.starts_with("could not be measured: "), "{error}");
    }
}
