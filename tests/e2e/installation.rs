//! The product as a stranger installs it: by the commands of README.md, and then by those that the chart's
//! notes print, on the cluster of the development installation and with separate stores.

mod loads;
mod readme;
mod shell;
mod stores;

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};
use futures::future::join_all;
use water_e2e::{Cluster, Component, PATIENCE, Pod, Water, condition, project};
use water_harness::HttpClient;

use shell::Shell;
use stores::Stores;

/// Two installations at the same time, each at a host `<namespace>.example`.
const DOCUMENTED: &str = "water-as-documented";
const DELETED: &str = "water-deleted";

/// Place in the notes after the first request, at which the end of it all begins.
const BEFORE_AN_UNINSTALL: &str = "\nBefore an uninstall";

/// Addresses that are set aside for examples: in no network that README.md's command trusts.
const STRANGER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const CUSTOMER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 8);

/// Returns the host of the installation in a namespace.
fn host(namespace: &str) -> String {
    format!("{namespace}.example")
}

/// Runs README.md's `helm install` and returns the chart's notes.
fn install(cluster: &Cluster, shell: &Shell, namespace: &str) -> Result<String> {
    let api = cluster.api()?;
    let image = |field: &str| {
        let value = api["spec"]["image"][field].as_str();
        value.with_context(|| format!("the image has no {field}"))
    };
    let commands = readme::filled_in(
        &readme::block_with("helm install")?,
        &[
            ("registry.example/water", image("registry")?),
            ("image.tag=0.1.0", &format!("image.tag={}", image("tag")?)),
            ("--namespace water ", &format!("--namespace {namespace} ")),
            ("water.example", &host(namespace)),
        ],
    )?;
    let printed = shell.run(&commands, &project(), &[])?;
    let notes = printed.split_once("NOTES:\n");
    Ok(notes.context("no notes")?.1.to_owned())
}

/// Returns the lines of a text that are commands; the last of the first part is the request, which needs a name
/// server that knows the host.
fn commands(notes: &str) -> String {
    let lines = notes.lines().filter(|line| line.starts_with("  "));
    let lines = lines.filter(|line| !line.starts_with("  curl "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Removes everything, also the remains of an earlier run whose stores are gone: no operator can take its
/// finalizers off.
fn remove(cluster: &Cluster, shell: &Shell, namespace: &str) -> Result<()> {
    let commands = "
        kubectl -n $NAMESPACE delete apikeys --all --wait=false
        helm -n $NAMESPACE uninstall water-data --ignore-not-found --wait
        water-operator release --all --namespace $NAMESPACE";
    let variables = [("NAMESPACE", namespace.to_owned())];
    shell.run(commands, &project(), &variables)?;
    let namespace = [
        "delete",
        "namespace",
        namespace,
        "--ignore-not-found",
        "--timeout=120s",
    ];
    cluster.kubectl.run(&namespace).map(drop)
}

/// A second installation. Dropped, this removes what a failed test has left of it, while its stores are still there:
/// the next tests find the cluster without it. A test that was killed leaves it to the next run's `remove`.
struct Second<'a> {
    cluster: &'a Cluster,
    shell: &'a Shell,
    namespace: &'a str,
    is_removed: bool,
}

impl<'a> Second<'a> {
    fn new(cluster: &'a Cluster, shell: &'a Shell, namespace: &'a str) -> Self {
        Self {
            cluster,
            shell,
            namespace,
            is_removed: false,
        }
    }

    /// Removes what is left of it, and fails where that does; without this, only a line is printed.
    fn remove(mut self) -> Result<()> {
        self.is_removed = true;
        remove(self.cluster, self.shell, self.namespace)
    }
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        if let Err(error) = remove(self.cluster, self.shell, self.namespace) {
            println!("{} could not be removed: {error:#}", self.namespace);
        }
    }
}

#[tokio::test]
async fn fault_40_the_readmes_commands_install_an_api_that_answers_keeps_its_clients_apart_and_loads_data()
-> Result<()> {
    let cluster = Cluster::shared().await?;
    let shell = Shell::new(&cluster)?;
    remove(&cluster, &shell, DOCUMENTED)?;
    let stores = Stores::start(cluster.own_address().await?).await?;
    let second = Second::new(&cluster, &shell, DOCUMENTED);
    stores.prepare(&shell, DOCUMENTED).await?;
    let notes = install(&cluster, &shell, DOCUMENTED)?;
    let (issue, uninstall) = notes
        .split_once(BEFORE_AN_UNINSTALL)
        .context("the notes' end")?;
    let script = format!("{}\necho \"$KEY\"", commands(issue));
    let printed = shell.run(&script, &project(), &[])?;
    let key = printed.lines().last().context("the notes made no key")?;

    let documented = cluster.in_namespace(DOCUMENTED, &host(DOCUMENTED));
    answers_without_data(&documented, key).await?;
    strangers_slow_nobody_else_down(&documented.water, &cluster).await?;
    loads::reach_the_clients(&documented, &shell, key).await?;
    shell.run(&commands(uninstall), &project(), &[])?;
    second.remove()
}

#[tokio::test]
async fn deleting_the_namespace_of_an_installation_whose_keys_are_in_use_ends() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let shell = Shell::new(&cluster)?;
    remove(&cluster, &shell, DELETED)?;
    let stores = Stores::start(cluster.own_address().await?).await?;
    let second = Second::new(&cluster, &shell, DELETED);
    stores.prepare(&shell, DELETED).await?;
    install(&cluster, &shell, DELETED)?;
    let documented = cluster.in_namespace(DELETED, &host(DELETED));
    documented.wait_for_api("Ready", "True").await?;
    let keys = documented.keys_of_accounts("in-use", 5).await?;
    let gates = Component::Gate.pods(&documented)?;
    for key in &keys {
        assert!(is_accepted_by_any(&gates, key).await?);
    }
    let delete = ["delete", "namespace", DELETED, "--wait=false"];
    documented.kubectl.run(&delete)?;
    let freed = async || {
        let finalizers = finalizers(&documented)?;
        ensure!(finalizers.is_empty(), "{finalizers}");
        Ok(())
    };
    documented
        .wait_for_steps("the ApiKeys to be let go", freed)
        .await?;
    // The gates have ended, or end: one answer after the other would take as long as each is waited for.
    let lives = keys.iter().map(|key| is_accepted_by_any(&gates, key));
    for lives in join_all(lives).await {
        assert!(!lives?, "a key lives on");
    }
    let gone = async || {
        let namespace = [
            "get",
            "namespace",
            DELETED,
            "--ignore-not-found",
            "-o",
            "yaml",
        ];
        let namespace = documented.kubectl.run(&namespace)?;
        ensure!(namespace.is_empty(), "{namespace}");
        Ok(())
    };
    documented
        .wait_for_steps("the end of the namespace", gone)
        .await?;
    second.remove()
}

/// Returns the finalizers of the ApiKeys that there are.
fn finalizers(cluster: &Cluster) -> Result<String> {
    let finalizers = "jsonpath={.items[*].metadata.finalizers[*]}";
    cluster.kubectl.run(&["get", "apikeys", "-o", finalizers])
}

/// Whether one of these gates accepts a key; one that has ended does not.
async fn is_accepted_by_any(gates: &[Pod], key: &str) -> Result<bool> {
    let accepted = gates.iter().map(async |gate| {
        // Without data an accepted key gets an error, but not 401.
        let answer = gate.water()?.get("/api/v1/stress", key).await;
        anyhow::Ok(answer.is_ok_and(|answer| answer.status != 401))
    });
    let accepted: Result<Vec<bool>> = join_all(accepted).await.into_iter().collect();
    Ok(accepted?.contains(&true))
}

/// Checks that it is Ready and says that data is missing, in its status and in its answers.
async fn answers_without_data(documented: &Cluster, key: &str) -> Result<()> {
    documented.wait_for_api("Ready", "True").await?;
    let installed = documented.wait_for_api("DataLoaded", "False").await?;
    assert_eq!(condition(&installed, "DataLoaded")?.1, "NoData");
    // Ready says nothing of the ingress controller, which takes a while to know a host.
    let by_gate = async || {
        let answer = documented.water.get("/api/v1/stress", key).await?;
        ensure!(answer.header("x-request-id").is_some(), "{answer:?}");
        Ok(())
    };
    documented
        .wait_until("an answer of the gate", PATIENCE, by_gate)
        .await?;
    for target in [
        "/api/v1/stress",
        "/api/v1/stress?dept=34",
        "/api/v1/risque",
        "/api/v1/risque?dept=34",
    ] {
        let answer = documented.water.get(target, key).await?;
        assert_eq!(
            (answer.status, answer.json()?["code"].as_str()),
            (404, Some("no_data")),
            "{target}"
        );
    }
    for target in ["/api/v1/hydrorisk", "/api/v1/conformite"] {
        let history = documented.water.get(target, key).await?;
        assert_eq!(
            (history.status, history.json()?["total"].as_u64()),
            (200, Some(0)),
            "{target}"
        );
    }
    Ok(())
}

/// Checks that a customer with a mistyped key gets 401 while a stranger tries so many keys that it is slowed
/// down.
async fn strangers_slow_nobody_else_down(water: &Water, cluster: &Cluster) -> Result<()> {
    let _own = (
        cluster.with_address(STRANGER)?,
        cluster.with_address(CUSTOMER)?,
    );
    let mut strangers = Vec::new();
    for _ in 0..8 {
        strangers.push(water.connect_from(STRANGER).await?);
    }
    let mut customer = water.connect_from(CUSTOMER).await?;
    // Fewer than a customer's own forty wrong keys at once.
    for _ in 0..20 {
        guess_until_slowed_down(&mut strangers).await?;
        assert_eq!(wrong_key(&mut customer).await?, 401);
    }
    Ok(())
}

/// Guesses on all connections at once until most of the answers are 429. Each gate has half of the requests, so that both
/// refuse; they take some wrong keys a second all the while, of which a slow machine lets each time have more.
async fn guess_until_slowed_down(strangers: &mut [HttpClient]) -> Result<()> {
    for _ in 0..1_000 {
        let answers = join_all(strangers.iter_mut().map(wrong_key)).await;
        let answers: Vec<u16> = answers.into_iter().collect::<Result<_>>()?;
        let refused = answers.iter().filter(|status| **status == 429).count();
        if refused > answers.len() / 2 {
            return Ok(());
        }
    }
    bail!("8 000 wrong keys were not too many")
}

async fn wrong_key(client: &mut HttpClient) -> Result<u16> {
    let key = "x".repeat(32);
    Ok(client.get("/api/v1/stress", &key).await?.status)
}
