//! Redis failing in every way under load: a good key keeps working, nobody else gets in, and
//! everything is exact again once Redis is.

mod cluster;
mod load;

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::Instant;
use water_harness::{Network, Proxy, Redis, wait_until};
use water_keystore::Reason;

use crate::site::{Key, SOON, Site};
use load::{Load, TARGET};

/// Once Redis is back everything shall be exact again within this time. A debug build among other tests
/// cannot tell its own delays from the gate's.
const EXACT_AGAIN: Duration = if cfg!(debug_assertions) {
    SOON
} else {
    Duration::from_secs(2)
};
/// Answers to good keys while Redis fails; at the load's pace they take two seconds.
const OUTAGE: usize = 120;
/// What an outage may add to the time of so many of 100 requests: the limiter's 75 ms and little more. A
/// debug build among other tests has longer delays of its own; there it means that requests wait neither
/// for a connection (500 ms) nor for one timeout after the other.
const ADDED: (usize, Duration) = if cfg!(debug_assertions) {
    (50, Duration::from_millis(250))
} else {
    (99, Duration::from_millis(80))
};
/// So many accounts are asked for in turn that none comes near its limit.
const ACCOUNTS: usize = 60;

/// One gate before a Redis of its own, with a proxy between them.
struct World {
    redis: Redis,
    proxy: Proxy,
    site: Site,
    keys: Vec<Key>,
}

impl World {
    async fn start() -> Self {
        let users = ["user gate on >secret ~* &* +@all"];
        let redis = Redis::start_with(&users).await.unwrap();
        let proxy = Proxy::before(redis.address()).await.unwrap();
        let url = redis.url_through(&proxy, "gate", "secret");
        let site = Site::start_unready(&redis, &[("WATER_REDIS_URL", &url)]).await;
        site.ready().await;
        let keys: Vec<Key> = (0..ACCOUNTS).map(|_| Key::new()).collect();
        let world = Self {
            redis,
            proxy,
            site,
            keys,
        };
        world.republish().await;
        world
    }

    async fn command(&self, words: &[&str]) {
        self.redis.command(words).await.unwrap();
    }

    /// Waits until the gate has what is written anew.
    async fn republish(&self) {
        let seq = self.site.republish(&self.redis, &self.keys).await;
        let loaded = format!("water_gate_directory_seq {seq}.0");
        self.shows(SOON, &[&loaded, "water_gate_directory_current 1.0"])
            .await;
    }

    /// Waits until the metrics have all of these lines.
    async fn shows(&self, within: Duration, lines: &[&str]) {
        let shown = async || -> Result<()> {
            let metrics = self.site.admin("/metrics").await?;
            let text = metrics.text()?;
            for line in lines {
                ensure!(text.contains(line), "no {line} in {text}");
            }
            Ok(())
        };
        wait_until("the metrics", within, shown).await.unwrap();
    }

    async fn counted_in_redis(&self, key: &Key) -> String {
        let list = self.site.instance.minute(&key.record.account);
        self.redis.command(&["LLEN", &list]).await.unwrap()
    }

    /// All keys but the first: nothing else charges its account while the counts are compared.
    fn under_load(&self) -> &[Key] {
        &self.keys[1..]
    }

    /// Redis decides: what a client is told is what Redis has counted.
    async fn is_exact(&self) {
        self.shows(EXACT_AGAIN, &[r#"water_gate_limits_mode{mode="exact"} 1"#])
            .await;
        let key = &self.keys[0];
        let before = self.counted_in_redis(key).await;
        let answer = self.site.get(TARGET, key).await;
        let left: i32 = answer
            .header("x-ratelimit-remaining")
            .unwrap()
            .parse()
            .unwrap();
        let counted = self.counted_in_redis(key).await;
        assert_eq!(counted, format!(":{}\r\n", 120 - left), "{before:?} before");
    }

    /// Load before, during and after an outage. `end` makes Redis good again.
    async fn survives(
        &self,
        reason: Option<Reason>,
        begin: impl AsyncFnOnce(&Self),
        end: impl AsyncFnOnce(&Self),
    ) {
        let load = Load::start(&self.site, self.under_load()).await;
        let normal = load.next(OUTAGE).await;
        begin(self).await;
        let outage = load.next(OUTAGE).await;
        if let Some(reason) = reason {
            self.tells(reason).await;
        }
        end(self).await;
        let back = Instant::now();
        self.is_exact().await;
        let exact_after = back.elapsed();
        load.next(OUTAGE / 2).await;
        let all = load.stop().await;
        all.held();
        let (percent, most) = ADDED;
        let [before, during] = [normal, outage].map(|answers| answers.percentile(percent));
        let added = during.saturating_sub(before);
        println!(
            "{reason:?}: {all}; p{percent} {during:?} of {OUTAGE} while it lasted, {added:?} more than \
             before; exact {exact_after:?} after it"
        );
        assert!(added <= most, "{added:?}");
    }

    /// The reason is in one line of the log, in the metrics, and the gate stays up.
    async fn tells(&self, reason: Reason) {
        let reason = reason.as_str();
        let metrics = self.site.admin("/metrics").await.unwrap();
        let none = format!("water_gate_limiter_failures_total{{reason=\"{reason}\"}} 0\n");
        assert!(!metrics.text().unwrap().contains(&none), "{metrics:?}");
        let told = |line: &&str| line.contains("this gate's share") && line.contains(reason);
        let told_once = async || -> Result<()> {
            let log = self.site.gate.log();
            ensure!(log.lines().filter(told).count() == 1, "{reason}: {log}");
            Ok(())
        };
        wait_until("one line in the log", SOON, told_once)
            .await
            .unwrap();
        for path in ["/live", "/ready"] {
            assert_eq!(self.site.admin(path).await.unwrap().status, 200, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_killed_and_comes_back_empty_fails_no_good_key() {
    let begin = async |world: &World| world.redis.kill().unwrap();
    let end = async |world: &World| {
        world.redis.start_again().await.unwrap();
        world.republish().await;
    };
    World::start()
        .await
        .survives(Some(Reason::Down), begin, end)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_stands_still_fails_no_good_key() {
    let begin = async |world: &World| world.redis.pause().unwrap();
    let end = async |world: &World| world.redis.resume().unwrap();
    World::start()
        .await
        .survives(Some(Reason::Slow), begin, end)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_lost_its_data_fails_no_good_key() {
    let begin = async |world: &World| world.command(&["FLUSHALL"]).await;
    let end = async |world: &World| world.republish().await;
    World::start().await.survives(None, begin, end).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_became_a_replica_fails_no_good_key() {
    let begin = async |world: &World| world.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let end = async |world: &World| {
        world.command(&["REPLICAOF", "NO", "ONE"]).await;
        world.republish().await;
    };
    World::start()
        .await
        .survives(Some(Reason::ReadOnly), begin, end)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_fails_no_good_key() {
    let begin = async |world: &World| world.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let end = async |world: &World| world.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    World::start()
        .await
        .survives(Some(Reason::OutOfMemory), begin, end)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_with_another_password_fails_no_good_key() {
    let begin = async |world: &World| {
        let changed = ["ACL", "SETUSER", "gate", "resetpass", ">changed"];
        world.command(&changed).await;
        world.command(&["CLIENT", "KILL", "USER", "gate"]).await;
    };
    let end = async |world: &World| world.command(&["ACL", "SETUSER", "gate", ">secret"]).await;
    World::start()
        .await
        .survives(Some(Reason::WrongPassword), begin, end)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_black_hole_before_redis_fails_no_good_key() {
    let begin = async |world: &World| world.proxy.set(Network::BlackHole);
    let end = async |world: &World| world.proxy.set(Network::Good);
    World::start()
        .await
        .survives(Some(Reason::Slow), begin, end)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_resets_connections_to_redis_fails_no_good_key() {
    let begin = async |world: &World| world.proxy.set(Network::Reset);
    let end = async |world: &World| world.proxy.set(Network::Good);
    World::start()
        .await
        .survives(Some(Reason::Down), begin, end)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_slowed_by_half_a_second_fails_no_good_key() {
    let slow = Network::Delay(Duration::from_millis(500));
    let begin = async |world: &World| world.proxy.set(slow);
    let end = async |world: &World| world.proxy.set(Network::Good);
    World::start()
        .await
        .survives(Some(Reason::Slow), begin, end)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_whose_other_end_is_gone_fail_no_good_key() {
    let begin = async |world: &World| world.proxy.half_open();
    World::start()
        .await
        .survives(None, begin, async |_| {})
        .await;
}

#[tokio::test]
async fn three_gates_share_the_limit_while_redis_is_away() {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_unready(&redis, &[]).await;
    site.ready().await;
    let peers = [
        site.another(&redis, "gate-1").await,
        site.another(&redis, "gate-2").await,
    ];
    let key = site.key().await;
    let mut clients = [
        site.connect().await,
        peers[0].connect().await,
        peers[1].connect().await,
    ];
    let all_known = async || -> Result<()> {
        for metrics in [
            site.admin("/metrics").await?,
            peers[0].admin("/metrics").await?,
            peers[1].admin("/metrics").await?,
        ] {
            ensure!(metrics.text()?.contains("water_gate_limits_gates 3"));
        }
        Ok(())
    };
    wait_until("all leases to be seen", SOON, all_known)
        .await
        .unwrap();
    redis.kill().unwrap();
    for client in &mut clients {
        let mut statuses = Vec::new();
        for _ in 0..60 {
            statuses.push(client.get(TARGET, &key.text).await.unwrap().status);
        }
        let mut expected = vec![200; 40];
        expected.resize(60, 429);
        assert_eq!(statuses, expected);
    }
}
