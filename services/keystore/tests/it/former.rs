//! This operator and one of the version before, by turns, over one directory. The scripts of that
//! version are kept beside this file as they were.

use redis::{Script, cmd};
use water_domain::KeyHash;
use water_keystore::WriteError;

use crate::site::*;

macro_rules! former {
    ($file:literal) => {
        Script::new(concat!(
            include_str!("former/fence.lua"),
            include_str!(concat!("former/", $file))
        ))
    };
}

/// A leader of the version before.
struct Former<'a> {
    site: &'a Site,
    term: String,
}

impl<'a> Former<'a> {
    async fn claim(site: &'a Site) -> Self {
        let script = former!("claim.lua");
        let mut call = script.key(site.instance.meta());
        call.arg(UID).arg("");
        let reply: Vec<String> = call.invoke_async(&mut site.vandal().await).await.unwrap();
        let term = reply[1].split("\"term\":").nth(1).unwrap();
        let term = term.chars().take_while(char::is_ascii_digit).collect();
        Self { site, term }
    }

    /// Carries out one change: `put`, `reinstate`, `revoke` or `withdraw`. Returns the reply's word.
    async fn change(&self, op: &str, hash: KeyHash) -> String {
        let (script, instance) = (former!("change.lua"), &self.site.instance);
        let mut call = script.key(instance.meta());
        call.key(instance.feed())
            .key(instance.revoked())
            .key(instance.records(hash.shard()))
            .key(instance.owners(hash.shard()));
        let owner = owner_of(hash);
        call.arg(UID).arg(&self.term).arg(op).arg(hash.as_bytes());
        call.arg(&*owner.uid)
            .arg(owner.to_string())
            .arg(record().encode());
        let reply: Vec<Vec<u8>> = call
            .invoke_async(&mut self.site.vandal().await)
            .await
            .unwrap();
        String::from_utf8(reply[0].clone()).unwrap()
    }

    /// Rebuilds the directory with these keys.
    async fn rebuild(&self, hashes: &[KeyHash]) {
        let (instance, redis) = (&self.site.instance, &mut self.site.vandal().await);
        let begin = former!("rebuild_begin.lua");
        let mut call = begin.key(instance.meta());
        call.key(instance.plans()).arg(UID).arg(&self.term);
        let begun: Vec<String> = call.invoke_async(redis).await.unwrap();
        let script = former!("rebuild_shards.lua");
        let mut left_out = 0;
        for shard in water_domain::key::Shard::all() {
            let mut call = script.key(instance.meta());
            call.key(instance.revoked())
                .key(instance.records(shard))
                .key(instance.owners(shard));
            let here = hashes.iter().filter(|hash| hash.shard() == shard);
            call.arg(UID).arg(&self.term).arg(&begun[2]);
            call.arg(here.clone().count());
            for hash in here {
                let owner = owner_of(*hash).to_string();
                call.arg(hash.as_bytes()).arg(record().encode()).arg(owner);
            }
            let reply: Vec<Vec<u8>> = call.invoke_async(redis).await.unwrap();
            left_out += reply.len() - 1;
        }
        let end = former!("rebuild_end.lua");
        let mut call = end.key(instance.meta());
        call.arg(UID).arg(&self.term).arg(&begun[2]);
        call.arg(hashes.len() - left_out);
        let reply: Vec<String> = call.invoke_async(redis).await.unwrap();
        assert_eq!(reply[0], "done");
    }
}

#[tokio::test]
async fn an_operator_of_the_version_before_goes_on_with_the_directory_and_its_gates() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    for number in [1, 2, 3] {
        site.publish(&writer, hash(number)).await;
    }
    site.revoke(&writer, hash(1)).await;

    let former = Former::claim(&site).await;
    let refused = site.declare(&writer, holding(hash(9))).await;
    assert!(matches!(refused, Err(WriteError::Fenced { .. })));
    assert_eq!(former.change("put", hash(1)).await, "revoked");
    assert_eq!(former.change("revoke", hash(2)).await, "done");
    assert_eq!(former.change("put", hash(4)).await, "done");
    gate.knows(hash(4), true).await;
    gate.knows(hash(2), false).await;
    assert_eq!(gate.status().loads, 1, "the feed was enough");
    former.rebuild(&[hash(1), hash(3)]).await;
    gate.knows(hash(4), false).await;
    let other = site.complete_gate("gate-2").await;
    assert!(other.record(hash(1)).is_none() && other.record(hash(3)).is_some());
}

#[tokio::test]
async fn what_an_operator_of_the_version_before_wrote_is_rebuilt_before_it_is_believed() {
    let site = Site::new().await;
    site.ready().await;
    let gate = site.complete_gate("gate-1").await;
    for is_rebuilt in [false, true] {
        let writer = site.ready().await;
        site.publish(&writer, hash(1)).await;
        let former = Former::claim(&site).await;
        if is_rebuilt {
            former.rebuild(&[hash(1)]).await;
        }
        assert_eq!(former.change("put", hash(2)).await, "done");
        gate.knows(hash(2), true).await;

        let (writer, meta) = site.directory().claim(UID, API, None).await.unwrap();
        assert!(!meta.complete);
        let refused = site.declare(&writer, revoking(hash(2))).await;
        assert!(
            matches!(refused, Err(WriteError::Interrupted)),
            "{refused:?}"
        );
        let wanted = || contents([hash(1), hash(2)]);
        let rebuilt = writer.rebuild(wanted).await.unwrap();
        assert_eq!(
            rebuilt.meta.counts,
            site.directory().counts().await.unwrap()
        );
        site.revoke(&writer, hash(2)).await;
        gate.knows(hash(2), false).await;
        // For the next turn.
        site.vandalise(cmd("DEL").arg(site.instance.revoked()))
            .await;
    }
}

#[tokio::test]
async fn a_rebuild_that_one_version_leaves_unfinished_the_other_begins_anew() {
    let site = Site::new().await;
    site.ready().await;
    let (writer, _) = site
        .directory()
        .claim(UID, "made anew", None)
        .await
        .unwrap();
    let former = Former::claim(&site).await;
    assert_eq!(former.change("put", hash(1)).await, "interrupted");
    former.rebuild(&[hash(1)]).await;
    assert!(!site.directory().observe().await.unwrap().needs_rebuild());
    let refused = writer.rebuild(|| contents([])).await.unwrap_err();
    assert!(matches!(refused, WriteError::Fenced { .. }));
    let (_, meta) = site
        .directory()
        .claim(UID, "made anew", None)
        .await
        .unwrap();
    assert!(!meta.complete, "the index does not know what was written");
}

#[tokio::test]
async fn what_either_version_revoked_the_other_does_not_bring_back() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.revoke(&writer, hash(1)).await;
    let former = Former::claim(&site).await;
    assert_eq!(former.change("put", hash(1)).await, "revoked");
    assert_eq!(former.change("revoke", hash(2)).await, "done");
    assert_eq!(former.change("reinstate", hash(1)).await, "done");

    let writer = site.claim().await;
    let wanted = || contents([hash(1), hash(2)]);
    let rebuilt = writer.rebuild(wanted).await.unwrap();
    assert_eq!(rebuilt.left_out, [hash(2)]);
    let refused = site
        .declare(&writer, holding(hash(2)))
        .await
        .unwrap()
        .refused;
    assert_eq!(refused.len(), 1);
}

/// `meta` as a gate of the version before reads it.
#[derive(serde::Deserialize)]
struct FormerMeta {
    schema: u64,
    owner: String,
    term: u64,
    generation: u64,
    complete: bool,
    count: u64,
    seq: u64,
    replid: String,
}

#[tokio::test]
async fn a_gate_of_the_version_before_reads_what_this_one_says_of_the_directory() {
    let site = Site::new().await;
    let writer = site.ready().await;
    let published = site.publish(&writer, hash(1)).await;
    let read = cmd("GET").arg(site.instance.meta()).to_owned();
    let vandal = &mut site.vandal().await;
    let stored: String = read.query_async(vandal).await.unwrap();
    let meta: FormerMeta = serde_json::from_str(&stored).unwrap();
    let seen = site.directory().observe().await.unwrap();
    assert_eq!((meta.schema, meta.term, meta.count), (1, writer.term(), 1));
    assert_eq!(
        (meta.generation, meta.seq),
        (published.generation, published.seq)
    );
    assert_eq!((meta.owner.as_str(), meta.replid), (UID, seen.replid));
    assert!(meta.complete);
}

#[tokio::test]
async fn a_claim_by_the_same_version_keeps_the_directory() {
    let site = Site::new().await;
    let writer = site.ready().await;
    site.publish(&writer, hash(1)).await;
    let (writer, meta) = site.directory().claim(UID, API, None).await.unwrap();
    assert!(meta.complete && meta.held_term == writer.term());
    site.revoke(&writer, hash(1)).await;
}
