//! Keys are listed, made, changed and revoked at a real API server, under the portal's own rights.

mod kills;
mod platform;
mod rotation;
pub(crate) mod world;

use futures::future::join_all;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use water_domain::Timestamp;
use water_keystore::Allowance;
use water_resources::ApiKey;

use crate::cluster::MANAGED_BY;
use crate::member::Role;
use crate::sample::{connected, manager, member, viewer};
use water_harness::{Interceptor, wait_until};
use water_kit::SOON;
use world::{Answer, MAX_KEYS, Made, World};

const NOBODY: serde_json::Value = serde_json::Value::Null;

#[tokio::test]
async fn a_key_is_made_by_its_hash_and_listed_with_what_the_operator_says_of_it() {
    let world = World::new("made").await;
    let (acme, made) = (manager("acme"), Made::new(1));
    let answer = world.creates(&acme, &made).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let name = answer.body["name"].as_str().unwrap();
    assert_eq!(name, format!("acme-{}", &made.sha256[..10]));
    let object = world.object(name);
    let hash = json!({ "sha256": made.sha256, "keyId": made.key_id });
    assert_eq!(object["spec"]["material"], json!({ "hash": hash }));
    assert_eq!(object["spec"]["accountId"], "acme");
    assert_eq!(object["spec"]["plan"], "Enterprise");
    assert_eq!(object["spec"]["apiRef"], json!({ "name": "water-data" }));
    assert_eq!(object["metadata"]["labels"][MANAGED_BY], "water-portal");
    assert_eq!(
        object["metadata"]["annotations"]["waterdata.dev/requested-by"],
        "subject-of-acme"
    );

    let shown = world.only(&acme).await;
    assert_eq!(
        (&shown["state"], &shown["reason"]),
        (&json!("publishing"), &NOBODY)
    );
    world.publishes(name, None);
    world.tells(
        name,
        &json!({ "lastUsedTime": "2026-06-01T00:00:00.000Z", "waitingFor": ["a", "b"] }),
    );
    let mut shown = world.only(&acme).await;
    assert!(shown["createdAt"].take().is_string());
    let expected = json!({
        "name": name, "title": "Nightly import", "keyId": made.key_id, "plan": "Enterprise",
        "state": "active", "reason": "active", "madeBy": "portal", "requestedBy": "subject-of-acme",
        "createdAt": null, "expiresAt": "2120-01-01T00:00:00.000Z",
        "lastUsedAt": "2026-06-01T00:00:00.000Z", "previous": null, "waitingGates": 2,
    });
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn keys_on_another_plan_than_the_sessions_are_counted_with_each_list() {
    let world = World::new("other-plan").await;
    let acme = manager("acme");
    world.created(&acme, &Made::new(1)).await;
    world.lists(&acme).await;
    assert_eq!(on_other_plans(&world), 0);
    let mut other = world.manifest("by-manifest", "acme");
    other["spec"]["plan"] = "Free".into();
    world.applies(&other);
    assert_eq!(world.lists(&acme).await.len(), 2);
    assert_eq!(on_other_plans(&world), 1);
    world.lists(&acme).await;
    assert_eq!(on_other_plans(&world), 2);
}

/// Value of the metric.
fn on_other_plans(world: &World) -> u64 {
    let mut registry = Registry::default();
    world.keys.metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("portal_keys_on_other_plans_total "));
    value.unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_list_says_whether_keys_may_be_in_other_namespaces() {
    let world = World::new("elsewhere").await;
    let acme = manager("acme");
    let says = async || {
        let read = world.keys.cluster.installation().await.unwrap();
        world.keys.plans.set(read);
        let answer = world.asks(&acme, "GET", &["keys"], NOBODY).await;
        answer.body["keysElsewhere"].as_bool().unwrap()
    };
    let mut installation = world.installation();
    for (from, elsewhere) in [("Same", false), ("All", true)] {
        installation["spec"]["apiKeys"] = json!({ "allowedNamespaces": { "from": from } });
        world.applies(&installation);
        assert_eq!(says().await, elsewhere, "{from}");
    }
}

#[tokio::test]
async fn the_same_request_again_finds_the_key_that_the_first_one_made() {
    let world = World::new("again").await;
    let (acme, made) = (manager("acme"), Made::new(1));
    let first = world.created(&acme, &made).await;
    let again = world.creates(&acme, &made).await;
    assert_eq!(
        (again.status, again.body["name"].as_str().unwrap()),
        (200, first.as_str())
    );
    let at_once = join_all((0..4).map(|_| world.creates(&acme, &made))).await;
    assert!(
        at_once.iter().all(|answer| answer.status == 200),
        "{at_once:?}"
    );
    let other = Made::new(2);
    let at_once = join_all((0..4).map(|_| world.creates(&acme, &other))).await;
    let made = at_once.iter().filter(|answer| answer.status == 201).count();
    let found = at_once.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((made, found), (1, 3), "{at_once:?}");
    assert_eq!(world.lists(&acme).await.len(), 2);
}

#[tokio::test]
async fn a_name_that_is_taken_or_a_key_id_that_the_account_has_is_refused() {
    let world = World::new("taken").await;
    let (acme, made) = (manager("acme"), Made::new(1));
    let name = world.created(&acme, &made).await;
    let same_id = Made {
        key_id: made.key_id.clone(),
        ..Made::new(2)
    };
    let answer = world.creates(&acme, &same_id).await;
    assert_eq!(
        (answer.code(), &answer.body["parameter"]),
        ((400, "invalid_field"), &json!("keyId"))
    );
    // An account must not learn that another one has this id.
    assert_eq!(
        world.creates(&manager("globex"), &same_id).await.status,
        201
    );

    let made = Made::new(3);
    let taken = format!("acme-{}", &made.sha256[..10]);
    world.applies(&world.manifest(&taken, "globex"));
    assert_eq!(
        world.creates(&acme, &made).await.code(),
        (409, "key_conflict")
    );
    // Of thirty one was made; the refused ones were given back, or not taken.
    assert_eq!(world.takes_all(&acme, Allowance::Creations).await, 29);

    world.patch(
        &name,
        &json!({ "metadata": { "finalizers": ["waterdata.dev/test"] } }),
    );
    assert_eq!(world.revokes(&acme, &name).await.status, 202);
    assert_eq!(
        world.creates(&acme, &Made::new(1)).await.code(),
        (409, "key_conflict")
    );
}

#[tokio::test]
async fn an_account_has_no_more_keys_than_it_may_however_many_are_made_at_once() {
    let world = World::new("many").await;
    let acme = manager("acme");
    let made: Vec<Made> = (1..=8).map(Made::new).collect();
    let answers = join_all(made.iter().map(|made| world.creates(&acme, made))).await;
    let of = |status| {
        answers
            .iter()
            .filter(|answer| answer.status == status)
            .count()
    };
    assert_eq!(of(201) + of(409), answers.len(), "{answers:?}");
    assert!(of(201) <= MAX_KEYS);
    assert_eq!(world.lists(&acme).await.len(), of(201));
    for number in 11..=10 + (MAX_KEYS - of(201)) as u8 {
        world.created(&acme, &Made::new(number)).await;
    }
    assert_eq!(
        world.creates(&acme, &Made::new(20)).await.code(),
        (409, "too_many_keys")
    );
    assert_eq!(
        world
            .creates(&manager("globex"), &Made::new(20))
            .await
            .status,
        201
    );
}

#[tokio::test]
async fn viewers_look_and_plans_without_access_issue_nothing() {
    let world = World::new("roles").await;
    let (acme, made, next) = (manager("acme"), Made::new(1), Made::new(2));
    let name = world.created(&acme, &made).await;
    let title = json!({ "title": "Other" });
    let writes = [
        ("POST", vec!["keys"], next.body()),
        ("PATCH", vec!["keys", &name], title.clone()),
        (
            "POST",
            vec!["keys", &name, "rotation"],
            next.rotation(&made),
        ),
        ("DELETE", vec!["keys", &name, "previous"], NOBODY),
        ("DELETE", vec!["keys", &name], NOBODY),
    ];
    for (method, path, body) in &writes {
        let answer = world
            .asks(&viewer("acme"), method, path, body.clone())
            .await;
        assert_eq!(answer.code(), (403, "read_only"), "{method} {path:?}");
    }
    assert_eq!(world.lists(&viewer("acme")).await.len(), 1);
    let free = member("acme", "Free", Role::Manager);
    assert_eq!(
        world.creates(&free, &next).await.code(),
        (403, "plan_insufficient")
    );
    assert_eq!(
        world.rotates(&free, &name, &made, &next).await.code(),
        (403, "plan_insufficient")
    );
    assert_eq!(
        world
            .asks(&free, "PATCH", &["keys", &name], title)
            .await
            .body["title"],
        "Other"
    );
    assert_eq!(world.revokes(&free, &name).await.status, 202);
}

#[tokio::test]
async fn a_revoked_key_is_revoking_until_the_operator_lets_it_go() {
    let world = World::new("revoked").await;
    let (acme, made) = (manager("acme"), Made::new(1));
    let name = world.created(&acme, &made).await;
    world.patch(
        &name,
        &json!({ "metadata": { "finalizers": ["waterdata.dev/test"] } }),
    );
    for _ in 0..2 {
        assert_eq!(world.revokes(&acme, &name).await.status, 202);
        assert_eq!(world.only(&acme).await["state"], "revoking");
    }
    assert_eq!(
        world
            .rotates(&acme, &name, &made, &Made::new(2))
            .await
            .code(),
        (409, "key_conflict")
    );
    world.patch(&name, &json!({ "metadata": { "finalizers": null } }));
    assert_eq!(world.revokes(&acme, &name).await.code(), (404, "not_found"));
    assert!(world.lists(&acme).await.is_empty());
}

#[tokio::test]
async fn a_key_of_that_name_that_was_made_since_is_not_revoked_in_its_place() {
    let world = World::new("uid").await;
    let acme = manager("acme");
    let name = world.created(&acme, &Made::new(1)).await;
    let read: ApiKey = world.keys.cluster.key(&acme, &name).await.unwrap().unwrap();
    world.objects.delete(&format!("apikey/{name}")).unwrap();
    world.applies(&world.manifest(&name, "acme"));
    let refused = world.keys.cluster.delete(&read).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused:?}");
    assert_eq!(world.only(&acme).await["madeBy"], "cluster");
}

#[tokio::test]
async fn a_key_that_goes_before_a_change_of_it_is_written_is_not_there() {
    let world = World::new("overtaken").await;
    let acme = manager("acme");
    let title = json!({ "title": "Other" });
    for (number, method, body) in [(1, "DELETE", NOBODY), (2, "PATCH", title)] {
        let name = world.created(&acme, &Made::new(number)).await;
        let mut interceptor = Interceptor::default();
        let keys = world.replica(&mut interceptor).await;
        connected(&keys.usage).await;
        let (objects, key) = (world.objects.clone(), format!("apikey/{name}"));
        interceptor.show(move |_, request| {
            if request.starts_with(method.as_bytes()) {
                objects.delete(&key).unwrap();
            }
        });
        let answer = Answer::ask(&keys, &acme, method, &["keys", &name], body).await;
        assert_eq!(answer.code(), (404, "not_found"), "{method}: {answer:?}");
    }
    // What was not written is not counted.
    assert_eq!(world.takes_all(&acme, Allowance::Renames).await, 60);
}

#[tokio::test]
async fn a_key_of_another_installation_is_not_there() {
    let world = World::new("not-here").await;
    let acme = manager("acme");
    for name in ["here", "issued"] {
        world.applies(&world.manifest(name, "acme"));
    }
    let mut declared = world.manifest("declared", "acme");
    declared["spec"]["apiRef"] = json!({ "name": "other" });
    world.applies(&declared);
    let other = json!({ "namespace": world.namespace, "name": "other" });
    world.tells("issued", &json!({ "api": other }));
    assert_eq!(world.only(&acme).await["name"], "here");
    for name in ["declared", "issued"] {
        let answer = world.revokes(&acme, name).await;
        assert_eq!(answer.code(), (404, "not_found"), "{name}");
    }
}

#[tokio::test]
async fn keys_are_listed_with_the_newest_first() {
    let world = World::new("newest").await;
    let acme = manager("acme");
    world.applies(&world.manifest("a", "acme"));
    let shown = world.only(&acme).await;
    let first = Timestamp::parse(shown["createdAt"].as_str().unwrap()).unwrap();
    // The API server keeps whole seconds, and keys of the same one are listed by name.
    let passed = async || {
        let since = crate::clock::now().as_millis() - first.as_millis();
        anyhow::ensure!(since >= 1_000, "the same second");
        Ok(())
    };
    wait_until("the next second", SOON, passed).await.unwrap();
    world.applies(&world.manifest("b", "acme"));
    let listed = world.lists(&acme).await;
    let names: Vec<_> = listed.iter().map(|key| &key["name"]).collect();
    assert_eq!(names, ["b", "a"]);
}

#[tokio::test]
async fn a_key_of_the_cluster_is_looked_at_and_revoked_and_not_changed() {
    let world = World::new("cluster").await;
    let acme = manager("acme");
    for (name, account) in [("by-hand", "acme"), ("one", "acme.fr"), ("two", "Acme")] {
        world.applies(&world.manifest(name, account));
    }
    // Keys of accounts whose names are alike are not among them.
    let shown = world.only(&acme).await;
    assert_eq!(
        (&shown["madeBy"], &shown["requestedBy"]),
        (&json!("cluster"), &NOBODY)
    );
    let title = json!({ "title": "Mine" });
    let renamed = world
        .asks(&acme, "PATCH", &["keys", "by-hand"], title)
        .await;
    assert_eq!(renamed.code(), (409, "key_conflict"));
    let rotated = world
        .rotates(&acme, "by-hand", &Made::new(1), &Made::new(2))
        .await;
    assert_eq!(rotated.code(), (409, "key_conflict"));
    assert_eq!(world.revokes(&acme, "by-hand").await.status, 202);
    assert!(world.lists(&acme).await.is_empty());
}

#[tokio::test]
async fn budgets_of_changes_count_what_is_written_and_never_stop_a_rotation_or_a_revocation() {
    let world = World::new("often").await;
    let acme = manager("acme");
    let (old, new) = (Made::new(1), Made::new(2));
    let name = world.created(&acme, &old).await;
    let renames = async |title: String| {
        let body = json!({ "title": title });
        world.asks(&acme, "PATCH", &["keys", &name], body).await
    };
    for number in 0..60 {
        assert_eq!(renames(format!("Title {number}")).await.status, 200);
        // Neither of these writes anything.
        assert_eq!(renames(format!("Title {number}")).await.status, 200);
        assert_eq!(world.revokes(&acme, "no-such-key").await.status, 404);
    }
    let refused = renames("Title 60".to_owned()).await;
    assert_eq!(refused.code(), (429, "rate_limited"));
    assert!((3400..=3600).contains(&refused.retry_after.unwrap()));
    let rotated = world.rotates(&acme, &name, &old, &new).await;
    assert_eq!(rotated.status, 200);
    assert_eq!(world.revokes(&acme, &name).await.status, 202);
}

#[tokio::test]
async fn each_kind_of_change_has_its_own_budget() {
    let world = World::new("kinds").await;
    let acme = manager("acme");
    let [first, second, third] = [1, 2, 3].map(Made::new);
    let name = world.created(&acme, &first).await;
    assert_eq!(world.takes_all(&acme, Allowance::Creations).await, 29);
    let refused = world.creates(&acme, &third).await;
    assert_eq!(refused.code(), (429, "rate_limited"));
    let rotated = world.rotates(&acme, &name, &first, &second).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    assert_eq!(world.takes_all(&acme, Allowance::Rotations).await, 59);
    let refused = world.rotates(&acme, &name, &second, &third).await;
    assert_eq!(refused.code(), (429, "rate_limited"));
    let title = json!({ "title": "Other" });
    let renamed = world.asks(&acme, "PATCH", &["keys", &name], title).await;
    assert_eq!(renamed.status, 200, "{renamed:?}");
}

#[tokio::test]
async fn paths_have_their_methods_and_no_others() {
    let world = World::new("methods").await;
    let acme = manager("acme");
    for (method, path) in [
        ("PUT", vec!["keys"]),
        ("DELETE", vec!["keys"]),
        ("GET", vec!["keys", "acme-1"]),
        ("POST", vec!["keys", "acme-1"]),
        ("GET", vec!["keys", "acme-1", "rotation"]),
        ("POST", vec!["keys", "acme-1", "previous"]),
    ] {
        let answer = world.asks(&acme, method, &path, NOBODY).await;
        assert_eq!(
            answer.code(),
            (405, "method_not_allowed"),
            "{method} {path:?}"
        );
    }
    for path in [vec!["keys", "a", "b"], vec!["keys", "a", "rotation", "c"]] {
        assert_eq!(
            world.asks(&acme, "GET", &path, NOBODY).await.code(),
            (404, "not_found")
        );
    }
}

#[tokio::test]
async fn the_portal_notices_that_the_bounds_of_its_rights_are_gone() {
    let world = World::new("bounds").await;
    let binding = "validatingadmissionpolicybinding/keys-bounds-water";
    world.cluster.kubectl(&["delete", binding]).unwrap();
    let noticed = async || {
        let is_bounded = world.keys.cluster.is_bounded().await?;
        anyhow::ensure!(!is_bounded, "still refused");
        Ok(())
    };
    wait_until("the end of the policy", SOON, noticed)
        .await
        .unwrap();
    let left = world.objects.keys().unwrap();
    assert!(left.is_empty(), "a dry run writes nothing");
}
