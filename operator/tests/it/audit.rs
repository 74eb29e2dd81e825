//! What the operator asked of the API server, from its audit log.

use anyhow::{Result, ensure};
use serde_json::Value;
use water_harness::Process;

use crate::rights::ACCOUNT;
use crate::world::{PATIENCE, World};

impl World {
    /// Stops an operator, starts another, and after two of its passes looks for writes, and for keys'
    /// Secrets that were read.
    pub async fn assert_restart_writes_nothing(&self, operator: &Process) -> Result<()> {
        operator.stop(PATIENCE).await?;
        let (passes, writes, reads) = (self.passes()?, self.writes()?, self.secrets_read()?);
        let next = self.operator("operator-next")?;
        let passed = async || {
            let now = self.passes()?;
            ensure!(now >= passes + 2, "{passes} passes before, {now} since");
            Ok(())
        };
        self.wait("two passes of the next operator", PATIENCE, passed)
            .await?;
        next.stop(PATIENCE).await?;
        let now = self.writes()?;
        ensure!(
            now == writes,
            "written after the restart: {:?}",
            now.get(writes.len()..)
        );
        let read = self.secrets_read()?;
        ensure!(read == reads, "{} keys' Secrets were read", read - reads);
        Ok(())
    }

    /// How often the Secret of a key was read.
    fn secrets_read(&self) -> Result<usize> {
        let is_read = |event: &&Value| {
            let object = &event["objectRef"];
            let name = object["name"].as_str().unwrap_or_default();
            event["verb"] == "get"
                && object["resource"] == "secrets"
                && object["namespace"] == self.namespace.as_str()
                && event["user"]["username"] == self.user().as_str()
                && name.ends_with("-apikey")
        };
        Ok(self.cluster.audit_events()?.iter().filter(is_read).count())
    }

    /// As whom the operator asks.
    fn user(&self) -> String {
        format!("system:serviceaccount:{}:{ACCOUNT}", self.namespace)
    }

    /// How often the operators' Lease was read.
    pub fn lease_looks(&self) -> Result<usize> {
        let is_look = |event: &&Value| {
            event["verb"] == "get"
                && event["objectRef"]["resource"] == "leases"
                && event["user"]["username"] == self.user().as_str()
        };
        Ok(self.cluster.audit_events()?.iter().filter(is_look).count())
    }

    /// How many passes over WaterDataApis there were: each lists its Ingresses once.
    pub fn passes(&self) -> Result<usize> {
        let is_look = |event: &&Value| {
            event["verb"] == "list"
                && event["objectRef"]["resource"] == "ingresses"
                && event["objectRef"]["namespace"] == self.namespace.as_str()
                && event["requestURI"]
                    .as_str()
                    .is_some_and(|uri| uri.contains("instance"))
        };
        Ok(self.cluster.audit_events()?.iter().filter(is_look).count())
    }

    /// Who wrote what in the test's namespace, as `<verb> <resource>/<name>`, but for the Lease.
    pub fn writes(&self) -> Result<Vec<String>> {
        let user = self.user();
        let events = self.cluster.audit_events()?;
        let is_write = |event: &&Value| {
            let verb = event["verb"].as_str().unwrap_or_default();
            event["user"]["username"] == user.as_str()
                && ["create", "update", "patch", "delete"].contains(&verb)
                && event["objectRef"]["resource"] != "leases"
        };
        let text = |event: &Value| {
            let (verb, object) = (&event["verb"], &event["objectRef"]);
            format!(
                "{verb} {}/{} {}",
                object["resource"], object["name"], object["subresource"]
            )
            .replace('"', "")
        };
        Ok(events.iter().filter(is_write).map(text).collect())
    }
}
