//! Claims, plans, and a `meta` that is lost, unreadable or of a later schema.

use serde_json::{Value, json};
use water_keystore::WriteError;

use crate::site::*;

#[tokio::test]
async fn a_claim_takes_the_next_term_and_fences_the_earlier_writer() {
    let site = Site::new().await;
    let (earlier, meta) = site.claim_as(UID, API, None).await.unwrap();
    assert_eq!(
        (meta.term, &*meta.owner, &*meta.api),
        (earlier.term(), UID, API)
    );
    assert!(site.needs_rebuild().await, "it is new");
    earlier.rebuild(|| contents([])).await.unwrap();

    let later = site.claim().await;
    assert!(later.term() > earlier.term());
    let declared = site.declare(&earlier, holding(hash(1))).await.err();
    let rebuilt = earlier.rebuild(|| contents([hash(1)])).await.err();
    for refused in [declared, rebuilt] {
        assert!(matches!(refused, Some(WriteError::Fenced { stored }) if stored == later.term()));
    }
    assert!(!site.needs_rebuild().await);
    site.publish(&later, hash(1)).await;
}

#[tokio::test]
async fn terms_grow_even_when_redis_has_lost_the_stored_one() {
    let site = Site::new().await;
    let before = site.ready().await;
    site.vandalise(redis::cmd("DEL").arg(site.instance.meta()))
        .await;
    let refused = site.declare(&before, holding(hash(1))).await;
    assert!(matches!(refused, Err(WriteError::Wiped)), "{refused:?}");
    let after = site.claim().await;
    assert!(after.term() > before.term());
}

#[tokio::test]
async fn another_namespaces_directory_is_left_alone_until_its_uid_is_named() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let claim = async |take_over| site.claim_as("other", API, take_over).await;
    let refused = claim(None).await.unwrap_err();
    assert!(matches!(refused, WriteError::Owned { uid } if uid == UID));
    assert!(claim(Some("third")).await.is_err());

    let (_, meta) = claim(Some(UID)).await.unwrap();
    assert_eq!((meta.owner.as_str(), meta.complete), ("other", false));
}

#[tokio::test]
async fn what_another_water_data_api_has_left_must_be_rebuilt() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let claim = async |api| site.claim_as(UID, api, None).await.unwrap();
    assert!(claim(API).await.1.complete);
    let (writer, meta) = claim("made anew").await;
    assert_eq!((&*meta.api, meta.complete), ("made anew", false));
    let refused = site.declare(&writer, holding(hash(2))).await;
    assert!(
        matches!(refused, Err(WriteError::Interrupted)),
        "{refused:?}"
    );
    writer.rebuild(|| contents([])).await.unwrap();
    let (_, meta) = claim("made anew").await;
    assert!(meta.complete && meta.counts.records == 0);
}

/// Contents of `meta` that no operator has written.
fn unreadable() -> Vec<String> {
    let meta = json!({
        "schema": 1, "owner": UID, "api": API, "term": 1, "generation": 1, "complete": true,
        "count": 0, "owners": 0, "held": 0, "revoked": 0, "seq": 1, "replid": "a",
    });
    let changed = [
        ("term", json!(-1)),
        ("generation", json!(1.5)),
        ("complete", Value::Null),
        ("held", json!("many")),
    ];
    let changed = changed.map(|(member, value)| {
        let mut meta = meta.clone();
        meta[member] = value;
        meta.to_string()
    });
    let others = ["", "{", "7", "{}", r#"{"schema":1}"#].map(str::to_owned);
    others.into_iter().chain(changed).collect()
}

#[tokio::test]
async fn a_meta_that_cannot_be_read_is_not_trusted_and_a_claim_heals_it() {
    let site = Site::new().await;
    let mut writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    for unreadable in unreadable() {
        site.publish(&writer, hash(1)).await;
        let mut spoil = redis::cmd("SET");
        spoil.arg(site.instance.meta()).arg(&unreadable);
        site.vandalise(&mut spoil).await;
        gate.doubts().await;
        assert!(site.needs_rebuild().await);
        assert_eq!(site.leases().await.generation, None);
        let seen = site.owner_snapshot(&owner_of(hash(1)), &[]).await;
        assert_eq!(seen.position, None);
        let refused = site.declare(&writer, revoking(hash(1))).await.unwrap_err();
        assert!(
            matches!(refused, WriteError::Wiped),
            "{unreadable}: {refused}"
        );

        let (claimed, meta) = site.claim_as(UID, API, None).await.unwrap();
        assert!(!meta.complete && claimed.term() > writer.term());
        claimed.rebuild(|| contents([hash(1)])).await.unwrap();
        gate.comes_to("certainty", |status| status.current).await;
        writer = claimed;
    }
}

#[tokio::test]
async fn a_directory_of_a_later_schema_is_left_alone_and_a_gates_copy_stays_as_it_was() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let gate = site.complete_gate("gate-1").await;
    site.spoil(hash(1)).await;
    site.change_meta("meta.schema = 2 meta.generation = meta.generation + 1")
        .await;
    gate.doubts().await;
    gate.refuses_loads(3).await;
    assert_eq!(gate.record(hash(1)), Some(record()));
    assert_eq!(gate.status().loads, 1);

    let cold = site.running_gate("gate-2");
    cold.refuses_loads(2).await;
    assert!(cold.view().is_none());
    let claim = site.claim_as(UID, API, None).await.err();
    let declaration = site.declare(&writer, holding(hash(1))).await.err();
    for refused in [claim, declaration] {
        assert!(matches!(refused, Some(WriteError::Schema { stored: 2 })));
    }
}

#[tokio::test]
async fn plans_are_made_exactly_what_is_declared_and_reach_a_running_gate() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    let changes = gate.changes();
    let count = || changes.load(std::sync::atomic::Ordering::Acquire);
    let enterprise = |minute| plan("Enterprise", Some(limits(minute, 50_000)));
    let free = plan("Free", None);
    let mut before = writer.set_plans(&[]).await.unwrap();
    for (declared, written) in [
        (vec![enterprise(120), free.clone()], 2),
        (vec![enterprise(120), free.clone()], 0),
        (vec![enterprise(240), free.clone()], 1),
        (vec![enterprise(240)], 1),
    ] {
        let announced = count();
        let applied = writer.set_plans(&declared).await.unwrap();
        assert_eq!(applied.seq, before.seq + written, "{declared:?}");
        gate.comes_to("the plans", |status| status.seq == applied.seq)
            .await;
        assert_eq!(count() > announced, written > 0, "{declared:?}");
        let view = gate.view().unwrap();
        for name in [&free.name, &enterprise(1).name] {
            let wanted = declared.iter().find(|plan| plan.name == *name);
            assert_eq!(view.plan(name), wanted);
        }
        before = applied;
    }
    assert_eq!(gate.status().loads, 1, "the feed is enough");
    let other = site.complete_gate("gate-2").await;
    let view = other.view().unwrap();
    assert_eq!(view.plan(&enterprise(1).name), Some(&enterprise(240)));
    assert_eq!(view.plan(&free.name), None);
}
