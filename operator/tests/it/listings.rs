//! What kubectl lists, and what Helm waits for: `helm install --wait` asks kstatus, as Flux does.

use std::fs;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use water_harness::{Process, Program, scratch_directory};

use crate::Result;
use crate::rights::helm;
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

#[tokio::test]
async fn helm_waits_for_objects_that_no_operator_has_looked_at() -> Result {
    let world = World::new("nobody-looks").await?;
    let installs = [
        install(&world, &key("acme"), "20s")?,
        install(&World::new("nobody-looks-either").await?, &api(), "20s")?,
    ];
    for helm in installs {
        let status = helm.ended(PATIENCE).await?;
        ensure!(!status.success(), "Helm took it for ready:\n{}", helm.log());
        assert!(helm.log().contains("InProgress"), "{}", helm.log());
    }
    let fresh = world.get("apikey/acme")?;
    assert_eq!(fresh["status"]["observedGeneration"], -1);
    Ok(())
}

#[tokio::test]
async fn helm_returns_when_a_key_and_its_api_are_ready() -> Result {
    let world = World::new("helm-waits").await?;
    // Applied before its WaterDataApi: it waits, and has not failed.
    let key = install(&world, &key("acme"), "60s")?;
    let _operator = world.operator("operator-0")?;
    world
        .condition("apikey/acme", "Reconciling", "True/ApiAmbiguous")
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
    world.apply(&brought("acme", 'c'))?;
    world.apply(&other)?;
    for (name, ready) in [("acme", "True/Active"), ("other", "True/PlanWithoutAccess")] {
        world
            .condition(&format!("apikey/{name}"), "Ready", ready)
            .await?;
    }
    let found = |selector: &str| {
        let selector = format!("--field-selector={selector}");
        world.kubectl(&["get", "apikeys", "--output=name", &selector])
    };
    let acme = "apikey.waterdata.dev/acme";
    assert_eq!(found("spec.accountId=acme")?, acme);
    assert_eq!(found("spec.accountId!=globex,spec.plan=Enterprise")?, acme);
    assert_eq!(found("status.keyId=cccccccccccc")?, acme);
    assert_eq!(found("spec.accountId=acme,spec.plan=Free")?, "");
    Ok(())
}

#[tokio::test]
async fn wide_output_adds_what_a_support_case_asks_for() -> Result {
    let (world, _operator) = World::running("wide").await?;
    let mut rotating = key("acme");
    rotating["spec"]["rotation"] = json!({ "periodSeconds": 864_000 });
    let ready = world.in_force(&rotating).await?;
    let columns = |object: &str, more: &[&str]| -> anyhow::Result<Vec<String>> {
        let table = world.kubectl(&[&["get", object][..], more].concat())?;
        let head = table.lines().next().context("a head")?;
        Ok(head.split_whitespace().map(str::to_owned).collect())
    };
    let narrow = columns("apikey/acme", &[])?;
    let wide = columns("apikey/acme", &["--output=wide"])?;
    assert_eq!(wide[narrow.len()..], ["SECRET", "ROTATES", "MESSAGE"]);
    let table = world.kubectl(&["get", "apikey/acme", "--output=wide"])?;
    let ready_is = ready["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let ready_is = ready_is
        .clone()
        .find(|condition| condition["type"] == "Ready");
    let cells = [
        &json!("acme-apikey"),
        &ready["status"]["nextRotationTime"],
        &ready_is.context("a condition")?["message"],
    ];
    let cells = cells.map(|cell| cell.as_str().unwrap_or_default());
    assert!(
        table.trim_end().ends_with(&cells.join("   ")),
        "{cells:?}\n{table}"
    );
    let api = format!("waterdataapi/{API}");
    let wide = columns(&api, &["--output=wide"])?;
    assert_eq!(wide.last().map(String::as_str), Some("MESSAGE"));
    Ok(())
}
