//! Tombstones that cannot be read or have grown old. The other rules (which removals leave one, which accounts it bars,
//! how it is lifted) are tested against a plain model in `model.rs`.

use redis::cmd;
use water_keystore::{Declaration, HashRefusal, Origin};

use crate::site::*;

const DAY: i64 = 86_400_000;

fn brought(account: &str) -> Origin {
    Origin::Brought(account.parse().unwrap())
}

/// Writes a tombstone in its stored form, and counts it in `meta`.
async fn engrave(site: &Site, field: &[u8], text: &str) {
    let mut write = cmd("HSET");
    write.arg(site.instance.revoked()).arg(field).arg(text);
    site.vandalise(&mut write).await;
    site.change_meta("meta.revoked = meta.revoked + 1").await;
}

#[tokio::test]
async fn a_tombstone_that_cannot_be_read_bars_everybody_and_is_not_forgotten() {
    let site = Site::new().await;
    let writer = site.ready().await;
    engrave(&site, hash(1).as_bytes(), "of a later version").await;
    assert_eq!(writer.forget_old().await.unwrap(), 0);
    for origin in [Origin::Generated, brought("acme")] {
        let key = Declaration {
            origin,
            ..holding(hash(1))
        };
        let refused = site.declare(&writer, key).await.unwrap().refused;
        assert!(matches!(refused[&hash(1)], HashRefusal::Revoked { .. }));
    }
}

#[tokio::test]
async fn tombstones_and_last_uses_are_forgotten_after_ninety_days_and_not_before() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let now = now().as_millis();
    let (old, young) = (now - 90 * DAY, now - 90 * DAY + 60_000);
    for (number, tombstone) in [
        (1, format!("*={old}")),
        (2, format!("acme={old} other={young}")),
        (3, format!("*={young}")),
    ] {
        engrave(&site, hash(number).as_bytes(), &tombstone).await;
    }
    engrave(&site, b"uid-of-old", &old.to_string()).await;
    engrave(&site, b"uid-of-young", &young.to_string()).await;
    let mut used = cmd("ZADD");
    used.arg(site.instance.used());
    used.arg(old).arg("0000000000ld");
    used.arg(young).arg("00000000y0ng");
    site.vandalise(&mut used).await;

    // Two whole tombstones and a part of one, and one last use.
    assert_eq!(writer.forget_old().await.unwrap(), 4);
    assert_eq!(writer.forget_old().await.unwrap(), 0);
    let meta = site.observe().await.meta.unwrap();
    let counts = site.counts().await;
    assert_eq!((counts.revoked, counts), (3, meta.counts));
    for (account, barred) in [("acme", vec![3]), ("other", vec![2, 3])] {
        let (origin, hashes) = (brought(account), [1, 2, 3].map(hash));
        let read = site.read(async |directory| {
            let snapshot = directory.owner_snapshot("uid", &origin, &hashes);
            snapshot.await
        });
        let seen = read.await.barred;
        assert_eq!(seen.len(), barred.len(), "{account}");
        assert!(
            barred
                .iter()
                .all(|number| seen.contains_key(&hash(*number)))
        );
    }
    for (name, is_gone) in [("old", false), ("young", true)] {
        let seen = site.owner_snapshot(&owner_named(name), &[]).await;
        assert_eq!(seen.is_gone, is_gone, "{name}");
    }
    let keys = ["0000000000ld", "00000000y0ng"].map(|id| id.parse().unwrap());
    let used = site.read(async |directory| directory.last_used(&keys).await);
    let used = used.await;
    assert!(used[0].is_none() && used[1].is_some_and(|time| time.as_millis() == young));
}

#[tokio::test]
async fn more_is_forgotten_than_one_script_looks_through() {
    const MANY: u32 = 1_234;
    let site = Site::new().await;
    let writer = site.ready().await;
    let fill = "for i = 1, ARGV[1] do \
          redis.call('HSET', KEYS[1], string.format('%032d', i), '*=1') \
          redis.call('ZADD', KEYS[2], 1, string.format('%012d', i)) \
        end";
    let mut call = cmd("EVAL");
    call.arg(fill).arg(2);
    call.arg(site.instance.revoked()).arg(site.instance.used());
    site.vandalise(call.arg(MANY)).await;
    site.change_meta(&format!("meta.revoked = meta.revoked + {MANY}"))
        .await;
    site.revoke(&writer, hash(1)).await;
    assert_eq!(writer.forget_old().await.unwrap(), 2 * u64::from(MANY));
    assert_eq!(site.counts().await.revoked, 1);
}
