//! `cargo dev env`: what a shell, and the tests of the whole system, need to know of the cluster.

use anyhow::{Context, Result};

use crate::cluster::Cluster;
use crate::clusters::Clusters;
use crate::credentials::Credentials;
use crate::process::run;
use crate::product::{self, NAMESPACE};
use crate::project::project;
use crate::{binaries, certificates, identity, namespace, packages, portal};

/// Prints `export` lines of this checkout's development cluster.
pub fn print() -> Result<()> {
    let cluster = Clusters::of_user()?.running_development()?;
    for (name, value) in variables(&cluster)? {
        println!("export {name}='{value}'");
    }
    Ok(())
}

/// Names and values; no value holds a quote.
pub fn variables(cluster: &Cluster) -> Result<Vec<(&'static str, String)>> {
    let credentials = Credentials::read(&cluster.folder)?;
    let gate = [
        "--namespace",
        NAMESPACE,
        "get",
        "service/water-data-gate",
        "--output=jsonpath={.spec.clusterIP}",
    ];
    let gate = run(cluster.kubectl().args(gate))
        .context("the product is not installed: `cargo dev up` installs it")?;
    let init = namespace::init_process(cluster)?.context("the cluster is not running")?;
    let version = product::installed_version(cluster)?;
    let file = |path: &str| cluster.file(path).display().to_string();
    Ok(vec![
        ("WATER_URL", format!("http://{}", cluster.node_address())),
        ("WATER_GATE_URL", format!("http://{gate}")),
        (
            "WATER_API_KEY",
            product::sample_key(cluster, product::ENTERPRISE)?,
        ),
        (
            "WATER_FREE_API_KEY",
            product::sample_key(cluster, product::FREE)?,
        ),
        ("KUBECONFIG", cluster.kubeconfig().display().to_string()),
        (
            "WATER_POSTGRES_OWNER_URL",
            credentials.postgres_owner_url(cluster),
        ),
        (
            "WATER_POSTGRES_WRITER_URL",
            credentials.postgres_writer_url(cluster),
        ),
        (
            "WATER_POSTGRES_READER_URL",
            credentials.postgres_reader_url(cluster),
        ),
        (
            "WATER_REDIS_OPERATOR_URL",
            credentials.redis_operator_url(cluster),
        ),
        ("WATER_REDIS_GATE_URL", credentials.redis_gate_url(cluster)),
        (
            "WATER_REDIS_ADMINISTRATOR_URL",
            credentials.redis_administrator_url(cluster),
        ),
        // The portal, and what a browser needs to come to it.
        ("WATER_PORTAL_URL", portal::url()),
        ("WATER_OIDC_ISSUER", identity::issuer(cluster)),
        (
            "WATER_PEOPLE",
            identity::people_json(&credentials).to_string(),
        ),
        ("WATER_NODE_ADDRESS", cluster.node_address()),
        ("WATER_HOST_RULES", portal::host_rules(cluster)),
        ("WATER_CA", file("pki/ca.crt")),
        (
            "WATER_SPKI_FINGERPRINTS",
            certificates::browser_fingerprints(cluster)?,
        ),
        ("WATER_CHROMIUM", packages::CHROMIUM.into()),
        ("WATER_BROWSER_FOLDER", file("browser")),
        ("WATER_NAMESPACE", NAMESPACE.into()),
        // What the whole-system tests need besides: tools, the process whose descendants they kill,
        // and the tag of images to roll to, which `cargo dev test` and `cargo dev images` build.
        ("WATER_KUBECTL", file("programs/kubectl")),
        ("WATER_HELM", file("programs/helm")),
        (
            "WATER_BINARIES",
            project().join(binaries::folder()).display().to_string(),
        ),
        ("WATER_NODE_INIT_PID", init.to_string()),
        ("WATER_NEXT_TAG", binaries::after(&version)),
    ])
}
