//! The operator's own binary, as its pod would run it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use water_harness::{Port, Process, Program, wait_until};

use super::api::NAMESPACE;
use crate::cpu;
use crate::programs::{find, until_ready};

/// Longer than a start or a stop takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Running operator.
pub struct Operator {
    process: Process,
    admin: Port,
}

impl Operator {
    /// Starts the operator as the pod of that name.
    pub fn start(kubeconfig: &Path, pod: &str) -> Result<Self> {
        let admin = Port::reserve()?;
        let process = Program::new(find("water-operator")?)
            .arg("run")
            .env("KUBECONFIG", kubeconfig)
            .env("WATER_POD_NAME", pod)
            .env("WATER_POD_NAMESPACE", NAMESPACE)
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string())
            .restarts()
            .start()?;
        Ok(Self { process, admin })
    }

    /// Installs the custom resource definitions.
    pub async fn install_definitions(kubeconfig: &Path) -> Result<()> {
        let apply = Program::new(find("water-operator")?)
            .args(["crd", "apply"])
            .env("KUBECONFIG", kubeconfig)
            .start()?;
        let status = apply.ended(SOON).await?;
        ensure!(status.success(), "{}", apply.log());
        Ok(())
    }

    /// CPU time so far.
    pub fn cpu_time(&self) -> Result<Duration> {
        cpu::time(self.process.id())
    }

    /// Most memory that it has had, in MiB.
    pub fn peak_memory(&self) -> Result<f64> {
        Ok(mebibytes(cpu::peak_memory(self.process.id())?))
    }

    /// Memory that it has, in MiB.
    pub fn memory(&self) -> Result<f64> {
        Ok(mebibytes(cpu::resident_memory(self.process.id())?))
    }

    /// Waits until its pod would be ready: a rollout ends no leader before.
    pub async fn stands_by(&self) -> Result<()> {
        until_ready(&self.process, &self.admin).await
    }

    /// Waits until it leads.
    pub async fn leads(&self) -> Result<()> {
        wait_until("a new leader", SOON, async || {
            let is_leading = self.process.log().contains("\"leading\"");
            ensure!(is_leading, "{}", self.process.log_end());
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

    /// Last lines of its log, for a message.
    pub fn log_end(&self) -> String {
        self.process.log_end()
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
