//! Directory and limiter on a Redis Cluster of three masters.

use futures::future::join_all;
use sha2::{Digest, Sha256};
use water_harness::RedisCluster;
use water_keystore::connection::Purpose;
use water_keystore::{Reason, redis_acl};

use crate::site::*;

/// A cluster with exactly the users that `redis_acl` prints, seen by the operator and by the gate.
async fn cluster() -> (RedisCluster, Site, Site) {
    let cluster = RedisCluster::start().await.unwrap();
    let operator = Site::at(cluster.url_as("water-operator", "one"));
    let gate = operator.seen_at(cluster.url_as("water-gate", "two"));
    let hash = |password: &str| hex::encode(Sha256::digest(password)).parse().unwrap();
    let (one, two) = (hash("one"), hash("two"));
    let users = [("water-operator", &one), ("water-gate", &two)];
    for line in redis_acl(&operator.instance, users[0], users[1]) {
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
    let revoked = writer.apply(&[revoke(hash(1))]).await.unwrap();
    running.knows(hash(1), false).await;
    let acknowledged = |status: &water_keystore::ReplicaStatus| status.seq == revoked.seq;
    running.comes_to("the change", acknowledged).await;
    let directory = operator.directory();
    assert!(!directory.observe().await.unwrap().needs_rebuild());
    assert_eq!(directory.leases().await.unwrap().gates.len(), 1);
    assert_eq!(directory.stored().await.unwrap().len(), 499);
    assert_eq!(directory.count().await.unwrap(), 499);
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
