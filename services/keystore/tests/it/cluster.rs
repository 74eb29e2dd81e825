//! Directory and limiter on a Redis Cluster of three masters.

use std::time::Duration;

use futures::future::join_all;
use sha2::{Digest, Sha256};
use water_domain::key::Shard;
use water_domain::{AccountId, KeyHash, KeyId};
use water_harness::RedisCluster;
use water_keystore::connection::Purpose;
use water_keystore::usage::Use;
use water_keystore::{
    Allowance, Allowances, Contents, Declaration, Entry, Owner, Quotas, Reason, Usage, UtcDay,
    WriteError, Writer, redis_acl,
};

use crate::site::*;

/// A cluster with exactly the users that `redis_acl` prints, seen by the operator and by the gate.
async fn cluster() -> (RedisCluster, Site, Site) {
    let cluster = RedisCluster::start().await.unwrap();
    let operator = Site::at(cluster.url_as("water-operator", "one"));
    let gate = operator.seen_at(cluster.url_as("water-gate", "two"));
    let hash = |password: &str| hex::encode(Sha256::digest(password)).parse().unwrap();
    let (one, two) = (hash("one"), hash("two"));
    let users = [
        ("water-operator", &one),
        ("water-gate", &two),
        ("water-portal", &two),
    ];
    for line in redis_acl(&operator.instance, users[0], users[1], Some(users[2])) {
        let mut words = vec!["ACL", "SETUSER"];
        words.extend(line.split(' ').skip(1));
        cluster.command(&words).await.unwrap();
    }
    (cluster, operator, gate)
}

#[tokio::test]
async fn a_gate_follows_the_operator_on_a_cluster() {
    let (_cluster, operator, gate) = cluster().await;
    let writer = operator.ready().await;
    writer
        .rebuild(|| contents((0..500).map(hash)))
        .await
        .unwrap();
    let running = gate.complete_gate("gate-1").await;
    assert_eq!(running.status().keys, 500);
    let revoked = operator.revoke(&writer, hash(1)).await;
    running.knows(hash(1), false).await;
    let acknowledged = |status: &water_keystore::ReplicaStatus| status.seq == revoked.seq;
    running.comes_to("the change", acknowledged).await;
    let directory = operator.directory();
    assert!(!directory.observe().await.unwrap().needs_rebuild());
    assert_eq!(directory.leases().await.unwrap().gates.len(), 1);
    assert_eq!(directory.stored().await.unwrap().len(), 499);
    assert_eq!(directory.counts().await.unwrap().records, 499);
}

#[tokio::test]
async fn a_portal_reads_and_counts_accounts_all_over_a_cluster() {
    let (cluster, _operator, gate) = cluster().await;
    let portal = gate.seen_at(cluster.url_as("water-portal", "two"));
    let connect = |site: &Site| (site.connect(Purpose::Directory), site.instance.clone());
    let (connection, instance) = connect(&gate);
    let told = Usage::new(connection, instance);
    let (connection, instance) = connect(&portal);
    let usage = Usage::new(connection.clone(), instance.clone());
    let quotas = Quotas::new(connection.clone(), instance.clone());
    let allowances = Allowances::new(connection, instance);
    let limiter = gate.limiter(Purpose::Directory);
    let (today, at) = (UtcDay::of(now()), now());
    for number in 0..12 {
        let account = format!("account-{number}").parse().unwrap();
        let key = format!("{number:012}").parse().unwrap();
        let used = Use {
            account: AccountId::clone(&account),
            day: today,
            accepted: 2,
            limited: 1,
            keys: vec![(KeyId::clone(&key), at)],
        };
        told.add(vec![used]).await.unwrap();
        let decision = limiter.limiter.charge(&account, limits(5, 9), now()).await;
        let quota = quotas.of(&account, limits(5, 9)).await.unwrap();
        assert_eq!(quota.minute.remaining, decision.unwrap().minute.remaining);
        let days = usage.days(&account, today, 2).await.unwrap();
        assert_eq!((days[1].accepted, days[1].limited), (2, 1));
        let last = usage.last_uses(&account, &[key], today).await.unwrap();
        assert_eq!(last, [Some(at)]);
        let taken = allowances.take(&account, Allowance::Changes).await;
        assert_eq!(taken.unwrap(), None);
    }
}

/// A gate that does not hear the feed stops renewing its lease after five seconds.
const SILENCE: Duration = Duration::from_secs(6);

/// The cluster with 500 keys, less one that was revoked, and one gate.
async fn followed() -> (RedisCluster, Site, Site, Writer, RunningGate) {
    let (cluster, operator, gate) = cluster().await;
    let writer = operator.ready().await;
    let keys = || contents((0..500).map(hash));
    writer.rebuild(keys).await.unwrap();
    operator.revoke(&writer, hash(499)).await;
    let running = gate.complete_gate("gate-1").await;
    (cluster, operator, gate, writer, running)
}

fn is_cluster_down(refused: &WriteError) -> bool {
    matches!(refused, WriteError::Store(error) if error.reason() == Reason::ClusterDown)
}

#[tokio::test]
async fn a_gate_renews_while_its_directory_is_on_its_way_and_follows_when_it_has_arrived() {
    let (cluster, operator, _gate, _, running) = followed().await;
    let moving = cluster.begin_move(&operator.instance.meta()).await.unwrap();
    cluster.command(&["SCRIPT", "FLUSH"]).await.unwrap();
    running.renews_for(SILENCE).await;
    assert_eq!(running.status().failure, None);

    moving.finish().await.unwrap();
    let writer = operator.claim().await;
    let keys = || contents((1..500).map(hash));
    writer.rebuild(keys).await.unwrap();
    running.knows(hash(0), false).await;
    operator.publish(&writer, hash(500)).await;
    running.knows(hash(500), true).await;
}

#[tokio::test]
async fn a_directory_on_two_masters_is_followed_and_loaded() {
    let (cluster, operator, gate, writer, running) = followed().await;
    let instance = &operator.instance;
    let moving = cluster.open_move(&instance.meta()).await.unwrap();
    let records = (0..250).map(|number| instance.records(hash(number).shard()));
    let moved: Vec<_> = records.chain([instance.feed(), instance.gates()]).collect();
    let moved: Vec<&str> = moved.iter().map(String::as_str).collect();
    moving.carry(&moved).await.unwrap();
    running.renews_for(SILENCE).await;
    let status = running.status();
    assert!(status.current && status.setbacks == 0, "{status:?}");
    let other = gate.complete_gate("gate-2").await;
    assert_eq!(other.status().keys, 499);
    let counts = operator.directory().counts().await.unwrap();
    assert_eq!(counts.records, 499);
    let refused = writer.declare(&revoking(hash(1))).await.unwrap_err();
    assert!(is_cluster_down(&refused), "{refused}");
}

#[tokio::test]
async fn a_directory_that_is_about_to_move_takes_what_needs_no_new_key_of_redis() {
    let (cluster, operator, _gate, writer, running) = followed().await;
    let _moving = cluster.open_move(&operator.instance.meta()).await.unwrap();
    let directory = operator.directory();
    running.renews_for(Duration::from_secs(1)).await;
    assert_eq!(directory.leases().await.unwrap().gates.len(), 1);
    let suspension = holding_as(hash(1), suspended());
    operator.write(&writer, suspension).await;
    let change = operator.revoke(&writer, hash(2)).await;
    running.knows(hash(2), false).await;
    assert_eq!(running.record(hash(1)), Some(suspended()));

    let mut unpublished = (500..).map(hash);
    let is_alone = |new: &KeyHash| (0..500).all(|old| hash(old).shard() != new.shard());
    let alone = unpublished.find(is_alone).unwrap();
    let owner = owner_of(hash(3));
    let replacement = Declaration {
        number: operator.owner_snapshot(&owner, &[]).await.number,
        ..declaration(owner.clone(), [(alone, record())])
    };
    let refused = writer.declare(&replacement).await.unwrap_err();
    assert!(is_cluster_down(&refused), "{refused}");
    let seen = directory.observe().await.unwrap();
    assert_eq!(seen.verified().map(|meta| meta.seq), Some(change.seq));
    let snapshot = operator.owner_snapshot(&owner, &[]).await;
    assert!(snapshot.records.contains_key(&hash(3)) && snapshot.barred.is_empty());
    assert_eq!(snapshot.number, replacement.number);
}

#[tokio::test]
async fn a_key_that_is_alone_in_its_shard_is_replaced_while_the_directory_is_about_to_move() {
    let (cluster, operator, _gate) = cluster().await;
    let writer = operator.ready().await;
    operator.revoke(&writer, hash(2)).await;
    let before = hash(1);
    operator.publish(&writer, before).await;
    let mut successor = *before.as_bytes();
    successor[31] ^= 1;
    let successor = KeyHash::from_bytes(successor);
    let _moving = cluster.open_move(&operator.instance.meta()).await.unwrap();
    let replacement = declaration(owner_of(before), [(successor, record())]);
    operator.write(&writer, replacement).await;
    let stored = operator.directory().stored().await.unwrap();
    assert_eq!(stored.keys().collect::<Vec<_>>(), [&successor]);
    let meta = operator.directory().observe().await.unwrap().meta.unwrap();
    assert_eq!(operator.directory().counts().await.unwrap(), meta.counts);
}

/// One key in every shard of the records, whose owners are in all shards of the index.
fn everywhere(last: u8) -> Contents {
    let mut owners: Vec<Option<Owner>> = Shard::all().map(|_| None).collect();
    let mut uids = (0..).map(|number| owner_named(&number.to_string()));
    while owners.iter().any(Option::is_none) {
        let owner = uids.next().unwrap();
        let shard = held_shard(&owner.uid).index();
        owners[shard] = Some(owner);
    }
    let entries = owners.into_iter().flatten().zip(0_u16..);
    let entries = entries.map(|(owner, shard)| {
        let mut hash = [last; 32];
        hash[..2].copy_from_slice(&(shard << 4).to_be_bytes());
        Entry {
            owner,
            ..entry(KeyHash::from_bytes(hash))
        }
    });
    Contents {
        entries: entries.collect(),
        plans: vec![plan(&format!("Plan{last}"), None)],
    }
}

#[tokio::test]
async fn a_rebuild_loses_nothing_while_the_directory_is_about_to_move() {
    let (cluster, operator, _gate) = cluster().await;
    let writer = operator.ready().await;
    writer.rebuild(|| everywhere(1)).await.unwrap();
    operator.revoke(&writer, hash(1)).await;
    let _moving = cluster.open_move(&operator.instance.meta()).await.unwrap();
    let wanted = everywhere(2);
    let meta = writer.rebuild(|| wanted.clone()).await.unwrap().meta;
    assert!(meta.complete);
    let directory = operator.directory();
    assert_eq!(directory.counts().await.unwrap(), meta.counts);
    assert_eq!(meta.counts.records, u64::from(Shard::COUNT));
    let stored = directory.stored().await.unwrap();
    assert!(
        wanted
            .entries
            .iter()
            .all(|entry| stored.contains_key(&entry.hash))
    );
    assert_eq!(directory.plans().await.unwrap(), wanted.plans);
}

#[tokio::test]
async fn accounts_all_over_the_cluster_get_exactly_their_limits() {
    let (_cluster, _, gate) = cluster().await;
    let gates = [0; 2].map(|_| gate.limiter(Purpose::Directory));
    let accounts: Vec<_> = (0..12).map(|number| format!("account-{number}")).collect();
    let floods = accounts.iter().map(async |account| {
        let requests = (0..60).map(async |request| {
            let gate = &gates[request % 2];
            usize::from(gate.admits_under(account, limits(40, 1_000)).await)
        });
        join_all(requests).await.into_iter().sum::<usize>()
    });
    assert_eq!(
        join_all(floods).await,
        [40; 12],
        "{:?}",
        gates[0].standby.status()
    );
}

#[tokio::test]
async fn an_account_whose_slot_moves_is_counted_all_the_while() {
    let (cluster, _, gate) = cluster().await;
    let limiter = gate.limiter(Purpose::Directory);
    let admitted = async |requests: u32| {
        let mut admitted = 0;
        for _ in 0..requests {
            admitted += u32::from(limiter.admits_under("acme", limits(40, 1_000)).await);
        }
        admitted
    };
    let account = gate.instance.minute(&"acme".parse().unwrap());
    assert_eq!(admitted(10).await, 10);
    let moving = cluster.begin_move(&account).await.unwrap();
    assert_eq!(admitted(10).await, 10);
    moving.finish().await.unwrap();
    assert_eq!(admitted(30).await, 20);
    let failures = limiter.standby.status().failures;
    assert!(
        failures.iter().all(|(_, count)| *count == 0),
        "{failures:?}"
    );
}

#[tokio::test]
async fn a_lost_master_takes_the_cluster_down_and_is_found_again() {
    let (cluster, _, gate) = cluster().await;
    let limiter = gate.limiter(Purpose::Limiter);
    limiter.decides_by_redis().await;
    for master in cluster.masters() {
        master.pause().unwrap();
    }
    limiter.fails_for(Reason::Slow).await;
    for master in cluster.masters() {
        master.resume().unwrap();
    }
    cluster.ready().await.unwrap();
    limiter.decides_by_redis().await;

    cluster.masters()[1].kill().unwrap();
    limiter.fails_for(Reason::ClusterDown).await;
    cluster.masters()[1].start_again().await.unwrap();
    cluster.ready().await.unwrap();
    limiter.decides_by_redis().await;
}
