//! A new version, a new password and new identity keys under load: no request fails, and each is answered promptly.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use water_e2e::load::{self, TARGETS};
use water_e2e::{Cluster, Component, RELEASE};

use crate::rollout::{SERVING, has_sessions, patch, roll, roll_version};

/// Components behind the API that read the database.
const READING: [Component; 2] = [Component::Departements, Component::History];
/// Name, in the Secret, of the URL by which they read it.
const READER_URL: &str = "reader-url";

/// Returns the URL by which the services read the database, in the Secret of that name.
fn readers_url(cluster: &Cluster, secret: &str) -> Result<String> {
    let secret = cluster.kubectl.get(&format!("secret/{secret}"))?;
    let url = secret["data"][READER_URL].as_str().context("no URL")?;
    Ok(String::from_utf8(BASE64.decode(url)?)?)
}

/// Changes the password in PostgreSQL and then in the Secret.
fn change_password(cluster: &Cluster, secret: &str, password: &str) -> Result<()> {
    let url = cluster.change_readers_password(&readers_url(cluster, secret)?, password)?;
    let changed = json!({ "data": { READER_URL: BASE64.encode(url) } });
    let secret = format!("secret/{secret}");
    cluster.kubectl.patch(&secret, &changed).map(drop)
}

/// The services' URL of the database, with its password, as it was: dropped, this puts both back and does not wait for
/// the pods.
struct KeptPassword<'a> {
    cluster: &'a Cluster,
    secret: &'a str,
    url: String,
}

impl KeptPassword<'_> {
    fn put_back(&self) -> Result<()> {
        let password = self.url.split(['@', ':']).nth(2).context("no password")?;
        change_password(self.cluster, self.secret, password)
    }
}

impl Drop for KeptPassword<'_> {
    fn drop(&mut self) {
        let put_back = || match readers_url(self.cluster, self.secret)? == self.url {
            true => Ok(()),
            false => self.put_back(),
        };
        if let Err(error) = put_back() {
            println!("the password could not be put back: {error:#}");
        }
    }
}

/// Asks for new identity keys. Gates and services are rolled one after the other; a request that one signs is
/// believed by the other all the while.
async fn rotate_identity(cluster: &Cluster) -> Result<()> {
    let secret = format!("secret/{RELEASE}-identity");
    let identity = || cluster.kubectl.get(&secret);
    let before = identity()?;
    let keys = &before["data"];
    // Any word that was not there before.
    let word = &before["metadata"]["resourceVersion"];
    let asked = json!({ "metadata": { "annotations": { "waterdata.dev/rotate-identity": word } } });
    let rotate = || patch(cluster, &asked);
    roll(
        cluster,
        "new identity keys everywhere",
        &SERVING,
        rotate,
        |_| {
            let now = &identity()?["data"];
            let old = [&keys["current"], &keys["next"]];
            let rotated = now["current"] == keys["next"] && !old.contains(&&now["next"]);
            ensure!(rotated, "the Secret's keys are not rotated");
            Ok(())
        },
    )
    .await
}

/// Sets another password for a while. Sessions at the database that are open serve on, and the pods that the Secret
/// rolls know the new password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_31_passwords_identity_keys_and_a_version_roll_under_load_without_a_failed_request()
-> Result<()> {
    let cluster = Cluster::alone().await?;
    let api = cluster.api()?;
    let secret = api["spec"]["postgres"]["secretRef"]["name"].as_str();
    let secret = secret.context("no Secret")?;
    let usual = KeptPassword {
        url: readers_url(&cluster, secret)?,
        cluster: &cluster,
        secret,
    };
    let keys = cluster.load_keys().await?;
    let load = load::Load::evenly(&cluster.water, 200, keys, &TARGETS).promptly();
    let rolling = async {
        has_sessions(&cluster).await?;
        let another = || change_password(&cluster, secret, "another");
        roll(&cluster, "the new password", &READING, another, |_| Ok(())).await?;
        let back = || usual.put_back();
        roll(&cluster, "the old password", &READING, back, |_| Ok(())).await?;
        rotate_identity(&cluster).await?;
        roll_version(&cluster).await
    };
    let (version, report) = load::send_during(load, rolling).await?;
    println!("password, identity keys and {version}: {report}");
    report.without_failures()
}
