//! A real API server with the chart's rights for the portal, and the ApiKeys of many accounts. There is no
//! operator: what it would write of the listed keys is written here.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use water_harness::{ControlPlane, scratch_directory};

use super::scale::Scale;
use crate::chart;
use crate::operator::api::{Api, NAMESPACE, Session};

/// The WaterDataApi.
pub const INSTALLATION: &str = "water-data";
/// The account whose keys are listed.
pub const ACCOUNT: &str = "acme";
/// The plan of all accounts.
pub const PLAN: &str = "Enterprise";
/// The ServiceAccount that the chart makes for the portal.
const PORTAL: &str = "water-data-portal";
/// Requests under way while the ApiKeys are made.
const CONNECTIONS: usize = 32;
/// Keys that each other account has: as many as an account may have.
const KEYS_EACH: usize = 20;
/// What the chart wants to know of a portal; nothing of it is in the rights.
const VALUES: [&str; 5] = [
    "api.exposure.ingress.host=water.example",
    "portal.enabled=true",
    "portal.url=https://water.example",
    "portal.oidc.issuer=https://id.example",
    "portal.oidc.existingSecret=portal-client",
];

/// The API server and what it holds.
pub struct Cluster {
    /// The server.
    pub control_plane: ControlPlane,
    /// The version of Kubernetes.
    pub version: String,
}

impl Cluster {
    /// Starts the API server, and makes all ApiKeys.
    pub async fn start(scale: Scale) -> Result<Self> {
        let control_plane = ControlPlane::start().await?;
        define(&control_plane)?;
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        control_plane.apply(&namespace.to_string())?;
        control_plane.apply(&chart::rendered(NAMESPACE, "portal", &VALUES)?)?;
        control_plane.apply(&installation().to_string())?;
        let api = Api::new(&control_plane);
        eprintln!("making {} ApiKeys", scale.others + scale.keys);
        let others = async |session: &mut Session, number: usize| {
            let account = format!("account-{:04}", number / KEYS_EACH);
            create(session, &account, number).await.map(drop)
        };
        api.each(CONNECTIONS, scale.others, others).await?;
        let listed = async |session: &mut Session, number: usize| {
            let made = create(session, ACCOUNT, scale.others + number).await?;
            session.tell(&made.name, &in_force(&made)).await
        };
        api.each(CONNECTIONS, scale.keys, listed).await?;
        let (made, expected) = (api.count().await?, scale.others + scale.keys);
        ensure!(made == expected, "there are {made} ApiKeys, not {expected}");
        Ok(Self {
            version: api.version().await?,
            control_plane,
        })
    }

    /// A file with the portal's rights.
    pub fn kubeconfig(&self) -> Result<PathBuf> {
        let file = scratch_directory("portal")?.join("kubeconfig");
        fs::write(&file, self.control_plane.kubeconfig_of(NAMESPACE, PORTAL)?)?;
        Ok(file)
    }

    /// A token with the portal's rights.
    pub fn token(&self) -> Result<String> {
        let namespace = format!("--namespace={NAMESPACE}");
        let create = ["create", "token", PORTAL, "--duration=24h", &namespace];
        self.control_plane.kubectl(&create)
    }
}

/// Installs the custom resource definitions.
fn define(control_plane: &ControlPlane) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    for kind in ["apikeys", "waterdataapis"] {
        let file = folder.join(kind).with_extension("yaml");
        control_plane.apply(&fs::read_to_string(file)?)?;
        let definition = format!("crd/{kind}.waterdata.dev");
        let established = ["wait", "--for=condition=Established", "--timeout=60s"];
        control_plane.kubectl(&[&established[..], &[&definition]].concat())?;
    }
    Ok(())
}

fn installation() -> Value {
    json!({
        "apiVersion": "waterdata.dev/v1", "kind": "WaterDataApi",
        "metadata": { "name": INSTALLATION, "namespace": NAMESPACE },
        "spec": {
            "image": { "registry": "registry.example/water", "tag": "1.2.3" },
            "postgres": { "secretRef": { "name": "postgres" } },
            "redis": { "secretRef": { "name": "redis" } },
            "plans": [{
                "name": PLAN, "access": "Allowed", "requestsPerMinute": 120, "requestsPerDay": 50_000,
            }],
        },
    })
}

/// A key that was made in a browser.
struct Made {
    name: String,
    sha256: String,
    key_id: String,
}

/// Creates the key of this number as the portal does.
async fn create(session: &mut Session, account: &str, number: usize) -> Result<Made> {
    let sha256 = hex::encode(Sha256::digest(format!("key {number}")));
    let made = Made {
        name: format!("{account}-{}", &sha256[..10]),
        key_id: sha256[..12].to_owned(),
        sha256,
    };
    let metadata = json!({
        "name": made.name,
        "labels": { "app.kubernetes.io/managed-by": "water-portal" },
        "annotations": { "waterdata.dev/requested-by": account },
    });
    let spec = json!({
        "accountId": account, "plan": PLAN, "apiRef": { "name": INSTALLATION },
        "description": format!("Nightly import {number}"),
        "expirationTime": "2120-01-01T00:00:00Z",
        "material": { "hash": { "sha256": made.sha256, "keyId": made.key_id } },
    });
    session.create_as(&metadata, &spec).await?;
    Ok(made)
}

/// What the operator writes once every gate knows the key.
fn in_force(made: &Made) -> Value {
    json!({
        "observedGeneration": 1,
        "api": { "namespace": NAMESPACE, "name": INSTALLATION },
        "keyId": made.key_id,
        "current": {
            "revision": 0, "hash": made.sha256, "keyId": made.key_id,
            "issuedTime": "2026-01-01T00:00:00Z",
        },
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Active", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        }],
    })
}
