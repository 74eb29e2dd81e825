//! The operator's own binary, as its pod would run it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use water_harness::{HttpClient, Port, Process, Program, wait_until};

use super::api::NAMESPACE;
use crate::binary::beside;
use crate::cpu;

/// Longer than a start or a stop takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// A running operator.
pub struct Operator {
    process: Process,
    admin: Port,
}

impl Operator {
    /// Starts the operator as the pod of that name.
    pub fn start(kubeconfig: &Path, pod: &str) -> Result<Self> {
        let admin = Port::reserve()?;
        let process = Program::new(beside("water-operator")?)
            .arg("run")
            .env("KUBECONFIG", kubeconfig)
            .env("WATER_POD_NAME", pod)
            .env("WATER_POD_NAMESPACE", NAMESPACE)
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string())
            .start()?;
        Ok(Self { process, admin })
    }

    /// Installs the custom resource definitions.
    pub async fn install_definitions(kubeconfig: &Path) -> Result<()> {
        let apply = Program::new(beside("water-operator")?)
            .args(["crd", "apply"])
            .env("KUBECONFIG", kubeconfig)
            .start()?;
        let status = apply.ended(SOON).await?;
        ensure!(status.success(), "{}", apply.log());
        Ok(())
    }

    /// Its CPU time so far.
    pub fn cpu_time(&self) -> Result<Duration> {
        cpu::time(self.process.id())
    }

    /// The most memory that it has had, in MiB.
    pub fn peak_memory(&self) -> Result<f64> {
        Ok(mebibytes(cpu::peak_memory(self.process.id())?))
    }

    /// The memory that it has, in MiB.
    pub fn memory(&self) -> Result<f64> {
        Ok(mebibytes(cpu::resident_memory(self.process.id())?))
    }

    /// Waits until its pod would be ready: a rollout ends no leader before.
    pub async fn stands_by(&self) -> Result<()> {
        let ready = async || {
            let mut client = HttpClient::connect(self.admin.address()).await?;
            let answer = client.request("GET", "/ready", &[]).await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        };
        self.process.ready(SOON, ready).await
    }

    /// Waits until it leads.
    pub async fn leads(&self) -> Result<()> {
        self.logs("\"leading\"").await
    }

    async fn logs(&self, message: &str) -> Result<()> {
        wait_until(message, SOON, async || {
            let is_logged = self.process.log().contains(message);
            ensure!(is_logged, "{}", self.process.log_end());
            Ok(())
        })
        .await
    }

    /// Asks it to stop, and waits until it has.
    pub async fn stop(&self) -> Result<()> {
        let status = self.process.stop(SOON).await?;
        ensure!(status.success(), "{status}: {}", self.process.log_end());
        Ok(())
    }

    /// Ends it at once.
    pub fn kill(&self) -> Result<()> {
        self.process.kill()
    }

    /// The last lines of its log, for a message.
    pub fn log_end(&self) -> String {
        self.process.log_end()
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
