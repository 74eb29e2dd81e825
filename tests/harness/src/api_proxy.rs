//! The API server over plain HTTP on loopback, with the administrator's rights: `kubectl proxy`.

use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};

use crate::{HttpClient, Port, Process, Program};

const START: Duration = Duration::from_secs(30);

/// A running proxy. It accepts requests to 127.0.0.1 only.
pub struct ApiProxy {
    process: Process,
    port: Port,
}

impl ApiProxy {
    pub(crate) async fn start(kubectl: &Path, kubeconfig: &Path) -> Result<Self> {
        let port = Port::reserve()?;
        let process = Program::new(kubectl)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["proxy", "--address=127.0.0.1"])
            .arg(format!("--port={}", port.number()))
            .start()?;
        let proxy = Self { process, port };
        let answers = async || {
            let mut client = proxy.connect().await?;
            let answer = client.request("GET", "/readyz", &[]).await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        };
        proxy.process.ready(START, answers).await?;
        Ok(proxy)
    }

    /// A connection to the API server.
    pub async fn connect(&self) -> Result<HttpClient> {
        let client = HttpClient::connect(self.port.address()).await?;
        Ok(client.host("127.0.0.1"))
    }
}
