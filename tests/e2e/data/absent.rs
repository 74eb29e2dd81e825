//! An installation into which nothing was loaded is Ready and says that data is missing.

use std::{fs, net::IpAddr, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use water_e2e::{ApiKey, Cluster, condition, text_of};
use water_harness::{Postgres, Redis, programs::Program};

const NAMESPACE: &str = "water-without-data";
const HOST: &str = "without-data.example";
const PASSWORD: &str = "without-data";
const INSTALLATION: Duration = Duration::from_secs(180);

/// The address of this machine at which the cluster's pods reach it.
async fn own_address(cluster: &Cluster) -> Result<IpAddr> {
    Ok(cluster.water.connect().await?.local_address()?.ip())
}

/// A PostgreSQL of its own, with the product's roles and an empty database.
async fn empty_postgres(address: IpAddr) -> Result<(Postgres, Value)> {
    let postgres = Postgres::start_reachable_at(address).await?;
    let bootstrap = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../services/database/bootstrap");
    let mut scripts: Vec<_> = fs::read_dir(bootstrap)?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    scripts.sort();
    let passwords =
        ["owner_password", "writer_password", "reader_password"].map(|name| (name, PASSWORD));
    for script in scripts {
        postgres.psql("postgres", &fs::read_to_string(script)?, &passwords)?;
    }
    let port = postgres.port();
    let url = |role: &str| format!("postgresql://{role}:{PASSWORD}@{address}:{port}/water");
    let urls = json!({
        "owner-url": url("water_owner"),
        "writer-url": url("water_writer"),
        "reader-url": url("water_reader"),
    });
    Ok((postgres, urls))
}

/// A Redis of its own: the users of the other one are for the other installation's keys only.
async fn empty_redis(address: IpAddr) -> Result<(Redis, Value)> {
    let (bind, password) = (
        format!("bind 127.0.0.1 {address}"),
        format!("requirepass {PASSWORD}"),
    );
    let redis = Redis::start_with(&[&bind, &password]).await?;
    let url = format!("redis://default:{PASSWORD}@{address}:{}", redis.port());
    Ok((redis, json!({ "operator-url": url, "gate-url": url })))
}

fn secret(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": data })
}

fn helm(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let mut helm = Command::new(Program::Helm.path()?);
    helm.arg("--kubeconfig")
        .arg(&cluster.environment.kubeconfig)
        .args(["--namespace", NAMESPACE]);
    text_of(&helm.args(arguments).output()?)
}

fn install(cluster: &Cluster, image: &Value) -> Result<()> {
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/water-data");
    let (registry, tag) = (image["registry"].as_str(), image["tag"].as_str());
    let values = [
        format!("image.registry={}", registry.context("no registry")?),
        format!("image.tag={}", tag.context("no tag")?),
        "postgres.existingSecret=postgres".to_owned(),
        "redis.existingSecret=redis".to_owned(),
        format!("api.exposure.ingress.host={HOST}"),
    ];
    let mut arguments = vec![
        "upgrade",
        "--install",
        "water-data",
        chart,
        "--timeout=3m",
        "--skip-crds",
    ];
    arguments.extend(values.iter().flat_map(|value| ["--set-string", value]));
    // One pod each: what is tested is what they say.
    let one = [
        "operator",
        "api.components.gate",
        "api.components.departements",
        "api.components.history",
    ];
    let one = one.map(|part| format!("{part}.replicas=1"));
    arguments.extend(one.iter().flat_map(|value| ["--set", value.as_str()]));
    helm(cluster, &arguments).map(drop)
}

fn remove(cluster: &Cluster) -> Result<()> {
    let kubectl = cluster.kubectl.in_namespace(NAMESPACE);
    // While the operator runs, so that it takes its finalizers off.
    kubectl.run(&["delete", "apikeys", "--all", "--timeout=60s"])?;
    helm(cluster, &["uninstall", "water-data", "--ignore-not-found"])?;
    kubectl.run(&[
        "delete",
        "namespace",
        NAMESPACE,
        "--ignore-not-found",
        "--timeout=120s",
    ])?;
    Ok(())
}

#[tokio::test]
async fn an_install_without_data_is_ready_answers_no_data_and_says_so() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let kubectl = cluster.kubectl.in_namespace(NAMESPACE);
    let api = cluster.kubectl.get(&["waterdataapi", water_e2e::RELEASE])?;
    let address = own_address(&cluster).await?;
    let (_postgres, postgres_urls) = empty_postgres(address).await?;
    let (_redis, redis_urls) = empty_redis(address).await?;
    remove(&cluster)?;
    kubectl.run(&["create", "namespace", NAMESPACE])?;
    kubectl.apply_all(vec![
        secret("postgres", postgres_urls),
        secret("redis", redis_urls),
    ])?;
    install(&cluster, &api["spec"]["image"])?;

    let empty = cluster.in_namespace(NAMESPACE, HOST);
    let installed = empty.wait_for_api("Ready", "True", INSTALLATION).await?;
    assert_eq!(condition(&installed, "DataLoaded")?, ("False", "NoData"));
    let key = empty.issue(&ApiKey::named("nobody")).await?;
    for target in [
        "/api/v1/stress",
        "/api/v1/stress?dept=34",
        "/api/v1/risque",
        "/api/v1/risque?dept=34",
    ] {
        let answer = empty.water.get(target, &key).await?;
        assert_eq!(
            (answer.status, answer.json()?["code"].as_str()),
            (404, Some("no_data")),
            "{target}"
        );
    }
    for target in ["/api/v1/hydrorisk", "/api/v1/conformite"] {
        let history = empty.water.get(target, &key).await?;
        assert_eq!(
            (history.status, history.json()?["total"].as_u64()),
            (200, Some(0)),
            "{target}"
        );
    }
    remove(&cluster)
}
