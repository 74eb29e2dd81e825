//! Tombstones: which removals leave one, whom it bars, how it is lifted and when it is forgotten.

use std::collections::BTreeMap;

use redis::cmd;
use water_domain::{KeyHash, Timestamp};
use water_keystore::{Declaration, Declared, Entry, HashRefusal, Origin, Writer};

use crate::site::*;

const DAY: i64 = 86_400_000;

fn brought(account: &str) -> Origin {
    Origin::Brought(account.parse().unwrap())
}

/// Another owner than any other's holds the key, brought or generated.
fn anew(name: &str, origin: Origin, hash: KeyHash) -> Declaration {
    Declaration {
        origin,
        ..declaration(owner_named(name), [(hash, record())])
    }
}

fn nothing(declaration: &Declaration) -> Declaration {
    Declaration {
        records: BTreeMap::new(),
        ..declaration.clone()
    }
}

fn time_of(declared: &Declared, hash: KeyHash) -> Timestamp {
    match declared.refused.get(&hash) {
        Some(HashRefusal::Revoked { at }) => *at,
        other => panic!("{other:?}"),
    }
}

/// Writes a tombstone as it stands in Redis, and counts it.
async fn engrave(site: &Site, field: &[u8], text: String) {
    let engrave = "local meta = cjson.decode(redis.call('GET', KEYS[1])) \
        meta.revoked = meta.revoked + redis.call('HSET', KEYS[2], ARGV[1], ARGV[2]) \
        redis.call('SET', KEYS[1], cjson.encode(meta))";
    let mut call = cmd("EVAL");
    call.arg(engrave)
        .arg(2)
        .arg(site.instance.meta())
        .arg(site.instance.revoked());
    site.vandalise(call.arg(field).arg(text)).await;
}

async fn is_published(site: &Site, writer: &Writer, declaration: Declaration) -> bool {
    let declared = site.declare(writer, declaration).await.unwrap();
    declared.refused.is_empty()
}

#[tokio::test]
async fn every_removal_leaves_a_tombstone_but_a_withdrawal() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let dropped = declaration(owner_of(hash(1)), []);
    let last = Declaration {
        is_last: true,
        ..declaration(owner_of(hash(2)), [])
    };
    let last_withdrawn = Declaration {
        is_last: true,
        ..withdrawing(hash(3))
    };
    let removals = [
        (hash(1), dropped, true),
        (hash(2), last, true),
        (hash(3), last_withdrawn, false),
        (hash(4), revoking(hash(4)), true),
        (hash(5), withdrawing(hash(5)), false),
    ];
    for (hash, removal, is_barred) in removals {
        site.publish(&writer, hash).await;
        site.write(&writer, removal).await;
        assert!(site.directory().stored().await.unwrap().is_empty());
        let by_another = anew(&format!("another of {hash}"), Origin::Generated, hash);
        let was_published = is_published(&site, &writer, by_another.clone()).await;
        assert_eq!(was_published, !is_barred, "{hash}");
        let withdrawal = Declaration {
            withdrawn: [hash].into(),
            ..nothing(&by_another)
        };
        site.write(&writer, withdrawal).await;
    }
}

#[tokio::test]
async fn a_key_revoked_while_its_record_was_absent_does_not_come_back_either() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.revoke(&writer, hash(1)).await;
    let refused = site.declare(&writer, holding(hash(1))).await.unwrap();
    assert!(time_of(&refused, hash(1)) <= site.owner_snapshot(&owner_of(hash(1)), &[]).await.now);
}

#[tokio::test]
async fn a_generated_keys_tombstone_bars_everybody_and_a_brought_ones_its_account() {
    let site = Site::new().await;
    let writer = site.ready().await;
    for (number, revoked_as) in [(1, Origin::Generated), (2, brought("acme"))] {
        let hash = hash(number);
        let first = anew(&format!("first {number}"), revoked_as.clone(), hash);
        site.write(&writer, first.clone()).await;
        site.write(&writer, nothing(&first)).await;
        let is_everyone = revoked_as == Origin::Generated;
        for (asks, is_barred) in [
            (Origin::Generated, is_everyone),
            (brought("acme"), true),
            (brought("other"), is_everyone),
        ] {
            let uid = format!("uid-of-{number}");
            let snapshot = site
                .directory()
                .owner_snapshot(&uid, &asks, &[hash])
                .await
                .unwrap();
            assert_eq!(snapshot.barred.contains_key(&hash), is_barred, "{asks:?}");
            let next = anew(&format!("{asks:?} {number}"), asks, hash);
            let was_published = is_published(&site, &writer, next.clone()).await;
            assert_eq!(was_published, !is_barred, "{next:?}");
            let withdrawal = Declaration {
                withdrawn: [hash].into(),
                ..nothing(&next)
            };
            site.write(&writer, withdrawal).await;
        }
    }
}

#[tokio::test]
async fn a_rebuild_leaves_out_whom_a_tombstone_bars_and_nobody_else() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let first = anew("first", brought("acme"), hash(1));
    site.write(&writer, first.clone()).await;
    site.write(&writer, nothing(&first)).await;
    for (origin, is_barred) in [
        (brought("acme"), true),
        (brought("other"), false),
        (Origin::Generated, false),
    ] {
        let entry = Entry {
            origin,
            ..entry(hash(1))
        };
        let wanted = || water_keystore::Contents {
            entries: vec![entry.clone()],
            plans: Vec::new(),
        };
        let rebuilt = writer.rebuild(wanted).await.unwrap();
        assert_eq!(rebuilt.left_out.is_empty(), !is_barred, "{entry:?}");
        assert_eq!(
            rebuilt.meta.counts,
            site.directory().counts().await.unwrap()
        );
    }
}

#[tokio::test]
async fn a_reinstatement_lifts_the_tombstone_of_its_time_and_no_other() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let key = holding(hash(1));
    site.revoke(&writer, hash(1)).await;
    let at = time_of(&site.declare(&writer, key.clone()).await.unwrap(), hash(1));
    let with = |millis: i64| Declaration {
        reinstated: [(hash(1), Timestamp::from_millis(millis).unwrap())].into(),
        ..key.clone()
    };
    let other = site
        .declare(&writer, with(at.as_millis() + 1))
        .await
        .unwrap();
    assert_eq!(time_of(&other, hash(1)), at);
    let reinstated = with(at.as_millis());
    site.write(&writer, reinstated.clone()).await;
    let meta = site.directory().observe().await.unwrap().meta.unwrap();
    assert_eq!((meta.counts.records, meta.counts.revoked), (1, 0));

    // Left in the manifest it is not news, and lifts no later one.
    let again = site.declare(&writer, reinstated.clone()).await.unwrap();
    assert!(again.refused.is_empty() && again.applied.seq == meta.seq);
    let now = async || site.owner_snapshot(&owner_of(hash(1)), &[]).await.now;
    while now().await == at {}
    site.revoke(&writer, hash(1)).await;
    let later = site.declare(&writer, reinstated).await.unwrap();
    assert!(time_of(&later, hash(1)) > at);
}

#[tokio::test]
async fn a_revocation_that_is_repeated_keeps_its_time() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.revoke(&writer, hash(1)).await;
    let key = holding(hash(1));
    let first = time_of(&site.declare(&writer, key.clone()).await.unwrap(), hash(1));
    let now = async || site.owner_snapshot(&owner_of(hash(1)), &[]).await.now;
    while now().await == first {}
    site.revoke(&writer, hash(1)).await;
    let again = time_of(&site.declare(&writer, key).await.unwrap(), hash(1));
    assert_eq!(again, first);
}

#[tokio::test]
async fn a_tombstone_of_the_version_before_bars_everybody_and_can_be_lifted() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let at = site.owner_snapshot(&owner_of(hash(1)), &[]).await.now;
    engrave(&site, hash(1).as_bytes(), at.as_millis().to_string()).await;
    let key = anew("brought", brought("acme"), hash(1));
    let refused = site.declare(&writer, key.clone()).await.unwrap();
    assert_eq!(time_of(&refused, hash(1)), at);
    let reinstated = Declaration {
        reinstated: [(hash(1), at)].into(),
        ..key
    };
    site.write(&writer, reinstated).await;
    assert_eq!(site.directory().counts().await.unwrap().revoked, 0);
}

#[tokio::test]
async fn of_two_tombstones_that_bar_a_key_each_is_lifted_by_its_own_time() {
    let site = Site::new().await;
    let writer = site.ready().await;
    engrave(
        &site,
        hash(1).as_bytes(),
        "acme=1000 *=2000 other=3000".into(),
    )
    .await;
    let with = |millis: i64| Declaration {
        reinstated: [(hash(1), Timestamp::from_millis(millis).unwrap())].into(),
        ..anew("brought", brought("acme"), hash(1))
    };
    let barred = async |millis| {
        let declared = site.declare(&writer, with(millis)).await.unwrap();
        time_of(&declared, hash(1)).as_millis()
    };
    assert_eq!(barred(3000).await, 2000, "not the one of another account");
    assert_eq!(barred(2000).await, 1000);
    site.write(&writer, with(1000)).await;
    let others = brought("other");
    let snapshot = site
        .directory()
        .owner_snapshot("uid", &others, &[hash(1)])
        .await;
    assert_eq!(snapshot.unwrap().barred[&hash(1)].as_millis(), 3000);
}

#[tokio::test]
async fn a_tombstone_that_cannot_be_read_bars_everybody_and_is_not_forgotten() {
    let site = Site::new().await;
    let writer = site.ready().await;
    engrave(&site, hash(1).as_bytes(), "of a later version".into()).await;
    assert_eq!(writer.forget_old().await.unwrap(), 0);
    for origin in [Origin::Generated, brought("acme")] {
        let refused = site
            .declare(&writer, anew("any", origin, hash(1)))
            .await
            .unwrap();
        time_of(&refused, hash(1));
    }
}

#[tokio::test]
async fn tombstones_and_last_uses_are_forgotten_after_ninety_days_and_not_before() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let now = site
        .owner_snapshot(&owner_of(hash(1)), &[])
        .await
        .now
        .as_millis();
    let (old, young) = (now - 90 * DAY, now - 90 * DAY + 60_000);
    let old_and_young = format!("acme={old} other={young}");
    engrave(&site, hash(1).as_bytes(), old.to_string()).await;
    engrave(&site, hash(2).as_bytes(), format!("*={old}")).await;
    engrave(&site, hash(3).as_bytes(), old_and_young).await;
    engrave(&site, hash(4).as_bytes(), format!("*={young}")).await;
    engrave(&site, b"uid-of-old", old.to_string()).await;
    engrave(&site, b"uid-of-young", young.to_string()).await;
    let mut used = cmd("ZADD");
    used.arg(site.instance.used());
    used.arg(old)
        .arg("0000000000ld")
        .arg(young)
        .arg("00000000y0ng");
    site.vandalise(&mut used).await;

    // Four whole tombstones and a part of one, and one last use.
    assert_eq!(writer.forget_old().await.unwrap(), 5);
    assert_eq!(writer.forget_old().await.unwrap(), 0);
    let meta = site.directory().observe().await.unwrap().meta.unwrap();
    let counts = site.directory().counts().await.unwrap();
    assert_eq!((counts.revoked, counts), (3, meta.counts));
    for (number, account, is_barred) in [
        (1, "acme", false),
        (2, "acme", false),
        (3, "acme", false),
        (3, "other", true),
        (4, "acme", true),
    ] {
        let hash = hash(number);
        let snapshot = site
            .directory()
            .owner_snapshot("uid", &brought(account), &[hash])
            .await;
        assert_eq!(
            snapshot.unwrap().barred.contains_key(&hash),
            is_barred,
            "{number} {account}"
        );
    }
    for (name, is_gone) in [("old", false), ("young", true)] {
        assert_eq!(
            site.owner_snapshot(&owner_named(name), &[]).await.is_gone,
            is_gone
        );
    }
    let keys = ["0000000000ld", "00000000y0ng"].map(|id| id.parse().unwrap());
    let used = site.directory().last_used(&keys).await.unwrap();
    assert!(used[0].is_none() && used[1].is_some());
}

#[tokio::test]
async fn more_is_forgotten_than_one_script_looks_through() {
    const MANY: u32 = 2_345;
    let site = Site::new().await;
    let writer = site.ready().await;
    let fill = "local meta = cjson.decode(redis.call('GET', KEYS[1])) \
        for i = 1, ARGV[1] do \
          redis.call('HSET', KEYS[2], string.format('%032d', i), '*=1') \
          redis.call('ZADD', KEYS[3], 1, string.format('%012d', i)) \
        end \
        meta.revoked = meta.revoked + ARGV[1] \
        redis.call('SET', KEYS[1], cjson.encode(meta))";
    let mut call = cmd("EVAL");
    call.arg(fill)
        .arg(3)
        .arg(site.instance.meta())
        .arg(site.instance.revoked())
        .arg(site.instance.used())
        .arg(MANY);
    site.vandalise(&mut call).await;
    site.revoke(&writer, hash(1)).await;
    assert_eq!(writer.forget_old().await.unwrap(), 2 * u64::from(MANY));
    assert_eq!(site.directory().counts().await.unwrap().revoked, 1);
}
