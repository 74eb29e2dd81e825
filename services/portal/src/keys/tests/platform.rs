//! Rules of the platform stop writes of the portal: the reader is told, and the log names the rule.

use serde_json::json;
use water_harness::{Fault, Interceptor, Moment, Which, wait_until};
use water_http::Code;
use water_keystore::Allowance;
use water_kit::SOON;

use super::NOBODY;
use super::world::{Answer, MAX_KEYS, Made, World};
use crate::keys::context::unwritten;
use crate::sample::{connected, manager};

const REFUSED: (u16, &str) = (409, "refused_by_platform");
const WRITES: [&str; 3] = ["CREATE", "UPDATE", "DELETE"];

/// Returns the name of the world's policy that is not the chart's.
fn foreign(world: &World) -> String {
    format!("refuses-{}", world.namespace)
}

/// Applies a policy that refuses these writes of keys in the world's namespace, for this reason. It acts a moment
/// later.
fn applies_policy(world: &World, operations: &[&str], reason: &str) {
    let name = foreign(world);
    let group = "admissionregistration.k8s.io/v1";
    let here = json!({ "matchLabels": { "kubernetes.io/metadata.name": world.namespace } });
    let policy = json!({
        "apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": { "name": name },
        "spec": {
            "matchConstraints": {
                "namespaceSelector": here,
                "resourceRules": [{
                    "apiGroups": ["waterdata.dev"], "apiVersions": ["*"], "resources": ["apikeys"],
                    "operations": operations,
                }],
            },
            "validations": [{ "expression": "false", "message": "no keys on Fridays", "reason": reason }],
        },
    });
    let binding = json!({
        "apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    for manifest in [policy, binding] {
        world.cluster.apply(&manifest.to_string()).unwrap();
    }
}

/// Applies the policy, and waits until it refuses an edit of a key.
async fn refuses_writes(world: &World, of: &str) {
    applies_policy(world, &WRITES, "Invalid");
    let name = foreign(world);
    let same = json!({ "metadata": { "labels": { "none": null } } });
    let refused = async || {
        let edited = world.objects.edit(of, &same);
        let said = edited.err().map(|error| error.to_string());
        anyhow::ensure!(said.is_some_and(|said| said.contains(&name)), "edited");
        Ok(())
    };
    wait_until("the policy of the test", SOON, refused)
        .await
        .unwrap();
}

#[tokio::test]
async fn the_refusal_of_another_policy_proves_no_bounds() {
    let world = World::new("foreign").await;
    let binding = format!("validatingadmissionpolicybinding/{}-water", world.namespace);
    world.cluster.kubectl(&["delete", &binding]).unwrap();
    // The reason that the chart's policy gives.
    applies_policy(&world, &WRITES, "Forbidden");
    let rule = format!("ValidatingAdmissionPolicy {}", foreign(&world));
    let expected = format!("the platform refused to try the bounds of its rights: {rule}");
    let named = async || {
        let tried = world.keys.cluster.is_bounded().await;
        let said = tried.err().map(|error| error.to_string());
        anyhow::ensure!(said.as_ref() == Some(&expected), "{said:?}");
        Ok(())
    };
    wait_until("the policy of the test", SOON, named)
        .await
        .unwrap();
}

/// Creates a key through a replica whose API server answers the creation with this status.
async fn answered(world: &World, code: u16, reason: &str, message: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    let (status, line) = (status.to_string(), format!("HTTP/1.1 {code} {reason}"));
    let length = status.len();
    let head = format!(
        "{line}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let mut interceptor = Interceptor::default();
    let keys = world.replica(&mut interceptor).await;
    connected(&keys.usage).await;
    let fault = Fault::Answer((head + &status).into());
    interceptor.order(Which::Every("POST /apis"), Moment::BeforeDelivery, fault);
    let body = Made::new(1).body();
    Answer::ask(&keys, &manager("acme"), "POST", &["keys"], body).await
}

#[tokio::test]
async fn a_creation_that_only_came_at_the_wrong_moment_may_be_sent_again() {
    let world = World::new("moment").await;
    let acme = manager("acme");
    let together = "Operation cannot be fulfilled on resourcequotas \"keys\": the object has been modified; please \
                    apply your changes to the latest version and try again";
    let starting = "apikeys.waterdata.dev \"acme-1\" is forbidden: not yet ready to handle request";
    for (code, reason, message) in [(409, "Conflict", together), (403, "Forbidden", starting)] {
        let answer = answered(&world, code, reason, message).await;
        let expected = (503, "dependency_unavailable");
        assert_eq!(answer.code(), expected, "{answer:?}");
        assert!(answer.retry_after.is_some(), "{answer:?}");
    }
    world.created(&acme, &Made::new(1)).await;
    // What was not written is not counted.
    assert_eq!(world.takes_all(&acme, Allowance::Creations).await, 29);
}

fn detail(answer: &Answer) -> &str {
    answer.body["detail"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_admission_policy_stops_every_write_and_is_named_in_the_log_alone() {
    let world = World::new("policy").await;
    let (acme, [first, second, third]) = (manager("acme"), [1, 2, 3].map(Made::new));
    let name = world.created(&acme, &first).await;
    world.publishes(&name, None);
    assert_eq!(
        world.rotates(&acme, &name, &first, &second).await.status,
        200
    );
    world.publishes(&name, Some((&first, "2120-01-01T00:00:00Z")));
    let read = world.keys.cluster.key(&acme, &name).await.unwrap().unwrap();
    refuses_writes(&world, &name).await;
    let mut rotation = third.rotation(&second);
    rotation["endPrevious"] = json!(true);
    for (method, path, body) in [
        ("POST", vec!["keys"], third.body()),
        ("PATCH", vec!["keys", &name], json!({ "title": "Other" })),
        ("POST", vec!["keys", &name, "rotation"], rotation),
        ("DELETE", vec!["keys", &name, "previous"], NOBODY),
        ("DELETE", vec!["keys", &name], NOBODY),
    ] {
        let answer = world.asks(&acme, method, &path, body).await;
        assert_eq!(answer.code(), REFUSED, "{method} {path:?}: {answer:?}");
        let said = detail(&answer);
        assert!(said.starts_with("A rule of the platform"), "{said}");
        let told = answer.body.to_string();
        assert!(
            !told.contains("Fridays") && !told.contains("refuses-"),
            "{answer:?}"
        );
    }
    assert_eq!(world.object(&name)["spec"]["description"], "Nightly import");
    // What was not written is not counted.
    assert_eq!(world.takes_all(&acme, Allowance::Creations).await, 29);
    assert_eq!(world.takes_all(&acme, Allowance::Rotations).await, 59);
    assert_eq!(world.takes_all(&acme, Allowance::Renames).await, 60);
    // The log has a problem's cause: a warning but for an internal error.
    let refused = world.keys.cluster.delete(&read).await.unwrap_err();
    let problem = unwritten(refused);
    assert_eq!(problem.code(), Code::RefusedByPlatform);
    let rule = format!("ValidatingAdmissionPolicy refuses-{}", world.namespace);
    assert_eq!(
        problem.cause().unwrap().to_string(),
        format!("the platform refused to delete a key: {rule}")
    );
}

#[tokio::test]
async fn a_key_too_many_that_a_policy_keeps_is_its_holders() {
    let world = World::new("kept").await;
    let (acme, made) = (manager("acme"), Made::new(9));
    let mut others = (1..).map(Made::new);
    let mut name = String::new();
    for other in others.by_ref().take(MAX_KEYS - 1) {
        name = world.created(&acme, &other).await;
    }
    applies_policy(&world, &["DELETE"], "Invalid");
    let (policy, key) = (foreign(&world), format!("apikey/{name}"));
    let refused = async || {
        let tried = world
            .objects
            .delete_with(&key, &json!({ "dryRun": ["All"] }));
        let said = tried.err().map(|error| error.to_string());
        anyhow::ensure!(said.is_some_and(|said| said.contains(&policy)), "deleted");
        Ok(())
    };
    wait_until("the policy of the test", SOON, refused)
        .await
        .unwrap();
    let mut interceptor = Interceptor::default();
    let keys = world.replica(&mut interceptor).await;
    connected(&keys.usage).await;
    let (objects, mut last) = (world.objects.clone(), Some(world.manifest("last", "acme")));
    interceptor.show(move |_, request| {
        if request.starts_with(b"POST ")
            && let Some(manifest) = last.take()
        {
            objects.apply(&manifest).unwrap();
        }
    });
    let answer = Answer::ask(&keys, &acme, "POST", &["keys"], made.body()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(world.lists(&acme).await.len(), MAX_KEYS + 1);
}

#[tokio::test]
async fn a_full_quota_stops_a_creation_and_nothing_else() {
    let world = World::new("quota").await;
    let (acme, [first, second]) = (manager("acme"), [1, 2].map(Made::new));
    let name = world.created(&acme, &first).await;
    let counted = json!({ "count/apikeys.waterdata.dev": "1" });
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": { "name": "probe-quota", "namespace": world.namespace },
        "spec": { "hard": counted },
    });
    world.cluster.apply(&quota.to_string()).unwrap();
    // No controller counts here.
    let status = json!({ "status": { "hard": counted, "used": counted } }).to_string();
    let patch = [
        "patch",
        "resourcequota",
        "probe-quota",
        "--subresource=status",
        "--type=merge",
    ];
    let place = ["-n", &world.namespace, "-p", &status];
    world
        .cluster
        .kubectl(&[&patch[..], &place].concat())
        .unwrap();
    let full = async || {
        let answer = world.creates(&acme, &second).await;
        if answer.status == 201 {
            // The API server had not heard of the quota yet.
            world
                .revokes(&acme, answer.body["name"].as_str().unwrap_or_default())
                .await;
        }
        anyhow::ensure!(answer.code() == REFUSED, "{answer:?}");
        Ok(answer)
    };
    let answer = wait_until("the quota", SOON, full).await.unwrap();
    let said = detail(&answer);
    assert!(said.starts_with("The platform has no room"), "{said}");
    let title = json!({ "title": "Other" });
    let renamed = world.asks(&acme, "PATCH", &["keys", &name], title).await;
    assert_eq!(renamed.status, 200, "{renamed:?}");
    let rotated = world.rotates(&acme, &name, &first, &second).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    assert_eq!(world.revokes(&acme, &name).await.status, 202);
}

#[tokio::test]
async fn a_namespace_that_is_being_deleted_takes_no_key_and_lets_them_go() {
    let world = World::new("ending").await;
    let acme = manager("acme");
    let name = world.created(&acme, &Made::new(1)).await;
    let namespace = format!("namespace/{}", world.namespace);
    world.objects.delete(&namespace).unwrap();
    let answer = world.creates(&acme, &Made::new(2)).await;
    assert_eq!(answer.code(), REFUSED, "{answer:?}");
    let said = detail(&answer);
    assert!(
        said.starts_with("This installation is being removed"),
        "{said}"
    );
    assert_eq!(world.revokes(&acme, &name).await.status, 202);
}

#[tokio::test]
async fn a_missing_right_stays_a_fault_of_the_installation() {
    let world = World::new("right").await;
    let acme = manager("acme");
    let name = world.created(&acme, &Made::new(1)).await;
    let mut ghost = world.keys.cluster.key(&acme, &name).await.unwrap().unwrap();
    ghost.metadata.name = Some("no-such-key".to_owned());
    let role = "role/water-data-portal";
    let mut rules = world.objects.get(role).unwrap()["rules"].clone();
    rules[0]["verbs"] = json!(["get", "list", "create", "patch"]);
    let less = json!({ "rules": rules });
    world.objects.patch(role, &less).unwrap();
    let refused = async || {
        let error = world.keys.cluster.delete(&ghost).await.unwrap_err();
        anyhow::ensure!(!error.is_gone(), "{error}");
        Ok(())
    };
    wait_until("the missing right", SOON, refused)
        .await
        .unwrap();
    let answer = world.revokes(&acme, &name).await;
    assert_eq!(answer.code(), (500, "internal"), "{answer:?}");
}
