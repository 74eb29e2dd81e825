//! `cargo dev env`: the variables of the cluster for a shell, and for the tests of the whole system.

use anyhow::Result;

use crate::cluster::{Cluster, NODE_ADDRESS};
use crate::clusters::Clusters;
use crate::credentials::Credentials;
use crate::product::{self, NAMESPACE};
use crate::project::project;
use crate::{binaries, certificates, identity, packages, portal};

/// Prints `export` lines of the development cluster.
pub fn print() -> Result<()> {
    let cluster = Clusters::of_user()?.running_development()?;
    for (name, value) in variables(&cluster)? {
        println!("export {name}='{value}'");
    }
    Ok(())
}

/// Returns names and values; no value holds a quote.
pub fn variables(cluster: &Cluster) -> Result<Vec<(&'static str, String)>> {
    let credentials = Credentials::read(&cluster.folder)?;
    let version = product::installed_version(cluster)?;
    let people = identity::people_json(&credentials).to_string();
    let binaries = project().join(binaries::folder());
    let file = |path: &str| cluster.file(path).display().to_string();
    let key = |name: &str| product::sample_key(cluster, name);
    let fingerprints = certificates::browser_fingerprints(cluster)?;
    Ok(vec![
        ("WATER_URL", format!("http://{NODE_ADDRESS}")),
        ("WATER_API_KEY", key(product::ENTERPRISE)?),
        ("WATER_FREE_API_KEY", key(product::FREE)?),
        ("KUBECONFIG", cluster.kubeconfig().display().to_string()),
        ("WATER_POSTGRES_OWNER_URL", credentials.postgres_owner_url()),
        (
            "WATER_POSTGRES_WRITER_URL",
            credentials.postgres_writer_url(),
        ),
        (
            "WATER_REDIS_ADMINISTRATOR_URL",
            credentials.redis_administrator_url(),
        ),
        // The portal, and a browser's way to it.
        ("WATER_PORTAL_URL", portal::url()),
        ("WATER_OIDC_ISSUER", identity::issuer()),
        ("WATER_PEOPLE", people),
        ("WATER_NODE_ADDRESS", NODE_ADDRESS.into()),
        ("WATER_HOST_RULES", portal::host_rules()),
        ("WATER_CA", file("pki/ca.crt")),
        ("WATER_SPKI_FINGERPRINTS", fingerprints),
        ("WATER_CHROMIUM", packages::CHROMIUM.into()),
        ("WATER_BROWSER_FOLDER", file("browser")),
        // Further variables of the whole-system tests, and the versions that have images: what is installed, and
        // what `cargo dev test` and `cargo dev images` build.
        ("WATER_NAMESPACE", NAMESPACE.into()),
        ("WATER_KUBECTL", file("programs/kubectl")),
        ("WATER_BINARIES", binaries.display().to_string()),
        (
            "WATER_VERSIONS",
            format!("{version} {}", binaries::after(&version)),
        ),
    ])
}
