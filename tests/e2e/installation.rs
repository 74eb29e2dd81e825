//! The product as a stranger installs it: by the commands of README.md, and then by those that the
//! chart's notes print, beside the installation of the development cluster and with stores of its
//! own.

mod loads;
mod readme;
mod shell;
mod stores;

use std::{net::Ipv4Addr, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use water_e2e::{Cluster, Component, Pod, Water, condition, project};
use water_harness::HttpClient;

use shell::Shell;
use stores::Stores;

const NAMESPACE: &str = "water-as-documented";
const HOST: &str = "as-documented.example";
/// Longer than Helm itself waits.
const INSTALLATION: Duration = Duration::from_secs(310);

/// The gates have 35 s to end, the operator 60, and Kubernetes begins after 5.
const NAMESPACE_GONE: Duration = Duration::from_secs(120);

/// Where the notes turn from the first request to the end of it all.
const BEFORE_AN_UNINSTALL: &str = "\nBefore an uninstall";

/// Addresses that are set aside for examples: in no network that README.md's command trusts.
const STRANGER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const CUSTOMER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 8);

/// Runs README.md's `helm install` and returns the chart's notes.
fn install(cluster: &Cluster, shell: &Shell) -> Result<String> {
    let api = cluster.kubectl.get(&["waterdataapi", water_e2e::RELEASE])?;
    let image = |field: &str| {
        let value = api["spec"]["image"][field].as_str();
        value.with_context(|| format!("the image has no {field}"))
    };
    let commands = readme::filled_in(
        &readme::block_with("helm install")?,
        &[
            ("registry.example/water", image("registry")?),
            ("image.tag=0.1.0", &format!("image.tag={}", image("tag")?)),
            ("--namespace water ", &format!("--namespace {NAMESPACE} ")),
            ("water.example", HOST),
        ],
    )?;
    let printed = shell.run(&commands, &project(), &[])?;
    let notes = printed.split_once("NOTES:\n");
    Ok(notes.context("no notes")?.1.to_owned())
}

/// The lines of a text that are commands; the last of the first part is the request, which needs a
/// name server that knows the host.
fn commands(notes: &str) -> String {
    let lines = notes.lines().filter(|line| line.starts_with("  "));
    let lines = lines.filter(|line| !line.starts_with("  curl "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Removes everything, also what an earlier run left whose stores are gone: no operator can take
/// its finalizers off.
fn remove(cluster: &Cluster, shell: &Shell) -> Result<()> {
    let commands = "
        kubectl -n $NAMESPACE delete apikeys --all --wait=false
        helm -n $NAMESPACE uninstall water-data --ignore-not-found --wait
        water-operator release --all --namespace $NAMESPACE";
    let namespace = [("NAMESPACE", NAMESPACE.to_owned())];
    shell.run(commands, &project(), &namespace)?;
    let namespace = [
        "delete",
        "namespace",
        NAMESPACE,
        "--ignore-not-found",
        "--timeout=120s",
    ];
    cluster.kubectl.run(&namespace).map(drop)
}

#[tokio::test]
async fn the_readmes_commands_install_an_api_that_answers_keeps_its_clients_apart_and_loads_data()
-> Result<()> {
    let cluster = Cluster::alone().await?;
    let shell = Shell::new(&cluster)?;
    remove(&cluster, &shell)?;
    let stores = Stores::start(cluster.own_address().await?).await?;
    stores.prepare(&shell).await?;
    let notes = install(&cluster, &shell)?;
    let (issue, uninstall) = notes
        .split_once(BEFORE_AN_UNINSTALL)
        .context("the notes' end")?;
    let script = format!("{}\necho \"$KEY\"", commands(issue));
    let printed = shell.run(&script, &project(), &[])?;
    let key = printed.lines().last().context("the notes made no key")?;

    let documented = cluster.in_namespace(NAMESPACE, HOST);
    answers_without_data(&documented, key).await?;
    strangers_slow_nobody_else_down(&documented.water, &cluster).await?;
    loads::reach_the_clients(&documented, &shell, key).await?;
    shell.run(&commands(uninstall), &project(), &[])?;
    remove(&cluster, &shell)
}

#[tokio::test]
async fn deleting_the_namespace_of_an_installation_whose_keys_are_in_use_ends() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let shell = Shell::new(&cluster)?;
    remove(&cluster, &shell)?;
    let stores = Stores::start(cluster.own_address().await?).await?;
    stores.prepare(&shell).await?;
    install(&cluster, &shell)?;
    let documented = cluster.in_namespace(NAMESPACE, HOST);
    documented
        .wait_for_api("Ready", "True", INSTALLATION)
        .await?;
    let keys = documented.keys_of_accounts("in-use", 5).await?;
    let gates = Component::Gate.pods(&documented)?;
    for key in &keys {
        assert!(is_accepted_by_any(&gates, key).await?);
    }
    let delete = ["delete", "namespace", NAMESPACE, "--wait=false"];
    documented.kubectl.run(&delete)?;
    let freed = async || {
        let finalizers = finalizers(&documented)?;
        ensure!(finalizers.is_empty(), "{finalizers}");
        Ok(())
    };
    documented
        .wait_until("the ApiKeys to be let go", NAMESPACE_GONE, freed)
        .await?;
    for key in &keys {
        assert!(!is_accepted_by_any(&gates, key).await?, "a key lives on");
    }
    let gone = async || {
        let namespace = [
            "get",
            "namespace",
            NAMESPACE,
            "--ignore-not-found",
            "-o",
            "yaml",
        ];
        let namespace = documented.kubectl.run(&namespace)?;
        ensure!(namespace.is_empty(), "{namespace}");
        Ok(())
    };
    documented
        .wait_until("the end of the namespace", NAMESPACE_GONE, gone)
        .await
}

/// What still holds the ApiKeys that there are.
fn finalizers(cluster: &Cluster) -> Result<String> {
    let finalizers = "jsonpath={.items[*].metadata.finalizers[*]}";
    cluster.kubectl.run(&["get", "apikeys", "-o", finalizers])
}

/// Whether one of these gates accepts a key; one that has ended does not.
async fn is_accepted_by_any(gates: &[Pod], key: &str) -> Result<bool> {
    for gate in gates {
        // Without data an accepted key gets an error, but not 401.
        let answer = gate.water()?.get("/api/v1/stress", key).await;
        if answer.is_ok_and(|answer| answer.status != 401) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// It is Ready and says that data is missing, in its status and in its answers.
async fn answers_without_data(documented: &Cluster, key: &str) -> Result<()> {
    let installed = documented
        .wait_for_api("Ready", "True", INSTALLATION)
        .await?;
    assert_eq!(condition(&installed, "DataLoaded")?, ("False", "NoData"));
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

/// While a stranger tries so many keys that it is slowed down, a customer with a mistyped key is told so.
async fn strangers_slow_nobody_else_down(water: &Water, cluster: &Cluster) -> Result<()> {
    let _own = (
        cluster.with_address(STRANGER)?,
        cluster.with_address(CUSTOMER)?,
    );
    let mut stranger = water.connect_from(STRANGER).await?;
    let mut customer = water.connect_from(CUSTOMER).await?;
    // Fewer than a customer's own forty wrong keys at once.
    for _ in 0..20 {
        guess_until_slowed_down(&mut stranger).await?;
        assert_eq!(wrong_key(&mut customer).await?, 401);
    }
    Ok(())
}

/// Until so many refusals in a row are 429 that every gate has had its turn.
async fn guess_until_slowed_down(stranger: &mut HttpClient) -> Result<()> {
    let mut in_a_row = 0;
    for _ in 0..5_000 {
        in_a_row = if wrong_key(stranger).await? == 429 {
            in_a_row + 1
        } else {
            0
        };
        if in_a_row == 8 {
            return Ok(());
        }
    }
    bail!("5 000 wrong keys were not too many")
}

async fn wrong_key(client: &mut HttpClient) -> Result<u16> {
    let key = "x".repeat(32);
    Ok(client.get("/api/v1/stress", &key).await?.status)
}
