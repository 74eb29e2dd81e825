//! Both limits as a client meets them.

use water_harness::{Answer, Redis, RedisCluster};

use crate::site::{Key, Site, contents, is, problem};

const TARGET: &str = "/api/v1/stress";

fn remaining(answer: &Answer) -> u32 {
    answer
        .header("x-ratelimit-remaining")
        .unwrap()
        .parse()
        .unwrap()
}

/// Redis admits exactly 120 of more requests. Each that was decided without it, because it was late,
/// may have made one more of them or one less; the metrics of all gates count those.
fn is_exact(accepted: u32, metrics: &[Answer]) {
    let shared = metrics.iter().flat_map(|answer| {
        let lines = answer.text().unwrap().lines();
        lines.filter_map(|line| line.strip_prefix("water_gate_limits_shared_total{"))
    });
    let decided_here = shared.map(|line| {
        let (_, count) = line.split_once(' ').unwrap();
        count.parse::<u32>().unwrap()
    });
    let decided_here = decided_here.sum();
    assert!(
        accepted.abs_diff(120) <= decided_here,
        "{accepted} accepted, {decided_here} decided without Redis"
    );
}

#[tokio::test]
async fn the_121st_request_within_a_minute_is_429() {
    let site = Site::start().await;
    let key = site.key().await;
    let mut client = site.connect().await;
    for left in (0..120).rev() {
        let answer = client.get(TARGET, &key.text).await.unwrap();
        assert_eq!((answer.status, remaining(&answer)), (200, left));
    }
    let refused = client.get(TARGET, &key.text).await.unwrap();
    assert_eq!(problem(&refused), is(429, "rate_limited"));
    assert_eq!(
        refused.json().unwrap()["violatedPolicies"],
        serde_json::json!(["minute"])
    );
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let standing = refused.header("ratelimit").unwrap();
    assert!(
        standing.starts_with(&format!(r#""minute";r=0;t={wait}, "day";r=49880;t="#)),
        "{standing}"
    );
    assert_eq!(site.service.seen().len(), 120);
}

#[tokio::test]
async fn every_accepted_answer_has_all_the_headers() {
    let site = Site::start().await;
    let answer = site.get(TARGET, &site.key().await).await;
    let policy = r#""minute";q=120;w=60, "day";q=50000;w=86400"#;
    assert_eq!(answer.header("ratelimit-policy"), Some(policy));
    let standing = answer.header("ratelimit").unwrap();
    assert!(
        standing.starts_with(r#""minute";r=119;t=60, "day";r=49999;t="#),
        "{standing}"
    );
    assert_eq!(answer.header("x-ratelimit-limit"), Some("120"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("119"));
    let reset: i64 = answer.header("x-ratelimit-reset").unwrap().parse().unwrap();
    let now = site.directory.leases().await.unwrap().now.as_millis() / 1000;
    assert!((now + 50..=now + 61).contains(&reset), "{reset} at {now}");
}

#[tokio::test]
async fn a_head_costs_what_a_get_costs() {
    let site = Site::start().await;
    let bearer = site.key().await.bearer();
    let fields = [("Authorization", bearer.as_str())];
    let head = site.request("HEAD", TARGET, &fields).await;
    let get = site.request("GET", TARGET, &fields).await;
    assert_eq!((remaining(&head), remaining(&get)), (119, 118));
}

#[tokio::test]
async fn all_keys_of_an_account_share_its_limits() {
    let site = Site::start().await;
    let first = site.key().await;
    let second = site.publish(Key::new().of_account(&first)).await;
    assert_eq!(remaining(&site.get(TARGET, &first).await), 119);
    assert_eq!(remaining(&site.get(TARGET, &second).await), 118);
}

#[tokio::test]
async fn the_day_has_its_own_limit() {
    let site = Site::start().await;
    let key = site.publish(Key::new().on_plan("Daily")).await;
    for left in [2, 1, 0] {
        let answer = site.get(TARGET, &key).await;
        assert_eq!((answer.status, remaining(&answer)), (200, left));
        assert_eq!(answer.header("x-ratelimit-limit"), Some("3"));
    }
    let refused = site.get(TARGET, &key).await;
    assert_eq!(problem(&refused), is(429, "rate_limited"));
    assert_eq!(
        refused.json().unwrap()["violatedPolicies"],
        serde_json::json!(["day"])
    );
}

#[tokio::test]
async fn a_flood_through_many_connections_is_accepted_exactly_up_to_the_limit() {
    let site = Site::start().await;
    let key = site.key().await;
    let flood = (0..10).map(|_| async {
        let mut client = site.connect().await;
        let mut accepted = 0;
        for _ in 0..30 {
            accepted += u32::from(client.get(TARGET, &key.text).await.unwrap().status == 200);
        }
        accepted
    });
    let accepted = futures::future::join_all(flood).await;
    let metrics = site.admin("/metrics").await.unwrap();
    is_exact(accepted.into_iter().sum(), &[metrics]);
}

#[tokio::test]
async fn a_refusal_of_the_service_is_charged() {
    let site = Site::start().await;
    let key = site.key().await;
    let body = r#"{"code":"invalid_parameter"}"#;
    let fields = "content-type: application/problem+json\r\n";
    let answer = crate::recorder::with("400 Bad Request", fields, body);
    site.service
        .behave(crate::recorder::Behaviour::Answer(answer));
    let answer = site.get(TARGET, &key).await;
    assert_eq!((answer.status, remaining(&answer)), (400, 119));
    assert_eq!(answer.text().unwrap(), body);
}

#[tokio::test]
async fn fifty_clients_through_three_gates_get_exactly_the_limit() {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_unready(&redis, &[]).await;
    site.ready().await;
    let peers = [
        site.another(&redis, "gate-1").await,
        site.another(&redis, "gate-2").await,
    ];
    let key = site.key().await;
    let clients = (0..50).map(|client| {
        let (site, peers, key) = (&site, &peers, &key);
        async move {
            let mut client = match client % 3 {
                0 => site.connect().await,
                gate => peers[gate - 1].connect().await,
            };
            let mut accepted = 0;
            for _ in 0..50 {
                accepted += u32::from(client.get(TARGET, &key.text).await.unwrap().status == 200);
            }
            accepted
        }
    });
    let accepted = futures::future::join_all(clients).await;
    let metrics = [
        site.admin("/metrics").await.unwrap(),
        peers[0].admin("/metrics").await.unwrap(),
        peers[1].admin("/metrics").await.unwrap(),
    ];
    is_exact(accepted.into_iter().sum(), &metrics);
}

#[tokio::test]
async fn a_raised_plan_acts_at_once_on_an_account_that_was_refused() {
    let site = Site::start().await;
    let key = site.publish(Key::new().on_plan("Daily")).await;
    for status in [200, 200, 200, 429] {
        assert_eq!(site.get(TARGET, &key).await.status, status);
    }
    let mut plans = contents(&[]).plans;
    let limited = plans.iter_mut().filter_map(|plan| plan.limits.as_mut());
    limited.for_each(|limits| limits.requests_per_day = 10.try_into().unwrap());
    site.writer.set_plans(&plans).await.unwrap();
    // The gate acknowledges changes in their order.
    site.key().await;
    let answer = site.get(TARGET, &key).await;
    assert_eq!((answer.status, remaining(&answer)), (200, 6));
}

#[tokio::test]
async fn on_a_redis_cluster_every_account_gets_exactly_its_limit() {
    let cluster = RedisCluster::start().await.unwrap();
    let site = Site::start_at(&cluster.url_as("default", ""), &[]).await;
    site.ready().await;
    // Some 6 accounts lie on all three masters.
    for _ in 0..6 {
        let (key, mut client) = (site.key().await, site.connect().await);
        let mut accepted = 0;
        for _ in 0..125 {
            accepted += u32::from(client.get(TARGET, &key.text).await.unwrap().status == 200);
        }
        is_exact(accepted, &[site.admin("/metrics").await.unwrap()]);
    }
}

#[tokio::test]
async fn a_flood_of_refusals_costs_redis_no_command() {
    let redis = Redis::start().await.unwrap();
    let site = Site::start_unready(&redis, &[]).await;
    site.ready().await;
    let key = site.publish(Key::new().on_plan("Daily")).await;
    let mut client = site.connect().await;
    for _ in 0..4 {
        client.get(TARGET, &key.text).await.unwrap();
    }
    let scripts = async || {
        let stats = redis.command(&["INFO", "commandstats"]).await.unwrap();
        let calls = |name: &str| {
            let line = stats.lines().find(|line| line.starts_with(name));
            line.unwrap().to_owned()
        };
        // The lease is renewed by a script too; what the limiter alone runs is counted.
        [calls("cmdstat_lindex"), calls("cmdstat_llen")].map(|line| {
            let calls = line.split("calls=").nth(1).unwrap();
            calls.split(',').next().unwrap().to_owned()
        })
    };
    let before = scripts().await;
    for _ in 0..500 {
        assert_eq!(client.get(TARGET, &key.text).await.unwrap().status, 429);
    }
    assert_eq!(scripts().await, before);
}
