//! A Secret that is deleted or edited by hand: another key takes the place of its own, with overlap.

use anyhow::ensure;
use serde_json::json;
use water_domain::{KeyPrefix, PlainKey};

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::turnover::{SECRET, current, holds, raise, successor, text_hash};
use crate::world::{PATIENCE, World, api, key, shown};

/// A world with acme's key in force, and its hash.
async fn issued(namespace: &str) -> anyhow::Result<(World, impl Sized, String)> {
    let (world, operator) = World::running(namespace).await?;
    let ready = world.in_force(&key("acme")).await?;
    let hash = current(&ready)?;
    Ok((world, operator, hash))
}

/// Writes a text into the Secret.
fn edit(world: &World, text: &str) -> Result {
    world.patch(SECRET, &json!({ "stringData": { "api-key": text } }), &[])
}

#[tokio::test]
async fn a_deleted_secret_is_issued_again_and_the_old_key_works_on() -> Result {
    let (world, _operator, first) = issued("reissue-deleted").await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    world.kubectl(&["delete", "secret", "acme-apikey"])?;
    let ready = successor(&world, &first).await?;
    assert!(gate.accepts(&first)? && gate.accepts(&current(&ready)?)?);
    assert_eq!(text_hash(&world)?, current(&ready)?);
    assert_eq!(ready["status"]["previous"]["hash"], first.as_str());
    assert_eq!(
        ready["status"]["reissues"][0]["keyId"],
        ready["status"]["keyId"]
    );
    holds(&world, 2).await?;
    world.told("acme", &["KeyIssued", "SecretReissued"]).await
}

#[tokio::test]
async fn an_edited_text_is_replaced_and_what_others_wrote_stays() -> Result {
    let (world, _operator, first) = issued("reissue-edited").await?;
    let theirs =
        json!({ "metadata": { "labels": { "team": "blue" } }, "stringData": { "note": "ours" } });
    world.patch(SECRET, &theirs, &[])?;
    let plain = PlainKey::generate(&KeyPrefix::default(), &[9; 48]);
    edit(&world, plain.expose())?;
    let ready = successor(&world, &first).await?;
    assert_eq!(text_hash(&world)?, current(&ready)?);
    let secret = world.get(SECRET)?;
    assert_eq!(secret["metadata"]["labels"]["team"], "blue");
    assert_eq!(secret["data"]["note"], "b3Vycw==");
    // Nobody's key is accepted because somebody wrote it there.
    let published = holds(&world, 2).await?.join(" ");
    assert!(!published.contains(plain.key_id().as_str()), "{published}");
    world.told("acme", &["KeyIssued", "SecretReissued"]).await
}

#[tokio::test]
async fn a_hash_that_is_written_into_the_annotations_is_not_believed() -> Result {
    let (world, _operator, first) = issued("reissue-annotated").await?;
    let plain = PlainKey::generate(&KeyPrefix::default(), &[8; 48]);
    let theirs = json!({
        "metadata": { "annotations": {
            "waterdata.dev/key-hash": plain.hash().to_string(),
            "waterdata.dev/key-id": plain.key_id().as_str(),
        } },
        "stringData": { "api-key": plain.expose() },
    });
    world.patch(SECRET, &theirs, &[])?;
    let ready = successor(&world, &first).await?;
    assert_ne!(current(&ready)?, plain.hash().to_string());
    assert_eq!(text_hash(&world)?, current(&ready)?);
    world.told("acme", &["KeyIssued", "SecretReissued"]).await
}

#[tokio::test]
async fn a_label_is_no_edit_and_its_version_is_remembered() -> Result {
    let (world, _operator, first) = issued("reissue-label").await?;
    let writes = |world: &World| -> anyhow::Result<usize> {
        let writes = world.writes()?;
        Ok(writes
            .iter()
            .filter(|write| write.contains("secrets/acme-apikey"))
            .count())
    };
    let before = writes(&world)?;
    world.kubectl(&["label", "secret", "acme-apikey", "backup=done"])?;
    let version = world.get(SECRET)?["metadata"]["resourceVersion"].clone();
    let remembered = async || {
        let found = world.get("apikey/acme")?;
        ensure!(
            found["status"]["secretResourceVersion"] == version,
            "{found}"
        );
        Ok(found)
    };
    let found = world.wait("the version", PATIENCE, remembered).await?;
    assert_eq!(current(&found)?, first);
    assert_eq!(writes(&world)?, before);
    Ok(())
}

#[tokio::test]
async fn the_fourth_reissue_stalls_until_its_owner_asks_for_it() -> Result {
    let (world, _operator, mut hash) = issued("reissue-limit").await?;
    for _ in 0..3 {
        world.kubectl(&["delete", "secret", "acme-apikey"])?;
        hash = current(&successor(&world, &hash).await?)?;
    }
    world.kubectl(&["delete", "secret", "acme-apikey"])?;
    let stalled = world
        .condition("apikey/acme", "Stalled", "True/ReissueLimit")
        .await?;
    let words = stalled["status"]["conditions"].to_string();
    assert!(
        words.contains("the Secret acme-apikey was deleted or changed 3 times within ten minutes"),
        "{words}"
    );
    // The key that nobody can read any more is no worse for that.
    assert_eq!(current(&stalled)?, hash);
    holds(&world, 2).await?;
    raise(&world, 1)?;
    let ready = successor(&world, &hash).await?;
    assert_eq!(text_hash(&world)?, current(&ready)?);
    world
        .told(
            "acme",
            &[
                "KeyIssued",
                "SecretReissued",
                "SecretReissued",
                "SecretReissued",
                "ReissueLimit",
                "KeyRotated",
            ],
        )
        .await
}

#[tokio::test]
async fn an_edited_deletion_policy_and_base_url_reach_the_secret() -> Result {
    let (world, _operator, first) = issued("reissue-amend").await?;
    let owned = |wanted: bool| {
        let world = &world;
        async move || {
            let secret = world.get(SECRET)?;
            let owners = secret["metadata"]["ownerReferences"].as_array();
            let is_owned = owners.is_some_and(|owners| !owners.is_empty());
            ensure!(is_owned == wanted, "{secret}");
            Ok(())
        }
    };
    let policy = |policy: &str| {
        let edit = json!({ "spec": { "material": { "generated": { "deletionPolicy": policy } } } });
        world.patch("apikey/acme", &edit, &[])
    };
    policy("Retain")?;
    world.wait("no owner", PATIENCE, owned(false)).await?;
    policy("Delete")?;
    world.wait("an owner", PATIENCE, owned(true)).await?;
    let mut moved = api();
    moved["spec"]["exposure"]["ingress"]["host"] = "moved.example".into();
    world.apply(&moved)?;
    let reached = async || {
        let template = "--output=go-template={{index .data \"base-url\" | base64decode}}";
        let url = world.kubectl(&["get", "secret", "acme-apikey", template])?;
        ensure!(url == "http://moved.example", "{url}");
        Ok(())
    };
    world.wait("the new base URL", PATIENCE, reached).await?;
    assert_eq!(text_hash(&world)?, first);
    let found = world.get("apikey/acme")?;
    assert_eq!(shown(&found, "Ready"), "True/Active");
    assert_eq!(current(&found)?, first);
    world.told("acme", &["KeyIssued"]).await
}
