//! Rules of the platform stop writes of the portal: the reader is told, and the log names the rule.

use serde_json::json;
use water_harness::wait_until;
use water_http::Code;
use water_keystore::Allowance;
use water_kit::SOON;

use super::NOBODY;
use super::world::{Answer, Made, World};
use crate::keys::context::unwritten;
use crate::sample::manager;

const REFUSED: (u16, &str) = (409, "refused_by_platform");

/// Applies a policy that refuses every write of a key in the world's namespace, and waits until it does.
async fn refuses_writes(world: &World, of: &str) {
    let name = format!("refuses-{}", world.namespace);
    let group = "admissionregistration.k8s.io/v1";
    let here = json!({ "matchLabels": { "kubernetes.io/metadata.name": world.namespace } });
    let policy = json!({
        "apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": { "name": name },
        "spec": {
            "matchConstraints": {
                "namespaceSelector": here,
                "resourceRules": [{
                    "apiGroups": ["waterdata.dev"], "apiVersions": ["*"], "resources": ["apikeys"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                }],
            },
            "validations": [{ "expression": "false", "message": "no keys on Fridays" }],
        },
    });
    let binding = json!({
        "apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    for manifest in [policy, binding] {
        world.cluster.apply(&manifest.to_string()).unwrap();
    }
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
