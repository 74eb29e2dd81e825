//! Limits: counted by account, exact, and told in every answer.

use anyhow::{Context, Result};
use water_e2e::{ApiKey, Cluster, Water};
use water_harness::{Answer, HttpClient};

use super::assert_problem;

/// An account that no run before this one can have charged.
fn fresh(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// Uses up the minute on one connection; returns the last accepted answer.
async fn use_up(client: &mut HttpClient, key: &str) -> Result<Answer> {
    let mut last = client.get("/api/v1/stress?dept=34", key).await?;
    for number in 2..=120 {
        last = client.get("/api/v1/stress?dept=34", key).await?;
        assert_eq!(last.status, 200, "request {number}: {last:?}");
    }
    Ok(last)
}

/// The value of a parameter of the first member of `RateLimit` with this name.
fn member(answer: &Answer, window: &str, parameter: &str) -> Result<u64> {
    let header = answer
        .header("ratelimit")
        .with_context(|| format!("no RateLimit: {answer:?}"))?;
    let quoted = format!("\"{window}\"");
    let member = header
        .split(", ")
        .find(|member| member.starts_with(&quoted))
        .context("no window")?;
    let value = member
        .split(';')
        .find_map(|part| part.strip_prefix(&format!("{parameter}=")));
    Ok(value.context("no parameter")?.parse()?)
}

async fn fresh_key(cluster: &Cluster, name: &str) -> Result<String> {
    cluster
        .issue(&ApiKey::named(name).of_account(&fresh(name)))
        .await
}

async fn used_up_account(cluster: &Cluster, name: &str) -> Result<(String, Answer)> {
    let key = fresh_key(cluster, name).await?;
    let mut client = cluster.water.connect().await?;
    let last = use_up(&mut client, &key).await?;
    assert_eq!(member(&last, "minute", "r")?, 0);
    Ok((key, last))
}

#[tokio::test]
async fn the_121st_request_of_a_minute_is_refused_with_all_headers() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (key, _) = used_up_account(&cluster, "one-too-many").await?;
    let answer = cluster.water.get("/api/v1/stress?dept=34", &key).await?;
    assert_problem(&answer, 429, "rate_limited")?;
    let policy = r#""minute";q=120;w=60, "day";q=50000;w=86400"#;
    assert_eq!(answer.header("ratelimit-policy"), Some(policy));
    assert_eq!(
        (
            member(&answer, "minute", "r")?,
            member(&answer, "day", "r")?
        ),
        (0, 49_880)
    );
    let wait: u64 = answer
        .header("retry-after")
        .context("no Retry-After")?
        .parse()?;
    assert_eq!(member(&answer, "minute", "t")?, wait);
    assert!((1..=60).contains(&wait), "{wait} s");
    assert_eq!(answer.header("x-ratelimit-limit"), Some("120"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("0"));
    assert!(
        answer.json()?["violatedPolicies"]
            .to_string()
            .contains("minute"),
        "{answer:?}"
    );
    Ok(())
}

#[tokio::test]
async fn x_ratelimit_reset_is_the_same_moment_in_epoch_seconds() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let answer = cluster
        .water
        .get("/api/v1/stress", &cluster.key().await?)
        .await?;
    let reset: u64 = answer
        .header("x-ratelimit-reset")
        .context("no reset")?
        .parse()?;
    let date = answer.header("date").context("no Date")?;
    let now = u64::try_from(chrono::DateTime::parse_from_rfc2822(date)?.timestamp())?;
    let left = reset
        .checked_sub(now)
        .with_context(|| format!("{reset} is before {now}"))?;
    // `Date` is cut to the second, the wait is rounded up to it.
    assert!(
        left.abs_diff(member(&answer, "minute", "t")?) <= 1,
        "{answer:?}"
    );
    Ok(())
}

#[tokio::test]
async fn all_keys_of_an_account_share_its_quota() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (account, water) = (fresh("shared-quota"), &cluster.water);
    let one = cluster
        .issue(&ApiKey::named("shared-quota-1").of_account(&account))
        .await?;
    let other = cluster
        .issue(&ApiKey::named("shared-quota-2").of_account(&account))
        .await?;
    let first = water.get("/api/v1/stress", &one).await?;
    let second = water.get("/api/v1/stress", &other).await?;
    assert_eq!(
        (
            member(&first, "minute", "r")?,
            member(&second, "minute", "r")?
        ),
        (119, 118)
    );
    Ok(())
}

/// What remains after `requests` refusals between two accepted requests.
async fn remaining_after(water: &Water, key: &str, requests: &[(&str, &str, u16)]) -> Result<u64> {
    let mut client = water.connect().await?;
    let bearer = format!("Bearer {key}");
    client.get("/api/v1/stress", key).await?;
    for (method, target, status) in requests {
        let answer = client
            .request(method, target, &[("Authorization", &bearer)])
            .await?;
        assert_eq!(answer.status, *status, "{method} {target}: {answer:?}");
    }
    member(&client.get("/api/v1/stress", key).await?, "minute", "r")
}

#[tokio::test]
async fn unknown_paths_and_methods_cost_nothing() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let free = [
        ("GET", "/api/v1/unknown", 404),
        ("POST", "/api/v1/stress", 405),
    ];
    let key = fresh_key(&cluster, "free-requests").await?;
    assert_eq!(remaining_after(&cluster.water, &key, &free).await?, 118);
    Ok(())
}

#[tokio::test]
async fn an_accepted_request_costs_one_whatever_the_service_answers() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let charged = [
        ("GET", "/api/v1/stress?dept=20", 404),
        ("GET", "/api/v1/stress?dept=x", 400),
        ("HEAD", "/api/v1/stress", 200),
        ("GET", "/api/v1/sources", 200),
    ];
    let key = fresh_key(&cluster, "charged-requests").await?;
    assert_eq!(remaining_after(&cluster.water, &key, &charged).await?, 114);
    Ok(())
}

#[tokio::test]
async fn a_429_costs_nothing() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (key, _) = used_up_account(&cluster, "free-refusals").await?;
    let mut client = cluster.water.connect().await?;
    let first = client.get("/api/v1/stress", &key).await?;
    let second = client.get("/api/v1/stress", &key).await?;
    assert_eq!((first.status, second.status), (429, 429));
    assert_eq!(member(&first, "day", "r")?, member(&second, "day", "r")?);
    Ok(())
}

#[tokio::test]
async fn who_waits_as_told_succeeds() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let (key, _) = used_up_account(&cluster, "patient").await?;
    let refused = cluster.water.get("/api/v1/stress", &key).await?;
    let wait = refused
        .header("retry-after")
        .context("no Retry-After")?
        .parse()?;
    // What is tested is that exactly this wait, and nothing else, is enough.
    tokio::time::sleep_until(tokio::time::Instant::now() + std::time::Duration::from_secs(wait))
        .await;
    assert_eq!(cluster.water.get("/api/v1/stress", &key).await?.status, 200);
    Ok(())
}
