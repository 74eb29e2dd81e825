//! Tests of a Secret that is deleted or edited by hand: another key replaces its own, with overlap.

use anyhow::ensure;
use serde_json::json;
use water_domain::{KeyPrefix, PlainKey};

use crate::Result;
use crate::audit::writes;
use crate::gate::{GRACE, Gate};
use crate::steps::{
    SECRET, becomes, count, current, edit, message, raise, secret_value, stalled, successor,
    text_hash, until,
};
use crate::world::{World, api, key};

#[tokio::test]
async fn fault_19_a_secret_that_is_deleted_or_edited_is_issued_again_three_times_and_then_when_asked_for()
-> Result {
    let (world, _operator) = World::running("reissue").await?;
    let first = current(&world.in_force(&key("acme")).await?)?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    world.kubectl(&["delete", SECRET])?;
    let reissued = successor(&world, &first).await?;
    let second = current(&reissued)?;
    ensure!(gate.accepts(&first)? && gate.accepts(&second)?);
    assert_eq!(text_hash(&world)?, second);
    let status = &reissued["status"];
    assert_eq!(status["previous"]["hash"], first.as_str());
    assert_eq!(status["reissues"][0]["keyId"], status["keyId"]);
    count(&world, 2).await?;

    let plain = |seed| PlainKey::generate(&KeyPrefix::default(), &[seed; 48]);
    let theirs = json!({
        "metadata": { "labels": { "team": "blue" } },
        "stringData": { "note": "ours", "api-key": plain(9).expose() },
    });
    world.patch(SECRET, &theirs, &[])?;
    let third = current(&successor(&world, &second).await?)?;
    assert_eq!(text_hash(&world)?, third);
    let secret = world.get(SECRET)?;
    assert_eq!(secret["metadata"]["labels"]["team"], "blue");
    assert_eq!(secret["data"]["note"], "b3Vycw==");

    // One that names its key in the annotations, too, is not believed either.
    let annotated = json!({
        "metadata": { "annotations": {
            "waterdata.dev/key-hash": plain(8).hash().to_string(),
            "waterdata.dev/key-id": plain(8).key_id().as_str(),
        } },
        "stringData": { "api-key": plain(8).expose() },
    });
    world.patch(SECRET, &annotated, &[])?;
    let fourth = current(&successor(&world, &third).await?)?;
    assert_eq!(text_hash(&world)?, fourth);
    let published = count(&world, 2).await?.join(" ");
    for seed in [9, 8] {
        ensure!(
            !published.contains(plain(seed).key_id().as_str()),
            "{published}"
        );
    }

    world.kubectl(&["delete", SECRET])?;
    let limited = stalled(&world, "acme", "ReissueLimit").await?;
    let words = "the Secret acme-apikey was deleted or changed 3 times within ten minutes";
    ensure!(message(&limited, "Stalled").contains(words), "{limited}");
    // The key that nobody can read any more is no worse for that.
    assert_eq!(current(&limited)?, fourth);
    count(&world, 2).await?;
    raise(&world, 1)?;
    let fifth = current(&successor(&world, &fourth).await?)?;
    assert_eq!(text_hash(&world)?, fifth);
    let again = ["SecretReissued"; 3];
    let told = [&["KeyIssued"][..], &again, &["ReissueLimit", "KeyRotated"]];
    world.told("acme", &told.concat()).await
}

/// Writes to acme's Secret.
fn written(world: &World) -> anyhow::Result<usize> {
    let writes = writes(world)?;
    let is_its = |write: &&String| write.contains("secrets/acme-apikey");
    Ok(writes.iter().filter(is_its).count())
}

#[tokio::test]
async fn a_label_is_no_edit_and_details_are_as_declared_again() -> Result {
    let (world, _operator) = World::running("reissue-amend").await?;
    let first = current(&world.in_force(&key("acme")).await?)?;
    let before = written(&world)?;
    world.kubectl(&["label", "secret", "acme-apikey", "backup=done"])?;
    let version = world.get(SECRET)?["metadata"]["resourceVersion"].clone();
    becomes(&world, "apikey/acme", "told of the version", |found| {
        found["status"]["secretResourceVersion"] == version
    })
    .await?;
    assert_eq!(written(&world)?, before);
    let id = secret_value(&world, "key-id")?;
    let edits = json!({ "stringData": { "base-url": "https://elsewhere.example" }, "data": { "key-id": null } });
    world.patch(SECRET, &edits, &[])?;
    // The next regular pass over an ApiKey comes later than this waits.
    until(&world, "the details", async || {
        let found = (
            secret_value(&world, "key-id")?,
            secret_value(&world, "base-url")?,
        );
        ensure!(
            found == (id.clone(), "http://water.example".into()),
            "{found:?}"
        );
        Ok(())
    })
    .await?;
    for (policy, owners) in [("Retain", 0), ("Delete", 1)] {
        let generated = json!({ "generated": { "deletionPolicy": policy } });
        edit(&world, "acme", &json!({ "material": generated }))?;
        becomes(&world, SECRET, policy, |secret| {
            let found = secret["metadata"]["ownerReferences"].as_array();
            found.map_or(0, Vec::len) == owners
        })
        .await?;
    }
    let mut moved = api();
    moved["spec"]["exposure"]["ingress"]["host"] = "moved.example".into();
    world.apply(&moved)?;
    until(&world, "the base URL", async || {
        let url = secret_value(&world, "base-url")?;
        ensure!(url == "http://moved.example", "{url}");
        Ok(())
    })
    .await?;
    assert_eq!(text_hash(&world)?, first);
    assert_eq!(current(&world.get("apikey/acme")?)?, first);
    world.told("acme", &["KeyIssued"]).await
}
