//! A leader is lost between the announcement of a key and its Secret, and writes that late: a key that is
//! revealed works, and one that was withdrawn meanwhile is replaced.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::{Value, json};
use water_domain::{KeyHash, KeyPrefix, PlainKey};
use water_harness::Redis;
use water_keystore::{Declaration, Origin, Owner, Record};

use crate::Result;
use crate::gate::{GRACE, Gate};
use crate::steps::{SECRET, count, current, holds, ready, successor, text_hash};
use crate::world::{PATIENCE, World, api, key};

/// A key waits for a silent gate, and its leader was stopped. Another one had announced and declared this key
/// before that, and is not lost but late.
async fn announced(namespace: &str) -> anyhow::Result<(World, Gate, Late, impl Sized)> {
    let redis = Redis::start().await?;
    let world = World::with_redis(namespace, &redis.url()).await?;
    world.apply(&api())?;
    let leader = world.operator("operator-0")?;
    world.synced().await?;
    let gate = Gate::start(&world, "gate-0", GRACE).await?;
    gate.fall_silent();
    world.apply(&key("acme"))?;
    count(&world, 1).await?;
    leader.stop(PATIENCE).await?;
    let plain = PlainKey::generate(&KeyPrefix::default(), &[7; 48]);
    let issued = json!({
        "revision": 0,
        "hash": plain.hash().to_string(),
        "keyId": plain.key_id().as_str(),
        "issuedTime": "2026-01-01T00:00:00.000Z",
    });
    let status = json!({ "status": { "unrevealed": [issued] } });
    world.patch("apikey/acme", &status, &["--subresource=status"])?;
    declare(&world, &plain).await?;
    Ok((world, gate, Late { plain, issued }, redis))
}

/// Declares a key beside the one that is published, as the leader would have done that announced it.
async fn declare(world: &World, plain: &PlainKey<'_>) -> Result {
    let directory = world.directory()?;
    let meta = directory.observe().await?.meta.context("no meta")?;
    let (writer, _) = directory.claim(&meta.owner, &meta.api, None).await?;
    let key = world.get("apikey/acme")?;
    let uid = key["metadata"]["uid"].as_str().context("no uid")?;
    let snapshot = directory.owner_snapshot(uid, &Origin::Generated, &[]);
    let snapshot = snapshot.await?;
    let held = snapshot.records.into_iter();
    let mut records: BTreeMap<KeyHash, Record> = held
        .filter_map(|(hash, record)| Some((hash, record?)))
        .collect();
    let beside = records.values().next().context("no record")?.clone();
    let key_id = plain.key_id();
    records.insert(plain.hash(), Record { key_id, ..beside });
    let declaration = Declaration {
        owner: Owner {
            uid: uid.into(),
            namespace: world.namespace.as_str().into(),
            name: "acme".into(),
        },
        number: snapshot.number,
        records,
        withdrawn: BTreeSet::new(),
        revoked: BTreeSet::new(),
        reinstated: BTreeMap::new(),
        origin: Origin::Generated,
        is_last: false,
    };
    writer.declare(&declaration).await?;
    Ok(())
}

/// A key as a status names it, and its text.
struct Late {
    plain: PlainKey<'static>,
    issued: Value,
}

impl Late {
    fn hash(&self) -> String {
        self.plain.hash().to_string()
    }

    /// Writes the Secret, as the leader would have done that announced the key.
    fn reveal(&self, world: &World) -> Result {
        let uid = world.get("apikey/acme")?["metadata"]["uid"].clone();
        world.apply(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": "acme-apikey",
                "labels": { "waterdata.dev/api-key": "acme" },
                "annotations": {
                    "waterdata.dev/api-key-uid": uid,
                    "waterdata.dev/key-hash": self.issued["hash"],
                    "waterdata.dev/key-id": self.issued["keyId"],
                    "waterdata.dev/revision": self.issued["revision"].to_string(),
                    "waterdata.dev/issued-time": self.issued["issuedTime"],
                },
            },
            "stringData": { "api-key": self.plain.expose() },
        }))
    }
}

#[tokio::test]
async fn a_leader_that_was_not_lost_reveals_a_key_that_works() -> Result {
    let (world, gate, late, _redis) = announced("lost-reveals").await?;
    let _next = world.operator("operator-1")?;
    // The next leader's own one, too.
    count(&world, 3).await?;
    late.reveal(&world)?;
    holds(
        &world,
        &[format!("{} Enterprise Active", late.plain.key_id())],
    )
    .await?;
    gate.follow();
    let found = ready(&world, "acme", "True/Active").await?;
    assert_eq!(found["status"]["keyId"], late.issued["keyId"]);
    world.told("acme", &["KeyIssued"]).await
}

#[tokio::test]
async fn a_withdrawn_key_that_comes_late_in_the_place_of_a_deleted_secret_is_replaced() -> Result {
    let (world, gate, late, _redis) = announced("lost-late").await?;
    let next = world.operator("operator-1")?;
    gate.follow();
    let first = current(&ready(&world, "acme", "True/Active").await?)?;
    assert_ne!(first, late.hash());
    count(&world, 1).await?;
    next.stop(PATIENCE).await?;
    world.kubectl(&["delete", SECRET])?;
    late.reveal(&world)?;
    let _last = world.operator("operator-2")?;
    let replaced = successor(&world, &first).await?;
    let second = current(&replaced)?;
    assert_ne!(second, late.hash(), "it was withdrawn");
    assert_eq!(text_hash(&world)?, second);
    // The key that its owner may have read works on.
    assert_eq!(replaced["status"]["previous"]["hash"], first.as_str());
    assert!(gate.accepts(&first)? && gate.accepts(&second)?);
    assert!(!gate.accepts(&late.hash())?);
    world.told("acme", &["KeyIssued", "SecretReissued"]).await
}
