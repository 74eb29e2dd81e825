//! Requests of the operator to the API server, from its audit log.

use anyhow::{Result, ensure};
use serde_json::Value;
use water_harness::Process;

use crate::steps::until;
use crate::world::{PATIENCE, World};

/// Number of requests of this kind for a resource.
fn times(world: &World, verb: &str, resource: &str, is: impl Fn(&Value) -> bool) -> Result<usize> {
    let asked = world.requests(|event| {
        event["verb"] == verb && event["objectRef"]["resource"] == resource && is(event)
    });
    Ok(asked?.len())
}

/// Number of reads of the operators' Lease.
pub fn lease_looks(world: &World) -> Result<usize> {
    times(world, "get", "leases", |_| true)
}

/// Number of lists of pods.
pub fn pods_listed(world: &World) -> Result<usize> {
    times(world, "list", "pods", |_| true)
}

/// Number of passes over WaterDataApis: each lists its Ingresses once.
pub fn passes(world: &World) -> Result<usize> {
    times(world, "list", "ingresses", |event| {
        let uri = event["requestURI"].as_str().unwrap_or_default();
        event["objectRef"]["namespace"] == world.namespace.as_str() && uri.contains("instance")
    })
}

/// Waits until two passes more have been made.
pub async fn passed(world: &World) -> Result<()> {
    let before = passes(world)?;
    until(world, "two passes", async || {
        let now = passes(world)?;
        ensure!(now >= before + 2, "{before} passes, now {now}");
        Ok(())
    })
    .await
}

/// Number of reads of keys' Secrets.
fn secrets_read(world: &World) -> Result<usize> {
    times(world, "get", "secrets", |event| {
        let name = event["objectRef"]["name"].as_str().unwrap_or_default();
        name.ends_with("-apikey")
    })
}

/// Writes, as `<verb> <resource>/<name>`, but for the Lease.
pub fn writes(world: &World) -> Result<Vec<String>> {
    let writes = world.requests(|event| {
        let verb = event["verb"].as_str().unwrap_or_default();
        let is_write = ["create", "update", "patch", "delete"].contains(&verb);
        is_write && event["objectRef"]["resource"] != "leases"
    });
    let text = |event: &Value| {
        let (verb, object) = (&event["verb"], &event["objectRef"]);
        let (resource, name, part) = (&object["resource"], &object["name"], &object["subresource"]);
        format!("{verb} {resource}/{name} {part}").replace('"', "")
    };
    Ok(writes?.iter().map(text).collect())
}

/// Stops an operator, starts another, and after two of its passes looks for writes, and for keys' Secrets
/// that were read.
pub async fn restart_writes_nothing(world: &World, operator: &Process) -> Result<()> {
    operator.stop(PATIENCE).await?;
    let (before, reads) = (writes(world)?, secrets_read(world)?);
    let next = world.operator("operator-next")?;
    passed(world).await?;
    next.stop(PATIENCE).await?;
    let after = writes(world)?;
    ensure!(after == before, "written: {:?}", after.get(before.len()..));
    let read = secrets_read(world)? - reads;
    ensure!(read == 0, "{read} keys' Secrets were read");
    Ok(())
}
