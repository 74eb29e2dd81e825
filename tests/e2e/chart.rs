//! The chart's values: wrong ones are refused by Helm before anything is installed, by a message that names the
//! value and the remedy, and right ones render what they say.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use water_e2e::{refusal, text_of};
use water_harness::programs::Program;

const REQUIRED: [&str; 5] = [
    r#"image.registry="registry.example/water""#,
    r#"image.tag="0.1.0""#,
    r#"postgres.existingSecret="water-postgres""#,
    r#"redis.existingSecret="water-redis""#,
    r#"api.exposure.trustedProxies=["10.0.0.0/8"]"#,
];
const PORTAL: [&str; 3] = [
    "portal.enabled=true",
    r#"portal.oidc.issuer="https://id.example""#,
    r#"portal.oidc.existingSecret="portal-client""#,
];

/// Runs Helm on the chart. The last of two equal values wins.
fn helm(arguments: &[&str], values: &[&str]) -> Result<String> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/water-data");
    let values = REQUIRED.iter().chain(values);
    let mut helm = Command::new(Program::Helm.path()?);
    helm.args(arguments).arg(chart);
    helm.args(values.flat_map(|value| ["--set-json", value]));
    text_of(&helm.output()?)
}

fn render(values: &[&str]) -> Result<String> {
    helm(&["template", "water-data"], values)
}

/// Checks the chart's own answer to a wrong value, which is more than a schema can.
fn assert_refused(others: &[&str], value: &str, expected: &str) -> Result<()> {
    let refused = refusal(render(&[others, &[value]].concat()))?;
    let place = "Error: execution error at (water-data/templates/operator.yaml:1:4): ";
    let end = "\n\nUse --debug flag to render out invalid YAML";
    assert_eq!(refused, format!("{place}{expected}{end}"), "{value}");
    Ok(())
}

#[rustfmt::skip]
const WRONG: [(&str, &str); 17] = [
    (r#"image.tag="latest""#,
        "image.tag: \"latest\" names no version, and status.version is the tag: give the tag of a release"),
    (r#"image.registry="https://registry.example""#,
        "image.registry: \"https://registry.example\" is not valid: give a host and a path without a scheme, such as \
         registry.example/water"),
    (r#"postgres.existingSecret="""#,
        "postgres.existingSecret: is empty: give the name of a Secret in this namespace with the keys owner-url, \
         writer-url and reader-url"),
    (r#"redis.existingSecret="""#,
        "redis.existingSecret: is empty: give the name of a Secret in this namespace with the keys operator-url and \
         gate-url"),
    (r#"redis.existingSecret="Bad_Name""#,
        "redis.existingSecret: \"Bad_Name\" is not valid: give a Secret's name: lower-case letters, digits, '-' and '.'"),
    (r#"api.name="1x""#,
        "api.name: \"1x\" is not valid: give lower-case letters, digits and '-', beginning with a letter"),
    (r#"api.plans=[{"name":"1st","access":"Denied"}]"#,
        "api.plans[0].name: \"1st\" is not valid: give letters, digits and '-', beginning with a letter"),
    (r#"api.exposure.ingress.host="Water_Example""#,
        "api.exposure.ingress.host: \"Water_Example\" is not valid: give a lower-case host name, such as water.example"),
    (NO_PROXIES,
        "api.exposure.trustedProxies: is empty, so that all clients of the Ingress would share the address of its \
         controller, one allowance of wrong keys and 256 connections: give the networks of the controller's pods, such \
         as 10.0.0.0/8, or set api.exposure.trustedProxiesNone to true"),
    ("api.exposure.trustedProxiesNone=true",
        "api.exposure.trustedProxiesNone: is true, but api.exposure.trustedProxies is not empty: remove one of them"),
    (r#"api.exposure.trustedProxies=["10.0.0.1"]"#,
        "api.exposure.trustedProxies[0]: \"10.0.0.1\" is not valid: give a network, such as 10.0.0.0/8"),
    (r#"api.telemetry.logFilter="loud""#,
        "api.telemetry.logFilter: \"loud\" is not valid: give a level for all and others by target, such as \
         info,water_gate=debug"),
    (r#"api.telemetry.otlpEndpoint="https://example.org""#,
        "api.telemetry.otlpEndpoint: \"https://example.org\" is not valid: give the address of a collector in the \
         cluster, such as http://collector.observability:4318"),
    (r#"api.apiKeys.allowedNamespaces.from="All""#,
        "api.apiKeys.allowedNamespaces.from: \"All\" needs an operator that sees other namespaces: set rbac.scope to \
         Cluster"),
    (r#"rbac.apiNamespaces=["team"]"#,
        "rbac.apiNamespaces: is not empty, but the operator acts in the release's namespace only: set rbac.scope to \
         Cluster, or remove the namespaces"),
    (r#"rbac.keyNamespaces=["team"]"#,
        "rbac.keyNamespaces: is not empty, but the operator acts in the release's namespace only: set rbac.scope to \
         Cluster, or remove the namespaces"),
    (r#"ingest.loads=[
            {"name":"a","dataset":"stress","asOf":"2026-01-01","source":{"configMap":{"name":"files","key":"f.csv"}}},
            {"name":"a","dataset":"risk","asOf":"2026-01-01","source":{"configMap":{"name":"files","key":"f.csv"}}}]"#,
        "ingest.loads: two loads are named \"a\": name each of them apart; ingest.vigieau is named vigieau"),
];
const NO_PROXIES: &str = "api.exposure.trustedProxies=[]";

#[rustfmt::skip]
const WRONG_PORTALS: [(&str, &str); 9] = [
    (r#"portal.oidc.issuer="http://id.example""#,
        "portal.oidc.issuer: \"http://id.example\" is not valid: give the https address that the identity provider's \
         tokens name as their issuer, such as https://id.example/realms/water"),
    (r#"portal.oidc.existingSecret="""#,
        "portal.oidc.existingSecret: is empty: give the name of a Secret in this namespace whose key client-secret is \
         the secret of the client water-portal at the identity provider"),
    (r#"portal.url="http://water.example""#,
        "portal.url: \"http://water.example\" is not valid: give https://, a lower-case host and perhaps a port, without \
         a path, such as https://water.example"),
    (r#"portal.url="https://other.example""#,
        "portal.url: its host is other.example, but the Ingress answers for water.example: make them the same, or remove \
         portal.url"),
    ("api.exposure.ingress.enabled=false",
        "portal.url: is empty, and there is no Ingress whose host it could be: give the address that browsers use, such \
         as https://water.example"),
    (r#"portal.oidc.accounts.pattern="team-(.+)""#,
        "portal.oidc.accounts.pattern: \"team-(.+)\" has no group account: add (?<account>[^:]+) where the account stands \
         in the claim's values"),
    (r#"portal.oidc.accounts.defaultPlan="Gold""#,
        "portal.oidc.accounts.defaultPlan: \"Gold\" is none of api.plans: name one of them, or add it there"),
    (r#"portal.oidc.scopes=["profile"]"#,
        "portal.oidc.scopes: lacks openid, without which the identity provider gives no ID token: add it"),
    (r#"redis.existingSecret="""#,
        "redis.existingSecret: is empty: give the name of a Secret in this namespace with the keys operator-url, \
         gate-url and portal-url"),
];

#[test]
fn a_wrong_value_is_refused_with_the_remedy() -> Result<()> {
    for (value, expected) in WRONG {
        assert_refused(&[], value, expected)?;
    }
    for (value, expected) in WRONG_PORTALS {
        assert_refused(&PORTAL, value, expected)?;
    }
    Ok(())
}

#[rustfmt::skip]
const AGAINST_THE_SCHEMA: [(&str, &str); 11] = [
    (r#"operator.replicas="two""#, "'/operator/replicas': got string, want integer"),
    ("operator.replicas=0", "'/operator/replicas': minimum: got 0, want 1"),
    ("api.rollout.maxSurge=-1", "'/api/rollout/maxSurge': minimum: got -1, want 0"),
    (r#"rbac.scope="World""#, "'/rbac/scope': value must be one of 'Namespaced', 'Cluster'"),
    (r#"api.networkPolicy.mode="On""#, "'/api/networkPolicy/mode': value must be one of 'Enabled', 'Disabled'"),
    (r#"api.plans=[{"name":"Free","access":"Maybe"}]"#, "'/api/plans/0/access': value must be one of 'Allowed', 'Denied'"),
    ("api.plans=[]", "'/api/plans': minItems: got 0, want 1"),
    (r#"api.plans=[{"name":"Enterprise","access":"Allowed"}]"#,
        "'/api/plans/0': missing properties 'requestsPerMinute', 'requestsPerDay'"),
    (r#"colour="blue""#, "'': additional properties 'colour' not allowed"),
    (r#"ingest.loads=[{"name":"a","dataset":"stress","asOf":"2026-01-01","source":{}}]"#, "'/ingest/loads/0/source': 'oneOf' failed"),
    (r#"ingest.loads=[{"name":"a","dataset":"stress","asOf":"2026-01-01","source":{"url":"http://a.example/f.csv"}}]"#,
        "'/ingest/loads/0/source/url': 'http://a.example/f.csv' does not match pattern"),
];

#[test]
fn types_bounds_and_choices_are_those_of_the_schema() -> Result<()> {
    for (value, expected) in AGAINST_THE_SCHEMA {
        let refused = refusal(render(&[value]))?;
        let problem = "Error: values don't meet the specifications of the schema(s) in the following chart(s):";
        let expected = format!("{problem}\nwater-data:\n- at {expected}");
        assert!(refused.starts_with(&expected), "{value}: {refused}");
    }
    Ok(())
}

#[test]
fn what_is_right_is_rendered_and_without_the_switch_nothing_of_a_portal() -> Result<()> {
    let rendered = render(&[])?;
    assert!(rendered.contains("kind: WaterDataApi"), "{rendered}");
    assert!(!rendered.to_lowercase().contains("portal"), "{rendered}");
    for (values, part) in [
        (
            &[r#"api.telemetry.logFilter="info,water_gate=debug""#][..],
            r#"logFilter: "info,water_gate=debug""#,
        ),
        (
            &[r#"api.telemetry.otlpEndpoint="http://[fd00::1]:4318/otlp""#],
            r#"otlpEndpoint: "http://[fd00::1]:4318/otlp""#,
        ),
        (
            &[NO_PROXIES, "api.exposure.trustedProxiesNone=true"],
            "kind: WaterDataApi",
        ),
        (
            &[NO_PROXIES, "api.exposure.ingress.enabled=false"],
            "kind: WaterDataApi",
        ),
        (&[NO_PROXIES, "api.create=false"], "kind: Deployment"),
    ] {
        let rendered = render(values)?;
        assert!(rendered.contains(part), "{values:?}\n{rendered}");
    }
    Ok(())
}

#[test]
fn a_portal_brings_its_rights_their_bounds_its_place_in_the_api_and_the_addresses_to_register()
-> Result<()> {
    let more = [r#"portal.oidc.caConfigMap="authority""#];
    let rendered = render(&[&PORTAL[..], &more].concat())?;
    for part in [
        "kind: ServiceAccount\nmetadata:\n  name: water-data-portal\n",
        "kind: ValidatingAdmissionPolicy\nmetadata:\n  name: default-water-data\n",
        "kind: ValidatingAdmissionPolicyBinding\nmetadata:\n  name: default-water-data\n",
        "    url: https://water.example\n",
        "spec:\n  failurePolicy: Fail\n",
        "  validationActions: [Deny]\n",
        "resources: [configmaps]\n    resourceNames: [authority]\n    verbs: [get]\n",
    ] {
        assert!(rendered.contains(part), "{part}\n{rendered}");
    }
    render(&[&PORTAL[..], &[r#"portal.url="https://water.example:8443""#]].concat())?;
    // The client's dry run asks no cluster.
    let shown = helm(&["install", "water-data", "--dry-run=client"], &PORTAL)?;
    let (_, notes) = shown.split_once("NOTES:").context("no notes")?;
    for address in ["/auth/callback", "/", "/auth/back-channel"] {
        let line = format!(" https://water.example{address}\n");
        assert!(notes.contains(&line), "{address}\n{notes}");
    }
    Ok(())
}

/// Returns the values of a load of a file with more settings.
fn load(rest: &str) -> String {
    let source = r#""source":{"configMap":{"name":"files","key":"f.csv"}}"#;
    format!(
        r#"ingest.loads=[{{"name":"stress","dataset":"stress","asOf":"2026-01-01",{source}{rest}}}]"#
    )
}

#[test]
fn a_load_is_a_job_by_its_content_and_a_cron_job_by_a_schedule() -> Result<()> {
    let name_of = |load: &str| {
        let rendered = render(&[load])?;
        let name = rendered.split("kind: Job\nmetadata:\n  name: ").nth(1);
        let name = name.with_context(|| format!("no Job:\n{rendered}"))?;
        name.lines().next().map(str::to_owned).context("a name")
    };
    let once = name_of(&load(""))?;
    assert_eq!(once, name_of(&load(""))?);
    assert!(once.starts_with("water-data-load-stress-"), "{once}");
    assert_ne!(once, name_of(&load(r#","flags":["--force"]"#))?);
    let rendered = render(&[&load(r#","schedule":"0 3 * * *""#)])?;
    let cron_job = "kind: CronJob\nmetadata:\n  name: water-data-load-stress\n";
    assert!(rendered.contains(cron_job), "{rendered}");
    let job = "kind: Job\nmetadata:\n  name: water-data-load";
    assert!(!rendered.contains(job), "{rendered}");
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

/// Every value that a WaterDataApi takes beside the required ones, none of them the default.
const EVERY_VALUE: [&str; 7] = [
    r#"rbac.scope="Cluster""#,
    r#"image.tag="1.2.3""#,
    r#"image.pullPolicy="Always""#,
    r#"image.pullSecrets=["registry-password"]"#,
    r#"postgres.connections={"departements": 3, "history": 9}"#,
    r#"api={
        "name": "eau",
        "paused": true,
        "plans": [{"name": "Gold", "access": "Allowed", "requestsPerMinute": 7, "requestsPerDay": 70}],
        "components": {
            "gate": {"replicas": 11, "resources": {"requests": {"cpu": "11m"}, "limits": {"memory": "111Mi"}}},
            "departements": {"replicas": 12, "resources": {"requests": {"cpu": "12m"}, "limits": {"memory": "112Mi"}}},
            "history": {"replicas": 13, "resources": {"requests": {"cpu": "13m"}, "limits": {"memory": "113Mi"}}},
            "migrations": {"backoffLimit": 14, "activeDeadlineSeconds": 140}
        },
        "apiKeys": {
            "allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {"water": "yes"}}},
            "accountBinding": "NamespaceLabel"
        },
        "rollout": {"maxSurge": 2, "maxUnavailable": 3, "minReadySeconds": 4, "progressDeadlineSeconds": 50},
        "exposure": {
            "url": "https://api.example",
            "ingress": {
                "className": "public", "host": "eau.example", "tlsSecretName": "certificate",
                "annotations": {"example.org/issuer": "authority"}
            },
            "trustedProxies": ["10.1.0.0/16"]
        },
        "networkPolicy": {"mode": "Disabled", "egress": [{"cidr": "10.2.0.0/16", "ports": [5432]}]},
        "podDisruptionBudget": "Disabled",
        "telemetry": {"logFilter": "debug", "otlpEndpoint": "http://collector.observability:4318"}
    }"#,
    r#"portal={
        "enabled": true,
        "url": "https://eau.example:8443",
        "replicas": 15,
        "resources": {"requests": {"cpu": "15m"}, "limits": {"memory": "115Mi"}},
        "sessionHours": 16,
        "maxKeys": 17,
        "maxKeyDays": 18,
        "oidc": {
            "issuer": "https://id.example", "clientId": "client", "existingSecret": "of-client", "secretKey": "secret",
            "caConfigMap": "authority", "caKey": "authority.pem", "scopes": ["openid", "accounts"],
            "accounts": {"claim": "/teams", "pattern": "team:(?<account>[^:]+)", "defaultPlan": "Gold"}
        }
    }"#,
];

/// Every value that the operator takes beside the required ones, none of them the default.
const EVERY_VALUE_OF_THE_OPERATOR: [&str; 5] = [
    r#"image.tag="1.2.3""#,
    r#"image.pullPolicy="Always""#,
    r#"image.pullSecrets=["registry-password"]"#,
    r#"operator={
        "replicas": 3,
        "logLevel": "debug",
        "resources": {"requests": {"cpu": "11m", "memory": "110Mi"}, "limits": {"memory": "111Mi"}}
    }"#,
    r#"rbac={"scope": "Cluster", "apiNamespaces": ["apis", "more"], "keyNamespaces": ["keys", "others"]}"#,
];

/// Variable that writes golden files instead of comparing with them.
const UPDATE: &str = "WATER_UPDATE_GOLDEN";

/// Compares what is rendered of one template with a golden file.
fn assert_golden(file: &str, template: &str, values: &[&str]) -> Result<()> {
    let only = format!("--show-only=templates/{template}.yaml");
    let rendered = helm(&["template", "water-data", &only], values)? + "\n";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let file = folder.join(file);
    if env::var_os(UPDATE).is_some() {
        fs::write(&file, &rendered)?;
    }
    let golden = fs::read_to_string(&file)?;
    assert_eq!(
        golden, rendered,
        "If that is right: {UPDATE}=1 cargo test -p water-e2e --test e2e chart"
    );
    Ok(())
}

#[test]
fn loads_are_rendered_as_in_the_golden_file() -> Result<()> {
    assert_golden("loads.yaml", "ingest", &[LOADS])
}

#[test]
fn every_value_reaches_the_water_data_api_as_in_the_golden_file() -> Result<()> {
    assert_golden("api.yaml", "waterdataapi", &EVERY_VALUE)
}

#[test]
fn every_value_reaches_the_operator_as_in_the_golden_file() -> Result<()> {
    assert_golden("operator.yaml", "operator", &EVERY_VALUE_OF_THE_OPERATOR)
}

#[test]
fn the_defaults_are_closed() -> Result<()> {
    let rendered = render(&[])?;
    for part in [
        "    - access: Denied\n      name: Free\n",
        "  apiKeys:\n    accountBinding: None\n    allowedNamespaces:\n      from: Same\n",
        "  networkPolicy:\n    egress: []\n    mode: Enabled\n",
        "  podDisruptionBudget: Enabled\n",
    ] {
        assert!(rendered.contains(part), "{part}\n{rendered}");
    }
    Ok(())
}

#[test]
fn the_operators_rights_are_those_of_the_golden_files() -> Result<()> {
    // Without a value, so that the default is the narrow scope.
    assert_golden("rights-namespaced.yaml", "rbac", &[])?;
    let cluster = [r#"rbac.scope="Cluster""#, r#"rbac.apiNamespaces=["apis"]"#];
    assert_golden("rights-cluster.yaml", "rbac", &cluster)?;
    // The release's namespace, and one that may have a WaterDataApi, have these rights already.
    let keys = r#"rbac.keyNamespaces=["keys", "apis", "default"]"#;
    let listed = [&cluster[..], &[keys]].concat();
    assert_golden("rights-key-namespaces.yaml", "rbac", &listed)
}

#[test]
fn the_job_of_the_crds_and_its_rights_are_those_of_the_golden_file() -> Result<()> {
    let secrets = r#"image.pullSecrets=["registry-password"]"#;
    assert_golden("crd-hook.yaml", "crd-hook", &[secrets])
}
