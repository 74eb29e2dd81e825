//! Directory and limiter on a Redis Cluster of three masters, to which a fourth may be added.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::join_all;
use sha2::{Digest, Sha256};
use water_domain::key::Shard;
use water_domain::{AccountId, KeyHash, KeyId};
use water_harness::RedisCluster;
use water_keystore::connection::Purpose;
use water_keystore::usage::Use;
use water_keystore::{
    Allowance, Allowances, Contents, Declaration, Entry, Owner, Quotas, Reason, Reply, Usage,
    UtcDay, WriteError, Writer, redis_acl,
};
use water_kit::{equal, exactly};

use crate::site::*;

async fn cluster() -> (RedisCluster, Site, Site) {
    with_users(RedisCluster::start().await.unwrap()).await
}

/// The cluster with exactly the users that `redis_acl` prints, seen by the operator and by the gate.
async fn with_users(cluster: RedisCluster) -> (RedisCluster, Site, Site) {
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
async fn a_portal_reads_and_counts_accounts_all_over_a_cluster() {
    let (cluster, _operator, gate) = cluster().await;
    let portal = gate.seen_at(cluster.url_as("water-portal", "two"));
    let told = Usage::new(gate.connection().await, gate.instance.clone());
    let (connection, instance) = (portal.connection().await, portal.instance.clone());
    let usage = Usage::new(connection.clone(), instance.clone());
    let quotas = Quotas::new(connection.clone(), instance.clone());
    let allowances = Allowances::new(connection, instance);
    let limiter = gate.limiter(Purpose::Directory);
    limiter.prepared().await;
    let (today, at) = (UtcDay::from(now()), now());
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
        let quota = quotas.read(&account, limits(5, 9)).await.unwrap();
        assert_eq!(quota.minute.remaining, decision.unwrap().minute.remaining);
        let days = usage.days(&account, today, 2).await.unwrap();
        assert_eq!((days[1].accepted, days[1].limited), (2, 1));
        let last = usage.last_uses(&account, &[key], today).await.unwrap();
        assert_eq!(last, [Some(at)]);
        let taken = allowances.take(&account, Allowance::Renames).await;
        let Reply::Reserved(reservation) = taken.unwrap() else {
            panic!("one is left");
        };
        allowances.give_back(reservation).await.unwrap();
    }
}

/// Longer than the five seconds of a silent feed after which a gate stops renewing its lease.
const SILENCE: Duration = Duration::from_secs(6);

/// Whether the cluster refused the declaration for its moving slot.
async fn is_refused(writer: &Writer, declaration: Declaration) -> bool {
    match writer.declare(&declaration).await {
        Err(WriteError::Store(error)) => error.reason() == Reason::ClusterDown,
        _ => false,
    }
}

#[tokio::test]
async fn a_directory_is_used_before_while_and_after_its_slot_moves() {
    let (cluster, operator, gate) = cluster().await;
    let (directory, instance) = (operator.directory(), &operator.instance);
    let writer = operator.ready().await;
    let keys = || contents((0..500).map(hash));
    writer.rebuild(keys).await.unwrap();
    let running = gate.complete_gate("gate-1").await;
    assert_eq!(running.status().keys, 500);
    operator.revoke(&writer, hash(499)).await;
    running.knows(hash(499), false).await;

    // Before any key has moved, writes that need no new key of Redis are accepted.
    let moving = cluster.open_move(&instance.meta()).await.unwrap();
    running.renews_for(Duration::from_secs(1)).await;
    operator
        .write(&writer, holding_as(hash(1), suspended()))
        .await;
    operator.revoke(&writer, hash(2)).await;
    running.knows(hash(2), false).await;
    assert_eq!(running.record(hash(1)), Some(suspended()));
    let shares =
        |one: KeyHash, number: u32| hash(number) != one && hash(number).shard() == one.shard();
    let is_alone = |one: &KeyHash| !(0..500).any(|number| shares(*one, number));
    let alone = (4..499).map(hash).find(is_alone).unwrap();
    let mut successor = *alone.as_bytes();
    successor[31] ^= 1;
    let successor = KeyHash::from_bytes(successor);
    let replacement = declaration(owner_of(alone), [(successor, record())]);
    let change = operator.write(&writer, replacement).await;
    running.knows(successor, true).await;
    let elsewhere = (500..).map(hash).find(is_alone).unwrap();
    let owner = owner_of(hash(3));
    let replacement = Declaration {
        number: operator.owner_snapshot(&owner, &[]).await.number,
        ..declaration(owner.clone(), [(elsewhere, record())])
    };
    assert!(is_refused(&writer, replacement).await);
    let seen = directory.observe().await.unwrap();
    assert_eq!(seen.verified().map(|meta| meta.seq), Some(change.seq));
    let seen = operator.owner_snapshot(&owner, &[]).await;
    assert!(seen.records.contains_key(&hash(3)) && seen.barred.is_empty());

    // Some keys have moved: the slot's data is on two masters.
    let records = (0..250).map(|number| instance.records(hash(number).shard()));
    let moved: Vec<_> = records.chain([instance.feed(), instance.gates()]).collect();
    let moved: Vec<&str> = moved.iter().map(String::as_str).collect();
    moving.carry(&moved).await.unwrap();
    running.renews_for(SILENCE).await;
    running
        .comes_to("a current copy", |status| status.current)
        .await;
    assert_eq!(running.status().setbacks, 0);
    let other = gate.complete_gate("gate-2").await;
    assert_eq!(other.status().keys, 498);
    assert_eq!(directory.counts().await.unwrap().records, 498);
    assert!(is_refused(&writer, revoking(hash(1))).await);

    // All keys have moved, and clients are still sent to the old master.
    moving.carry_all().await.unwrap();
    cluster.command(&["SCRIPT", "FLUSH"]).await.unwrap();
    running.renews_for(SILENCE).await;
    running
        .comes_to("an answer", |status| status.failure.is_none())
        .await;
    assert_eq!(directory.leases().await.unwrap().gates.len(), 2);

    moving.finish().await.unwrap();
    let writer = operator.claim().await;
    let keys = || contents((1..500).map(hash));
    writer.rebuild(keys).await.unwrap();
    running.knows(hash(0), false).await;
    operator.publish(&writer, hash(500)).await;
    running.knows(hash(500), true).await;
}

/// A key in every shard of the records, whose owners are in all shards of the index.
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
async fn accounts_all_over_the_cluster_get_exactly_their_limits_though_a_slot_moves() {
    exactly(async || -> Result<()> {
        let (cluster, _, gate) = cluster().await;
        let gates = [0; 2].map(|_| gate.limiter(Purpose::Directory));
        for gate in &gates {
            gate.prepared().await;
        }
        let admitted = async |account: &str, requests: usize| {
            let requests = (0..requests).map(async |request| {
                let gate = &gates[request % 2];
                usize::from(gate.admits_under(account, limits(40, 1_000)).await)
            });
            join_all(requests).await.into_iter().sum::<usize>()
        };
        let accounts: Vec<_> = (0..12).map(|number| format!("account-{number}")).collect();
        let floods = accounts.iter().map(|account| admitted(account, 60));
        equal(join_all(floods).await, vec![40; 12])?;

        let account = gate.instance.minute(&"acme".parse().unwrap());
        equal(one_by_one(&gates, 10).await, 10)?;
        let moving = cluster.begin_move(&account).await.unwrap();
        equal(one_by_one(&gates, 10).await, 10)?;
        moving.finish().await.unwrap();
        equal(one_by_one(&gates, 30).await, 20)?;
        never_failed(&gates)
    })
    .await;
}

/// Number of requests of one account that gates admit in turn, 40 a minute.
async fn one_by_one(gates: &[RunningLimiter], requests: usize) -> usize {
    let mut admitted = 0;
    for gate in gates.iter().cycle().take(requests) {
        admitted += usize::from(gate.admits_under("acme", limits(40, 1_000)).await);
    }
    admitted
}

fn never_failed(gates: &[RunningLimiter]) -> Result<()> {
    for gate in gates {
        let failures = gate.standby.status().failures;
        let total: u64 = failures.iter().map(|(_, count)| count).sum();
        equal(total, 0).with_context(|| format!("{failures:?}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn an_account_gets_exactly_its_limit_though_its_slot_moves_to_an_added_master() {
    exactly(async || -> Result<()> {
        let (mut cluster, _, gate) = cluster().await;
        let gates = [0; 2].map(|_| gate.limiter(Purpose::Directory));
        for gate in &gates {
            gate.prepared().await;
        }
        // The gates connected before, and learn of no master without slots.
        cluster.grow().await.unwrap();
        let account = gate.instance.minute(&"acme".parse().unwrap());
        equal(one_by_one(&gates, 10).await, 10)?;
        let moving = cluster.begin_move_to_newest(&account).await.unwrap();
        // The other gate is not sent there before the slot has moved.
        equal(one_by_one(&gates[..1], 10).await, 10)?;
        moving.finish().await.unwrap();
        equal(one_by_one(&gates, 30).await, 20)?;
        never_failed(&gates)
    })
    .await;
}

#[tokio::test]
async fn a_lost_master_takes_the_cluster_down_and_is_found_again() {
    let cluster = RedisCluster::start_noticing_losses().await.unwrap();
    let (cluster, _, gate) = with_users(cluster).await;
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
