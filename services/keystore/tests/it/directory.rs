//! Claims, plans and last uses, as the operator makes and reads them.

use water_keystore::WriteError;

use crate::site::*;

#[tokio::test]
async fn the_first_claim_makes_a_directory_that_is_not_complete() {
    let site = Site::new().await;
    let (writer, meta) = site.directory().claim(UID, API, None).await.unwrap();
    assert_eq!((meta.term, &*meta.owner), (writer.term(), UID));
    assert_eq!(meta.api, API);
    assert!(site.directory().observe().await.unwrap().needs_rebuild());
}

#[tokio::test]
async fn a_later_claim_fences_the_earlier_writer() {
    let site = Site::new().await;
    let earlier = site.ready().await;
    let later = site.claim().await;
    assert!(later.term() > earlier.term());
    let refused = site.declare(&earlier, holding(hash(1))).await.unwrap_err();
    assert!(matches!(refused, WriteError::Fenced { stored } if stored == later.term()));
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
    let claim = async |take_over| site.directory().claim("other", API, take_over).await;
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
    let (_, meta) = site.directory().claim(UID, API, None).await.unwrap();
    assert!(meta.complete);
    let (writer, meta) = site
        .directory()
        .claim(UID, "made anew", None)
        .await
        .unwrap();
    assert_eq!((&*meta.api, meta.complete), ("made anew", false));
    let refused = site.declare(&writer, holding(hash(2))).await;
    assert!(
        matches!(refused, Err(WriteError::Interrupted)),
        "{refused:?}"
    );
    writer.rebuild(|| contents([])).await.unwrap();
    let (_, meta) = site
        .directory()
        .claim(UID, "made anew", None)
        .await
        .unwrap();
    assert!(meta.complete && meta.counts.records == 0);
}

/// Each is a meta that no operator has written.
const UNREADABLE: [&str; 8] = [
    "",
    "{",
    "7",
    "{}",
    r#"{"schema":1}"#,
    r#"{"schema":1,"owner":"0b5e","term":-1,"generation":1,"complete":true,"count":0,"seq":1,"replid":"a"}"#,
    r#"{"schema":1,"owner":"0b5e","term":1,"generation":1.5,"complete":true,"count":0,"seq":1,"replid":"a"}"#,
    r#"{"schema":1,"owner":"0b5e","term":1,"generation":1,"complete":null,"count":0,"seq":1,"replid":"a"}"#,
];

#[tokio::test]
async fn a_sight_tells_the_term_of_the_last_claim() {
    let site = Site::new().await;
    let owner = owner_of(hash(1));
    let first = site.ready().await;
    assert_eq!(site.owner_snapshot(&owner, &[]).await.term, first.term());
    let second = site.claim().await;
    assert_eq!(site.owner_snapshot(&owner, &[]).await.term, second.term());
}

#[tokio::test]
async fn a_meta_that_cannot_be_read_is_not_trusted_and_a_claim_heals_it() {
    let site = Site::new().await;
    let mut writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    for unreadable in UNREADABLE {
        site.publish(&writer, hash(1)).await;
        let mut spoil = redis::cmd("SET");
        spoil.arg(site.instance.meta()).arg(unreadable);
        site.vandalise(&mut spoil).await;
        gate.doubts().await;
        let directory = site.directory();
        assert!(directory.observe().await.unwrap().needs_rebuild());
        assert_eq!(directory.leases().await.unwrap().generation, None);
        assert_eq!(
            site.owner_snapshot(&owner_of(hash(1)), &[]).await.position,
            None
        );
        let refused = site.declare(&writer, revoking(hash(1))).await.unwrap_err();
        assert!(
            matches!(refused, WriteError::Wiped),
            "{unreadable}: {refused}"
        );

        let (claimed, meta) = directory.claim(UID, API, None).await.unwrap();
        assert!(!meta.complete && claimed.term() > writer.term());
        claimed.rebuild(|| contents([hash(1)])).await.unwrap();
        gate.comes_to("certainty", |status| status.current).await;
        writer = claimed;
    }
}

#[tokio::test]
async fn a_directory_of_a_later_schema_is_left_alone() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let mut later = redis::cmd("SET");
    later.arg(site.instance.meta()).arg(r#"{"schema":2}"#);
    site.vandalise(&mut later).await;
    let claim = site.directory().claim(UID, API, None).await;
    let declaration = site.declare(&writer, holding(hash(1))).await;
    for refused in [claim.err(), declaration.err()] {
        assert!(matches!(refused, Some(WriteError::Schema { stored: 2 })));
    }
}

#[tokio::test]
async fn stored_records_read_back_with_their_owners() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.write(&writer, holding_as(hash(1), suspended())).await;
    let stored = site.directory().stored().await.unwrap();
    assert_eq!(stored[&hash(1)].record, Some(suspended()));
    assert_eq!(stored[&hash(1)].owner, Some(owner_of(hash(1))));
}

#[tokio::test]
async fn plans_are_made_exactly_what_is_declared() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let declared = [
        plan("Enterprise", Some(limits(120, 50_000))),
        plan("Free", None),
    ];
    let first = writer.set_plans(&declared).await.unwrap();
    assert_eq!(writer.set_plans(&declared).await.unwrap(), first);
    let second = writer.set_plans(&declared[..1]).await.unwrap();
    assert_eq!(second.seq, first.seq + 1);

    let gate = site.complete_gate("gate-1").await;
    let view = gate.view().unwrap();
    assert_eq!(view.plan(&declared[0].name), Some(&declared[0]));
    assert_eq!(view.plan(&declared[1].name), None);
}

#[tokio::test]
async fn last_use_is_none_until_a_gate_has_told_it() {
    let site = Site::new().await;
    let used = record().key_id;
    let mut told = redis::cmd("ZADD");
    told.arg(site.instance.used())
        .arg(1_800_000_000_123_i64)
        .arg(used.as_str());
    site.vandalise(&mut told).await;
    let keys = [used, "000000000000".parse().unwrap()];
    let told = site.directory().last_used(&keys).await.unwrap();
    assert_eq!(
        told.iter()
            .map(|time| time.map(|time| time.as_millis()))
            .collect::<Vec<_>>(),
        [Some(1_800_000_000_123), None]
    );
}
