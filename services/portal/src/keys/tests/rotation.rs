//! A key's text is replaced, works in the overlap with the next one, and is ended.

use futures::future::join_all;
use serde_json::json;
use water_keystore::UtcDay;
use water_keystore::usage::Use;

use super::NOBODY;
use super::world::{Made, World};
use crate::sample::manager;

const FOR_EVER: &str = "2120-01-01T00:00:00Z";

#[tokio::test]
async fn a_rotation_names_what_it_replaces_and_the_same_again_changes_nothing() {
    let world = World::new("rotation").await;
    let acme = manager("acme");
    let [first, second, third] = [1, 2, 3].map(Made::new);
    let name = world.created(&acme, &first).await;
    world.publishes(&name, None);
    let rotated = world.rotates(&acme, &name, &first, &second).await;
    assert_eq!(
        (rotated.status, &rotated.body["state"]),
        (200, &json!("publishing"))
    );
    assert_eq!(rotated.body["keyId"], second.key_id);
    let object = world.object(&name);
    assert_eq!(object["spec"]["material"]["hash"]["sha256"], second.sha256);
    assert_eq!(object["spec"]["rotation"]["overlapSeconds"], 3600);
    assert!(object["spec"]["expirationTime"].is_null());
    assert_eq!(
        world.rotates(&acme, &name, &first, &second).await.status,
        200
    );
    assert_eq!(
        world.object(&name)["metadata"]["generation"],
        object["metadata"]["generation"]
    );
    assert_eq!(
        world.rotates(&acme, &name, &first, &third).await.code(),
        (409, "changed_meanwhile")
    );
}

#[tokio::test]
async fn of_two_rotations_at_once_the_second_is_told() {
    let world = World::new("rotations").await;
    let (acme, first) = (manager("acme"), Made::new(1));
    let name = world.created(&acme, &first).await;
    world.publishes(&name, None);
    let rivals: Vec<Made> = (2..=5).map(Made::new).collect();
    let answers = join_all(
        rivals
            .iter()
            .map(|rival| world.rotates(&acme, &name, &first, rival)),
    );
    let answers = answers.await;
    let winners: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .collect();
    assert_eq!(winners.len(), 1, "{answers:?}");
    let told = answers
        .iter()
        .filter(|answer| answer.code() == (409, "changed_meanwhile"));
    assert_eq!(told.count(), 3, "{answers:?}");
    assert_eq!(
        world.object(&name)["spec"]["material"]["hash"]["keyId"],
        winners[0].body["keyId"]
    );
}

#[tokio::test]
async fn an_overlap_that_runs_is_ended_only_by_whoever_says_so() {
    let world = World::new("overlap").await;
    let acme = manager("acme");
    let [first, second, third] = [1, 2, 3].map(Made::new);
    let name = world.created(&acme, &first).await;
    world.publishes(&name, None);
    assert_eq!(
        world.rotates(&acme, &name, &first, &second).await.status,
        200
    );
    // The first text works, and the second one soon will.
    assert_eq!(
        world.rotates(&acme, &name, &second, &third).await.code(),
        (409, "overlap_running")
    );
    world.publishes(&name, Some((&first, FOR_EVER)));
    assert_eq!(
        world.rotates(&acme, &name, &second, &third).await.code(),
        (409, "overlap_running")
    );
    let shown = world.only(&acme).await;
    assert_eq!(shown["previous"]["keyId"], first.key_id);
    assert_eq!(shown["previous"]["retiresAt"], "2120-01-01T00:00:00.000Z");
    let mut body = third.rotation(&second);
    body["endPrevious"] = json!(true);
    let answer = world
        .asks(&acme, "POST", &["keys", &name, "rotation"], body)
        .await;
    assert_eq!(
        (answer.status, &answer.body["keyId"]),
        (200, &json!(third.key_id))
    );
}

#[tokio::test]
async fn an_overlap_is_ended_by_its_own_request_and_one_that_is_over_is_not_there() {
    let world = World::new("ended").await;
    let (acme, [first, second]) = (manager("acme"), [1, 2].map(Made::new));
    let name = world.created(&acme, &first).await;
    world.publishes(&name, None);
    let end = async || {
        world
            .asks(&acme, "DELETE", &["keys", &name, "previous"], NOBODY)
            .await
    };
    assert_eq!(end().await.code(), (404, "not_found"));
    world.rotates(&acme, &name, &first, &second).await;
    world.publishes(&name, Some((&first, FOR_EVER)));
    assert_eq!(end().await.status, 202);
    assert_eq!(world.object(&name)["spec"]["rotation"]["overlapSeconds"], 0);
    assert_eq!(end().await.status, 202);
    world.publishes(&name, Some((&first, "2020-01-01T00:00:00Z")));
    assert_eq!(end().await.code(), (404, "not_found"));
    assert_eq!(world.only(&acme).await["previous"], NOBODY);
}

#[tokio::test]
async fn the_text_before_shows_its_own_last_use_as_the_gates_tell_it() {
    let world = World::new("last-use").await;
    let (acme, [first, second]) = (manager("acme"), [1, 2].map(Made::new));
    let name = world.created(&acme, &first).await;
    world.publishes(&name, None);
    world.rotates(&acme, &name, &first, &second).await;
    world.publishes(&name, Some((&first, FOR_EVER)));
    assert_eq!(world.only(&acme).await["previous"]["lastUsedAt"], NOBODY);
    let now = crate::clock::now();
    let told = |account: &str, key: &Made| Use {
        account: account.parse().unwrap(),
        day: UtcDay::from(now),
        accepted: 1,
        limited: 0,
        keys: vec![(key.key_id.parse().unwrap(), now)],
    };
    world
        .keys
        .usage
        .add(vec![told("globex", &first)])
        .await
        .unwrap();
    assert_eq!(world.only(&acme).await["previous"]["lastUsedAt"], NOBODY);
    world
        .keys
        .usage
        .add(vec![told("acme", &first)])
        .await
        .unwrap();
    assert_eq!(
        world.only(&acme).await["previous"]["lastUsedAt"],
        json!(now)
    );
}
