//! Lists of kubectl, and waits of Helm: `helm install --wait` asks kstatus, as Flux does.

use std::fs;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tokio::try_join;
use water_harness::{Process, Program, scratch_directory};

use crate::Result;
use crate::rights::helm;
use crate::steps::{message, rotating};
use crate::world::{API, PATIENCE, World, api, brought, key, shown};

/// `helm install --wait` of a chart that holds one object.
fn install(world: &World, object: &Value, timeout: &str) -> anyhow::Result<Process> {
    let chart = scratch_directory("chart")?;
    fs::create_dir(chart.join("templates"))?;
    let head = "{apiVersion: v2, name: one-object, version: 0.1.0}";
    fs::write(chart.join("Chart.yaml"), head)?;
    fs::write(chart.join("templates/object.yaml"), object.to_string())?;
    let place = ["--namespace", &world.namespace, "--timeout", timeout];
    Program::new(helm()?)
        .args(["install", "--wait", "one-object"])
        .arg(chart)
        .args(place)
        .env("KUBECONFIG", world.cluster.kubeconfig_path())
        .start()
}

/// Has Helm wait in vain for an object that no operator looks at, until it says at its end that the object is in
/// progress. One whose time was over before it had looked at the object gets more of it, in another world.
async fn in_progress(namespace: &str, object: Value) -> anyhow::Result<World> {
    let mut said = String::new();
    for seconds in [10, 30, 90] {
        let world = World::new(&format!("{namespace}-{seconds}")).await?;
        let helm = install(&world, &object, &format!("{seconds}s"))?;
        let status = helm.ended(PATIENCE).await?;
        said = helm.log();
        ensure!(!status.success(), "Helm took it for ready:\n{said}");
        if said.contains("InProgress") {
            return Ok(world);
        }
        println!("Helm has seen no progress in {seconds} s: {said}");
    }
    bail!("Helm has seen no progress:\n{said}")
}

#[tokio::test]
async fn helm_waits_for_objects_that_no_operator_has_looked_at() -> Result {
    let (world, _) = try_join!(
        in_progress("nobody-looks", key("acme")),
        in_progress("nobody-looks-either", api()),
    )?;
    let fresh = world.get("apikey/acme")?;
    assert_eq!(fresh["status"]["observedGeneration"], -1);
    Ok(())
}

#[tokio::test]
async fn helm_returns_when_a_key_and_its_api_are_ready() -> Result {
    let world = World::new("helm-waits").await?;
    // Applied before its WaterDataApi: it waits, and has not failed.
    let key = install(&world, &key("acme"), "180s")?;
    let _operator = world.operator("operator-0")?;
    let ambiguous = "True/ApiAmbiguous";
    world
        .condition("apikey/acme", "Reconciling", ambiguous)
        .await?;
    world.apply(&api())?;
    let status = key.ended(PATIENCE).await?;
    ensure!(status.success(), "{}", key.log());
    assert_eq!(shown(&world.get("apikey/acme")?, "Ready"), "True/Active");
    Ok(())
}

#[tokio::test]
async fn keys_are_found_by_account_plan_and_key_id() -> Result {
    let (world, _operator) = World::running("selectors").await?;
    let mut other = brought("other", 'd');
    other["spec"]["accountId"] = "globex".into();
    other["spec"]["plan"] = "Free".into();
    world.apply(&other)?;
    world.in_force(&brought("acme", 'c')).await?;
    let acme = "apikey.waterdata.dev/acme";
    for (selector, wanted) in [
        ("spec.accountId=acme", acme),
        ("spec.accountId!=globex,spec.plan=Enterprise", acme),
        ("status.keyId=cccccccccccc", acme),
        ("spec.accountId=acme,spec.plan=Free", ""),
    ] {
        let selected = format!("--field-selector={selector}");
        let found = world.kubectl(&["get", "apikeys", "--output=name", &selected])?;
        assert_eq!(found, wanted, "{selector}");
    }
    Ok(())
}

#[tokio::test]
async fn wide_output_adds_what_a_support_case_asks_for() -> Result {
    let (world, _operator) = World::running("wide").await?;
    let ready = world
        .in_force(&rotating(json!({ "periodSeconds": 864_000 })))
        .await?;
    let columns = |object: &str, more: &[&str]| -> anyhow::Result<Vec<String>> {
        let table = world.kubectl(&[&["get", object][..], more].concat())?;
        let head = table.lines().next().context("a head")?;
        Ok(head.split_whitespace().map(str::to_owned).collect())
    };
    let narrow = columns("apikey/acme", &[])?;
    let expected = "NAME ACCOUNT PLAN READY REASON KEY-ID EXPIRES LAST-USED AGE";
    assert_eq!(narrow.join(" "), expected);
    let api = columns(&format!("waterdataapi/{API}"), &[])?;
    assert_eq!(api.join(" "), "NAME VERSION READY REASON DATA KEYS AGE");
    let wide = columns("apikey/acme", &["--output=wide"])?;
    assert_eq!(wide[narrow.len()..], ["SECRET", "ROTATES", "MESSAGE"]);
    let table = world.kubectl(&["get", "apikey/acme", "--output=wide"])?;
    let rotates = ready["status"]["nextRotationTime"].as_str();
    let cells = [
        "acme-apikey",
        rotates.context("a time")?,
        &message(&ready, "Ready"),
    ];
    let is_shown = table.trim_end().ends_with(&cells.join("   "));
    assert!(is_shown, "{cells:?}\n{table}");
    let wide = columns(&format!("waterdataapi/{API}"), &["--output=wide"])?;
    assert_eq!(wide.last().map(String::as_str), Some("MESSAGE"));
    Ok(())
}
