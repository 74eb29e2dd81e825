//! The three Redis users: each can do its work, a compromised gate cannot make a key, and a
//! compromised portal cannot see one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::cmd;
use sha2::{Digest, Sha256};
use water_domain::Timestamp;
use water_harness::Redis;
use water_keystore::usage::Use;
use water_keystore::{
    Allowance, Allowances, ConnectionSettings, GateRights, Limiter, Quotas, Reply, SessionKeys,
    SessionStart, Sessions, Standby, Usage, UtcDay, WebName, redis_acl,
};

use crate::site::*;

const OPERATOR: &str = "operator-password";
const GATE: &str = "gate-password";

fn password_hash(password: &str) -> water_keystore::PasswordHash {
    hex::encode(Sha256::digest(password)).parse().unwrap()
}

const PORTAL: &str = "portal-password";

/// A server with exactly the users that `redis_acl` prints, seen by the operator and by the gate.
async fn users() -> (Redis, Site, Site) {
    let redis = Redis::start().await.unwrap();
    let site = Site::at(redis.url_as("water-operator", OPERATOR));
    let [operator, gate, portal] = [OPERATOR, GATE, PORTAL].map(password_hash);
    for line in redis_acl(
        &site.instance,
        ("water-operator", &operator),
        ("water-gate", &gate),
        Some(("water-portal", &portal)),
    ) {
        let mut words = vec!["ACL", "SETUSER"];
        words.extend(line.split(' ').skip(1));
        redis.command(&words).await.unwrap();
    }
    let gate = site.seen_at(redis.url_as("water-gate", GATE));
    (redis, site, gate)
}

#[tokio::test]
async fn operator_and_gate_can_do_their_work() {
    let (_redis, operator, gate) = users().await;
    let writer = operator.ready().await;
    writer.set_plans(&[plan("Free", None)]).await.unwrap();
    operator.publish(&writer, hash(1)).await;
    let running = gate.complete_gate("gate-1").await;
    operator.publish(&writer, hash(2)).await;
    let revoked = operator.revoke(&writer, hash(1)).await;
    running
        .comes_to("the change", |status| status.seq == revoked.seq)
        .await;
    assert_eq!(operator.leases().await.gates.len(), 1);
    assert_eq!(operator.stored().await.len(), 1);
    let counts = operator.counts().await;
    assert_eq!((counts.records, counts.held, counts.revoked), (1, 2, 1));
    assert_eq!(writer.forget_old().await.unwrap(), 0);
    let used = [(record().key_id, Timestamp::from_millis(1_000).unwrap())];
    let told = Usage::new(gate.connection().await, gate.instance.clone());
    told.write_last_uses(&used).await.unwrap();
    let keys = [record().key_id];
    let shown = operator.read(async |directory| directory.last_used(&keys).await);
    assert_eq!(shown.await, [Some(used[0].1)]);
    let usage = Use {
        account: "acme".parse().unwrap(),
        day: UtcDay::from(used[0].1),
        accepted: 1,
        limited: 1,
        keys: used.to_vec(),
    };
    told.add(vec![usage]).await.unwrap();
    assert_eq!(running.live_gates().load(Ordering::Acquire), 1);
    running.leave().await.unwrap();

    let limiter = Limiter::new(
        gate.connection().await,
        gate.instance.clone(),
        Arc::new(Standby::new(running.changes(), running.live_gates())),
    );
    let account = "acme".parse().unwrap();
    for accepted in [true, false] {
        let decision = limiter.charge(&account, limits(1, 5), now()).await;
        assert_eq!(decision.unwrap().accepted, accepted);
    }
}

/// Fails unless Redis refuses each of these commands to the user of `site`.
async fn assert_denied(site: &Site, commands: &[&[&str]]) {
    let mut user = site.vandal().await;
    for command in commands {
        let call = cmd(command[0]).arg(&command[1..]).to_owned();
        let outcome: redis::RedisResult<redis::Value> = call.query_async(&mut user).await;
        let refusal = outcome.expect_err(&format!("{command:?} was allowed"));
        assert_eq!(refusal.code(), Some("NOPERM"), "{command:?}: {refusal}");
    }
}

#[tokio::test]
async fn a_compromised_gate_cannot_make_a_key_nor_bring_one_back() {
    let (_redis, operator, gate) = users().await;
    operator.ready().await;
    let instance = &gate.instance;
    let records = instance.records(hash(1).shard());
    let owners = instance.owners(hash(1).shard());
    let session = format!("wd:web:{{session}}:{instance}:s");
    let commands: &[&[&str]] = &[
        &["HSET", &records, "hash", "record"],
        &["SET", &instance.meta(), "{}"],
        &["HSET", &instance.plans(), "Free", "9 9"],
        &["XADD", &instance.feed(), "*", "op", "put"],
        &["HDEL", &instance.revoked(), "hash"],
        &["HGETALL", &owners],
        &["SET", "elsewhere", "1"],
        &["HSET", &session, "claims", "forged"],
        &["KEYS", "*"],
        &["FLUSHALL"],
        &["ACL", "SETUSER", "water-gate", "allkeys"],
        &["CONFIG", "GET", "*"],
    ];
    assert_denied(&gate, commands).await;
    let forge = format!("return redis.call('HSET', '{records}', 'hash', 'record')");
    let gate_user = &mut gate.vandal().await;
    let load = cmd("SCRIPT").arg("LOAD").arg(forge).to_owned();
    let script: String = load.query_async(gate_user).await.unwrap();
    let run = cmd("EVALSHA").arg(script).arg(0).to_owned();
    let outcome: redis::RedisResult<redis::Value> = run.query_async(gate_user).await;
    let denied = outcome.unwrap_err().to_string();
    assert!(
        denied.contains("can't access at least one of the keys"),
        "{denied}"
    );
    assert!(operator.stored().await.is_empty());
    assert!(gate.claim_as(UID, API, None).await.is_err());
}

#[tokio::test]
async fn the_portal_counts_what_it_is_asked_and_reads_quota_and_usage() {
    let (redis, operator, gate) = users().await;
    operator.ready().await;
    let portal = operator.seen_at(redis.url_as("water-portal", PORTAL));
    let instance = || portal.instance.clone();
    let account = "acme".parse().unwrap();
    let connection = portal.connection().await;
    let allowances = Allowances::new(connection.clone(), instance());
    let taken = allowances.take(&account, Allowance::Renames).await;
    let Reply::Reserved(reservation) = taken.unwrap() else {
        panic!("one is left");
    };
    allowances.give_back(reservation).await.unwrap();
    let quota = Quotas::new(connection.clone(), instance());
    let quota = quota.read(&account, limits(3, 5)).await.unwrap();
    assert_eq!(quota.minute.remaining, 3);
    let day = UtcDay::from(Timestamp::from_millis(0).unwrap());
    let counted = Use {
        account: account.clone(),
        day,
        accepted: 7,
        limited: 0,
        keys: Vec::new(),
    };
    Usage::new(gate.connection().await, instance())
        .add(vec![counted])
        .await
        .unwrap();
    let usage = Usage::new(connection, instance());
    let days = usage.days(&account, day, 1).await.unwrap();
    assert_eq!(days[0].accepted, 7);
}

#[tokio::test]
async fn the_portal_keeps_and_ends_its_sessions() {
    let (redis, operator, _gate) = users().await;
    let portal = operator.seen_at(redis.url_as("water-portal", PORTAL));
    let sessions = Sessions::new(portal.connection().await, portal.instance.clone());
    let keys = SessionKeys {
        session: WebName::digest(b"cookie"),
        subject: WebName::digest(b"subject"),
        provider: Some(WebName::digest(b"sid")),
    };
    let (now, hour) = (
        Timestamp::from_millis(1_000).unwrap(),
        Duration::from_hours(1),
    );
    sessions.check().await.unwrap();
    let began = SessionStart {
        asked: now,
        signed_in: now,
    };
    assert!(sessions.begin(&keys, b"sealed", began, hour).await.unwrap());
    let read = sessions.use_and_read(&keys.session).await.unwrap();
    assert_eq!(read.as_deref(), Some(&b"sealed"[..]));
    assert!(sessions.take(&WebName::digest(b"jti"), hour).await.unwrap());
    let provider = keys.provider.unwrap();
    let ended = sessions.end_of_provider(&provider, now, hour).await;
    assert_eq!(ended.unwrap(), 1);
    assert_eq!(sessions.read(&keys.session).await.unwrap(), None);
    sessions.end(&keys).await.unwrap();
}

#[tokio::test]
async fn a_compromised_portal_sees_no_key_and_changes_no_counter() {
    let (redis, operator, gate) = users().await;
    operator.ready().await;
    let portal = operator.seen_at(redis.url_as("water-portal", PORTAL));
    let instance = &gate.instance;
    let account = "acme".parse().unwrap();
    let records = instance.records(hash(1).shard());
    let usage = format!("wd:use:{{acme}}:{instance}:2026-01-01");
    let commands: &[&[&str]] = &[
        &["HGETALL", &records],
        &["HGETALL", &instance.plans()],
        &["GET", &instance.meta()],
        &["HGETALL", &instance.gates()],
        &["HGETALL", &instance.used()],
        &["SET", &instance.meta(), "{}"],
        &["DEL", &instance.minute(&account)],
        &["SET", &instance.day(&account), "1 0"],
        &["DEL", &usage],
        &["SET", "wd:web:{hash}:another.instance:s", "1"],
        &["KEYS", "*"],
        &["FLUSHALL"],
        &["CONFIG", "GET", "*"],
        &["ACL", "LIST"],
    ];
    assert_denied(&portal, commands).await;
    let own = format!("wd:web:{{hash}}:{instance}:s");
    portal.vandalise(cmd("SET").arg(own).arg(1)).await;
}

#[tokio::test]
async fn an_operator_cannot_touch_another_instance_nor_administer() {
    let (_redis, operator, _gate) = users().await;
    let elsewhere = Site::at(String::new()).instance;
    let commands: &[&[&str]] = &[
        &["SET", &elsewhere.meta(), "{}"],
        &["DEL", &operator.instance.meta()],
        &["ACL", "LIST"],
        &["FLUSHALL"],
    ];
    assert_denied(&operator, commands).await;
}

#[tokio::test]
async fn the_operator_sees_whether_the_gates_user_could_make_keys() {
    let (redis, operator, gate) = users().await;
    let rights_of = async |user: &str| {
        let gate = redis.url_as(user, GATE);
        let settings = ConnectionSettings::new(&gate, None).unwrap();
        let ask = operator.read(async |directory| directory.gate_rights(&settings).await);
        ask.await
    };
    assert_eq!(rights_of("water-gate").await, GateRights::Reads);
    assert_eq!(rights_of("default").await, GateRights::Writes);
    assert_eq!(rights_of("nobody").await, GateRights::NoUser);
    let prefix = gate.instance.prefix();
    for rights in [
        format!("%W~{prefix}records:* +hset"),
        format!("%W~{prefix}owners:* +hset"),
        format!("%W~{prefix}revoked +hdel"),
        format!("%W~{prefix}plans +hset"),
        format!("%W~{prefix}meta +set"),
        format!("%W~{prefix}feed +xadd"),
    ] {
        let rights: Vec<&str> = rights.split(' ').collect();
        let user = ["ACL", "SETUSER", "wide", "reset", "on", "nopass"];
        redis.command(&[&user[..], &rights].concat()).await.unwrap();
        assert_eq!(rights_of("wide").await, GateRights::Writes, "{rights:?}");
    }
}
