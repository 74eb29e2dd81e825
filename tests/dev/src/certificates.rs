//! The cluster's certificates and kubeconfigs.
//!
//! Two authorities: one for the cluster, one for the front proxy by which the API server calls its extensions
//! (<https://kubernetes.io/docs/setup/best-practices/certificates/>).

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result};
use water_harness::certificates::{
    Authority, Purpose, public_key_fingerprint, write_private, write_token_keys,
};

use crate::cluster::{API_SERVER, Cluster, HOST, KUBERNETES_ADDRESS, NODE, NODE_ADDRESS};

/// The ingress controller's certificate and key, without their extensions.
pub const INGRESS: &str = "ingress";

/// The identity provider's certificate and key, without their extensions.
pub const IDENTITY: &str = "identity";

/// A group whose members RBAC never asks.
const MASTERS: Option<&str> = Some("system:masters");

/// Makes all certificates, once: the folder appears complete by a rename.
pub fn make(cluster: &Cluster) -> Result<()> {
    let finished = cluster.file("pki");
    if finished.exists() {
        return Ok(());
    }
    let folder = cluster.file("pki.unfinished");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove unfinished certificates")?;
    }
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .context("cannot make the folder of certificates")?;
    write_all(&folder)?;
    fs::rename(folder, finished).context("cannot put the certificates in their place")
}

fn write_all(folder: &Path) -> Result<()> {
    let authority = Authority::new("water-data-development")?;
    authority.write(folder, "ca")?;
    let front_authority = Authority::new("water-data-development-front-proxy")?;
    front_authority.write(folder, "front-ca")?;

    let names = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
        "127.0.0.1",
        NODE_ADDRESS,
        KUBERNETES_ADDRESS,
    ];
    authority
        .sign("kube-apiserver", None, &names, Purpose::Server)?
        .write(folder, "apiserver")?;
    authority
        .sign(
            "kube-apiserver-kubelet-client",
            MASTERS,
            &[],
            Purpose::Client,
        )?
        .write(folder, "kubelet-client")?;
    front_authority
        .sign("front-proxy-client", None, &[], Purpose::Client)?
        .write(folder, "front-client")?;
    write_token_keys(folder, "sa")?;
    for (file, names) in [
        (INGRESS, &[HOST, NODE_ADDRESS][..]),
        (IDENTITY, &[NODE_ADDRESS]),
    ] {
        authority
            .sign(names[0], None, names, Purpose::Server)?
            .write(folder, file)?;
    }

    for (file, user, group) in [
        ("admin", "admin", MASTERS),
        ("controller-manager", "system:kube-controller-manager", None),
        ("scheduler", "system:kube-scheduler", None),
        ("proxy", "system:kube-proxy", None),
    ] {
        let certificate = authority.sign(user, group, &[], Purpose::Client)?;
        write_kubeconfig(
            folder,
            file,
            &authority.kubeconfig(API_SERVER, &certificate),
        )?;
    }
    // The kubelet serves as well: logs, exec and metrics come from it.
    let kubelet = authority.sign(
        &format!("system:node:{NODE}"),
        Some("system:nodes"),
        &[NODE, NODE_ADDRESS],
        Purpose::Both,
    )?;
    kubelet.write(folder, "kubelet")?;
    write_kubeconfig(
        folder,
        "kubelet",
        &authority.kubeconfig(API_SERVER, &kubelet),
    )
}

/// Returns the keys that a browser has to trust, by their fingerprints.
pub fn browser_fingerprints(cluster: &Cluster) -> Result<String> {
    let fingerprint = |name: &str| {
        let file = cluster.file("pki").join(name).with_extension("key");
        let key =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        public_key_fingerprint(&key)
    };
    Ok([fingerprint(INGRESS)?, fingerprint(IDENTITY)?].join(","))
}

fn write_kubeconfig(folder: &Path, name: &str, kubeconfig: &str) -> Result<()> {
    write_private(&folder.join(name).with_extension("kubeconfig"), kubeconfig)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn certificates_are_made_once_and_readable_by_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster {
            folder: folder.path().to_owned(),
        };
        make(&cluster).unwrap();
        let first = fs::read(cluster.kubeconfig()).unwrap();
        make(&cluster).unwrap();
        assert_eq!(fs::read(cluster.kubeconfig()).unwrap(), first);
        let mode = fs::metadata(cluster.kubeconfig()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }
}
