//! Wrong values of the chart are refused by Helm before anything is installed.

mod portal;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use water_e2e::golden::assert_golden;
use water_e2e::{refusal, text_of};
use water_harness::programs::Program;

const REQUIRED: [&str; 5] = [
    r#"image.registry="registry.example/water""#,
    r#"image.tag="0.1.0""#,
    r#"postgres.existingSecret="water-postgres""#,
    r#"redis.existingSecret="water-redis""#,
    r#"api.exposure.trustedProxies=["10.0.0.0/8"]"#,
];

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/water-data")
}

/// Renders the chart; `arguments` such as `--set-json name=value` come last and win.
fn render(arguments: &[&str]) -> Result<String> {
    let mut helm = Command::new(Program::Helm.path()?);
    helm.args(["template", "water-data"]).arg(chart());
    helm.args(REQUIRED.iter().flat_map(|value| ["--set-json", value]))
        .args(arguments);
    text_of(&helm.output()?)
}

/// Refused by the chart itself, which says more than a schema can.
fn assert_refused(value: &str, expected: &str) -> Result<()> {
    let refused = refusal(render(&["--set-json", value]))?;
    let place = "Error: execution error at (water-data/templates/operator.yaml:1:4): ";
    assert_eq!(
        refused,
        format!("{place}{expected}\n\nUse --debug flag to render out invalid YAML")
    );
    Ok(())
}

/// Refused by `values.schema.json`.
fn assert_refused_by_schema(value: &str, expected: &str) -> Result<()> {
    let refused = refusal(render(&["--set-json", value]))?;
    let introduction =
        "Error: values don't meet the specifications of the schema(s) in the following chart(s):";
    assert_eq!(
        refused,
        format!("{introduction}\nwater-data:\n- at {expected}")
    );
    Ok(())
}

#[test]
fn the_required_values_are_enough() -> Result<()> {
    assert!(render(&[])?.contains("kind: WaterDataApi"));
    Ok(())
}

#[test]
fn a_tag_is_a_version() -> Result<()> {
    let expected = "image.tag: \"latest\" names no version, and status.version is the tag: give the tag of a release";
    assert_refused(r#"image.tag="latest""#, expected)
}

#[test]
fn a_registry_has_no_scheme() -> Result<()> {
    let expected = "image.registry: \"https://registry.example\" is not valid: give a host and a path without a \
         scheme, such as registry.example/water";
    assert_refused(r#"image.registry="https://registry.example""#, expected)
}

#[test]
fn the_stores_secrets_are_required() -> Result<()> {
    let expected = "postgres.existingSecret: is empty: give the name of a Secret in this namespace with the keys \
         owner-url, writer-url and reader-url";
    assert_refused(r#"postgres.existingSecret="""#, expected)?;
    let expected = "redis.existingSecret: is empty: give the name of a Secret in this namespace with the keys \
         operator-url and gate-url";
    assert_refused(r#"redis.existingSecret="""#, expected)
}

#[test]
fn a_secrets_name_is_one_that_kubernetes_accepts() -> Result<()> {
    let expected = "redis.existingSecret: \"Bad_Name\" is not valid: give a Secret's name: lower-case letters, \
         digits, '-' and '.'";
    assert_refused(r#"redis.existingSecret="Bad_Name""#, expected)
}

#[test]
fn an_apis_name_begins_with_a_letter() -> Result<()> {
    let expected = "api.name: \"1x\" is not valid: give lower-case letters, digits and '-', beginning with a letter";
    assert_refused(r#"api.name="1x""#, expected)
}

#[test]
fn plans_are_named_and_allowed_or_denied() -> Result<()> {
    let expected = "api.plans[0].name: \"1st\" is not valid: give letters, digits and '-', beginning with a letter";
    assert_refused(r#"api.plans=[{"name":"1st","access":"Denied"}]"#, expected)?;
    let expected = "'/api/plans/0/access': value must be one of 'Allowed', 'Denied'";
    assert_refused_by_schema(r#"api.plans=[{"name":"Free","access":"Maybe"}]"#, expected)?;
    assert_refused_by_schema("api.plans=[]", "'/api/plans': minItems: got 0, want 1")
}

#[test]
fn a_plan_with_access_has_both_limits() -> Result<()> {
    let expected = "'/api/plans/0': missing properties 'requestsPerMinute', 'requestsPerDay'";
    assert_refused_by_schema(
        r#"api.plans=[{"name":"Enterprise","access":"Allowed"}]"#,
        expected,
    )
}

#[test]
fn a_host_is_lower_case() -> Result<()> {
    let expected = "api.exposure.ingress.host: \"Water_Example\" is not valid: give a lower-case host name, such as \
         water.example";
    assert_refused(r#"api.exposure.ingress.host="Water_Example""#, expected)
}

#[test]
fn an_ingress_needs_trusted_proxies_or_the_word_that_there_are_none() -> Result<()> {
    const NO_PROXIES: &str = "api.exposure.trustedProxies=[]";
    let expected = "api.exposure.trustedProxies: is empty, so that all clients of the Ingress would share the address \
         of its controller, one allowance of wrong keys and 256 connections: give the networks of the controller's \
         pods, such as 10.0.0.0/8, or set api.exposure.trustedProxiesNone to true";
    assert_refused(NO_PROXIES, expected)?;
    for meant in [
        "api.exposure.trustedProxiesNone=true",
        "api.exposure.ingress.enabled=false",
        "api.create=false",
    ] {
        render(&["--set-json", NO_PROXIES, "--set-json", meant])
            .with_context(|| meant.to_owned())?;
    }
    Ok(())
}

#[test]
fn trusted_proxies_and_the_word_that_there_are_none_exclude_each_other() -> Result<()> {
    let expected = "api.exposure.trustedProxiesNone: is true, but api.exposure.trustedProxies is not empty: remove one \
         of them";
    assert_refused("api.exposure.trustedProxiesNone=true", expected)
}

#[test]
fn a_trusted_proxy_is_a_network() -> Result<()> {
    let expected = "api.exposure.trustedProxies[0]: \"10.0.0.1\" is not valid: give a network, such as 10.0.0.0/8";
    assert_refused(r#"api.exposure.trustedProxies=["10.0.0.1"]"#, expected)
}

#[test]
fn a_log_filter_is_a_list_of_levels() -> Result<()> {
    let expected = "api.telemetry.logFilter: \"loud\" is not valid: give a level for all and others by target, such as \
         info,water_gate=debug";
    assert_refused(r#"api.telemetry.logFilter="loud""#, expected)?;
    let rendered = render(&[
        "--set-json",
        r#"api.telemetry.logFilter="info,water_gate=debug""#,
    ])?;
    assert!(
        rendered.contains(r#"logFilter: "info,water_gate=debug""#),
        "{rendered}"
    );
    Ok(())
}

#[test]
fn a_collector_is_in_the_cluster() -> Result<()> {
    let expected = "api.telemetry.otlpEndpoint: \"https://example.org\" is not valid: give the address of a collector in \
         the cluster, such as http://collector.observability:4318";
    assert_refused(
        r#"api.telemetry.otlpEndpoint="https://example.org""#,
        expected,
    )?;
    for address in ["http://collector:4318", "http://[fd00::1]:4318/otlp"] {
        let value = format!("api.telemetry.otlpEndpoint={address:?}");
        let rendered = render(&["--set-json", &value])?;
        assert!(
            rendered.contains(&format!("otlpEndpoint: {address:?}")),
            "{rendered}"
        );
    }
    Ok(())
}

#[test]
fn other_namespaces_need_an_operator_that_sees_them() -> Result<()> {
    let expected = "api.apiKeys.allowedNamespaces.from: \"All\" needs an operator that sees other namespaces: set \
         rbac.scope to Cluster";
    assert_refused(r#"api.apiKeys.allowedNamespaces.from="All""#, expected)?;
    let expected = "rbac.apiNamespaces: is not empty, but the operator acts in the release's namespace only: set \
         rbac.scope to Cluster, or remove the namespaces";
    assert_refused(r#"rbac.apiNamespaces=["team"]"#, expected)
}

#[test]
fn types_bounds_and_choices_are_those_of_the_schema() -> Result<()> {
    let cases = [
        (
            r#"operator.replicas="two""#,
            "'/operator/replicas': got string, want integer",
        ),
        (
            "operator.replicas=0",
            "'/operator/replicas': minimum: got 0, want 1",
        ),
        (
            "api.rollout.maxSurge=-1",
            "'/api/rollout/maxSurge': minimum: got -1, want 0",
        ),
        (
            r#"rbac.scope="World""#,
            "'/rbac/scope': value must be one of 'Namespaced', 'Cluster'",
        ),
        (
            r#"api.networkPolicy.mode="On""#,
            "'/api/networkPolicy/mode': value must be one of 'Enabled', 'Disabled'",
        ),
    ];
    cases
        .iter()
        .try_for_each(|(value, expected)| assert_refused_by_schema(value, expected))
}

#[test]
fn a_value_that_does_not_exist_is_refused() -> Result<()> {
    assert_refused_by_schema(
        r#"colour="blue""#,
        "'': additional properties 'colour' not allowed",
    )
}

const FILE: &str = r#""source":{"configMap":{"name":"files","key":"f.csv"}}"#;

fn load(name: &str, rest: &str) -> String {
    format!(r#"{{"name":"{name}","dataset":"stress","asOf":"2026-01-01",{rest}}}"#)
}

#[test]
fn loads_are_named_apart() -> Result<()> {
    let twice = format!("ingest.loads=[{0},{0}]", load("stress", FILE));
    let expected = "ingest.loads: two loads are named \"stress\": name each of them apart; ingest.vigieau is named vigieau";
    assert_refused(&twice, expected)
}

#[test]
fn a_load_has_one_source_and_that_is_encrypted() -> Result<()> {
    let none = format!("ingest.loads=[{}]", load("stress", r#""source":{}"#));
    let refused = refusal(render(&["--set-json", &none]))?;
    assert!(
        refused.contains("'/ingest/loads/0/source': 'oneOf' failed"),
        "{refused}"
    );
    let plain = format!(
        "ingest.loads=[{}]",
        load("stress", r#""source":{"url":"http://a.example/f.csv"}"#)
    );
    let refused = refusal(render(&["--set-json", &plain]))?;
    assert!(
        refused.contains("'/ingest/loads/0/source/url'"),
        "{refused}"
    );
    Ok(())
}

#[test]
fn a_load_is_a_job_by_its_content_and_a_cron_job_by_a_schedule() -> Result<()> {
    let name_of = |load: &str| {
        let rendered = render(&["--set-json", &format!("ingest.loads=[{load}]")])?;
        let name = rendered.split("kind: Job\nmetadata:\n  name: ").nth(1);
        let name = name.with_context(|| format!("no Job:\n{rendered}"))?;
        name.lines().next().map(str::to_owned).context("a name")
    };
    let (once, same) = (
        name_of(&load("stress", FILE))?,
        name_of(&load("stress", FILE))?,
    );
    assert_eq!(once, same);
    assert!(once.starts_with("water-data-load-stress-"), "{once}");
    let forced = load("stress", &format!(r#"{FILE},"flags":["--force"]"#));
    assert_ne!(once, name_of(&forced)?);
    let daily = load("stress", &format!(r#"{FILE},"schedule":"0 3 * * *""#));
    let rendered = render(&["--set-json", &format!("ingest.loads=[{daily}]")])?;
    assert!(
        rendered.contains("kind: CronJob\nmetadata:\n  name: water-data-load-stress\n"),
        "{rendered}"
    );
    assert!(
        !rendered.contains("kind: Job\nmetadata:\n  name: water-data-load"),
        "{rendered}"
    );
    Ok(())
}

/// Loads from each kind of source, once and by schedules, behind a proxy, with networks to reach.
const LOADS: &str = r#"ingest={
    "vigieau": {"enabled": true, "credentialsSecret": "register", "caConfigMap": "register-ca"},
    "loads": [
        {"name": "stress", "dataset": "stress", "asOf": "2026-01-01", "origin": "Aqueduct 4.0",
         "source": {"configMap": {"name": "files", "key": "stress.csv"}}},
        {"name": "audits", "dataset": "audits", "asOf": "today", "schedule": "0 3 * * *",
         "source": {"persistentVolumeClaim": {"name": "exports", "path": "audits.csv.gz"}},
         "flags": ["--allow-empty"]}
    ],
    "proxy": "http://proxy.example:3128",
    "egress": [{"cidr": "10.1.0.0/16", "ports": [5432, 3128]}, {"cidr": "10.2.0.0/16"}]
}"#;

#[test]
fn loads_are_rendered_as_in_the_golden_file() -> Result<()> {
    let only = "--show-only=templates/ingest.yaml";
    let rendered = render(&["--set-json", LOADS, only])?;
    assert_golden("loads.yaml", &rendered)
}
