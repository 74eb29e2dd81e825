//! API servers with the definitions of the custom resources.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::sync::OnceCell;
use water_harness::{ControlPlane, Program};

use super::objects::Objects;
use crate::built;

/// Long enough for a busy machine; what is fast is measured elsewhere.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// The operator's program.
pub const OPERATOR: &str = "water-operator";

/// Returns the shared API server, with the custom resources that the operator's own command installed.
pub(super) async fn cluster() -> Result<&'static ControlPlane> {
    static READY: OnceCell<&'static ControlPlane> = OnceCell::const_new();
    let start = async || {
        let cluster = ControlPlane::shared().await?;
        install_definitions(cluster).await?;
        Ok(cluster)
    };
    READY.get_or_try_init(start).await.copied()
}

/// Owner of a test's own API server, whose processes end with it, after a panic too. What is left of it is memory, so
/// that worlds refer to it as to the shared one.
pub(super) struct Own(&'static ControlPlane);

impl Own {
    /// Installs the definitions.
    pub(super) async fn prepared(cluster: ControlPlane) -> Result<Arc<Self>> {
        let own = Arc::new(Self(Box::leak(Box::new(cluster))));
        install_definitions(own.cluster()).await?;
        Ok(own)
    }

    /// Returns the API server, which answers nothing once its owner is gone.
    pub(super) fn cluster(&self) -> &'static ControlPlane {
        self.0
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Installs the definitions by the operator's own command, as the chart's hook does it.
pub async fn install_definitions(cluster: &ControlPlane) -> Result<()> {
    let apply = Program::new(built(OPERATOR))
        .args(["crd", "apply"])
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .start()?;
    let status = apply.ended(PATIENCE).await?;
    let log = apply.log();
    ensure!(status.success(), "crd apply ended with {status}:\n{log}");
    Ok(())
}

/// Creates a namespace.
pub(super) fn create_namespace(cluster: &ControlPlane, name: &str) -> Result<()> {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    Objects::new(cluster, name).apply(&namespace)
}
