//! Usage of an account, as gates report it and the portal reads it, and limits of the account's requests to the portal.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redis::cmd;
use tokio::time::Instant;
use water_domain::{AccountId, KeyId, Timestamp};
use water_keystore::connection::Purpose;
use water_keystore::usage::{Day, Use};
use water_keystore::{Allowance, Allowances, Decision, Quotas, Reply, Usage, UtcDay};
use water_kit::{equal, exactly};

use crate::site::*;

fn account() -> AccountId {
    "acme".parse().unwrap()
}

fn key(number: u32) -> KeyId {
    format!("{number:012}").parse().unwrap()
}

fn at(moment: &str) -> Timestamp {
    Timestamp::parse(moment).unwrap()
}

fn day(moment: &str) -> UtcDay {
    UtcDay::from(at(moment))
}

const NOON: &str = "2026-03-01T12:00:00Z";

fn used(accepted: u64, limited: u64, keys: &[(KeyId, Timestamp)]) -> Use {
    Use {
        account: account(),
        day: day(NOON),
        accepted,
        limited,
        keys: keys.to_vec(),
    }
}

impl Site {
    async fn usage(&self) -> Usage {
        Usage::new(self.connection().await, self.instance.clone())
    }

    async fn adds(&self, used: Use) {
        let usage = self.usage().await;
        usage.add(vec![used]).await.unwrap();
    }

    async fn last_uses(&self, keys: &[KeyId], today: UtcDay) -> Vec<Option<Timestamp>> {
        let usage = self.usage().await;
        usage.last_uses(&account(), keys, today).await.unwrap()
    }
}

#[tokio::test]
async fn what_several_gates_tell_is_added_up_by_day() {
    let site = Site::new().await;
    site.adds(used(2, 1, &[])).await;
    site.adds(used(3, 0, &[])).await;
    let yesterday = Use {
        day: day("2026-02-28T23:59:59Z"),
        ..used(7, 0, &[])
    };
    site.adds(yesterday).await;
    let usage = site.usage().await;
    let days = usage.days(&account(), day(NOON), 3).await.unwrap();
    let of = |moment, accepted, limited| Day {
        day: day(moment),
        accepted,
        limited,
    };
    let expected = [
        of("2026-02-27T00:00:00Z", 0, 0),
        of("2026-02-28T00:00:00Z", 7, 0),
        of(NOON, 5, 1),
    ];
    assert_eq!(days, expected);
}

#[tokio::test]
async fn a_keys_last_use_is_its_latest_on_any_day_and_its_accounts_only() {
    let site = Site::new().await;
    site.adds(used(0, 0, &[(key(1), at(NOON))])).await;
    site.adds(used(0, 0, &[(key(1), at("2026-03-01T11:00:00Z"))]))
        .await;
    let stranger = Use {
        account: "globex".parse().unwrap(),
        ..used(0, 0, &[(key(2), at(NOON))])
    };
    site.adds(stranger).await;
    let asked = [key(1), key(2), key(3)];
    let today = day("2026-03-04T00:00:00Z");
    assert_eq!(
        site.last_uses(&asked, today).await,
        [Some(at(NOON)), None, None]
    );
    assert_eq!(
        site.last_uses(&asked, day("2026-04-05T00:00:00Z")).await,
        [None, None, None]
    );
}

#[tokio::test]
async fn a_day_is_kept_for_35_days_after_it_was_last_added_to() {
    let site = Site::new().await;
    let begun = Instant::now();
    site.adds(used(1, 0, &[])).await;
    let left: i64 = cmd("PTTL")
        .arg(site.instance.usage(&account(), day(NOON)))
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    let since = begun.elapsed().as_millis() as i64;
    let kept = 35 * 86_400_000;
    assert!(left <= kept && left + since >= kept - 1000, "{left}");
}

#[tokio::test]
async fn the_quota_is_what_the_limiter_has_left_and_reading_it_charges_nothing() {
    exactly(async || -> Result<()> {
        let site = Site::new().await;
        let limiter = site.limiter(Purpose::Directory);
        limiter.prepared().await;
        let limits = limits(3, 10);
        let quotas = Quotas::new(site.connection().await, site.instance.clone());
        let left = |quota: &Decision| (quota.minute.remaining, quota.day.remaining);
        let fresh = quotas.read(&account(), limits).await?;
        equal(left(&fresh), (3, 10))?;
        equal(fresh.minute.opens_in, Duration::ZERO)?;
        for charged in 1..=4 {
            let decision = limiter.limiter.charge(&account(), limits, now()).await?;
            for _ in 0..2 {
                let quota = quotas.read(&account(), limits).await?;
                equal(left(&quota), left(&decision)).with_context(|| charged.to_string())?;
                ensure!(quota.minute.opens_in <= decision.minute.opens_in);
                ensure!(quota.day.opens_in <= decision.day.opens_in);
                ensure!(quota.at >= decision.at);
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_quota_leaves_out_what_the_limiter_would_drop() {
    exactly(async || -> Result<()> {
        let site = Site::new().await;
        let minute = site.instance.minute(&account());
        let begun = Instant::now();
        let micros = now().as_millis() * 1000;
        let (old, recent, ahead) = (
            micros - 61_000_000,
            micros - 1_000_000,
            micros + 120_000_000,
        );
        for entry in [old, old, recent, recent, ahead] {
            site.vandalise(cmd("RPUSH").arg(&minute).arg(entry)).await;
        }
        let quotas = Quotas::new(site.connection().await, site.instance.clone());
        let quota = quotas.read(&account(), limits(1, 10)).await?;
        equal(quota.minute.remaining, 0)?;
        let opens_in = quota.minute.opens_in_seconds();
        let since = begun.elapsed().as_secs();
        ensure!(opens_in <= 59 && opens_in + since >= 57, "{opens_in}");
        let quota = quotas.read(&account(), limits(5, 10)).await?;
        equal(quota.minute.remaining, 3)
    })
    .await;
}

#[tokio::test]
async fn the_quota_of_a_day_that_is_over_is_whole_again() {
    let site = Site::new().await;
    let yesterday = now().as_millis() / 86_400_000 - 1;
    let mut set = cmd("SET");
    set.arg(site.instance.day(&account()));
    site.vandalise(set.arg(format!("{yesterday} 7"))).await;
    let quotas = Quotas::new(site.connection().await, site.instance.clone());
    let quota = quotas.read(&account(), limits(3, 10)).await.unwrap();
    assert_eq!(quota.day.remaining, 10);
}

#[tokio::test]
async fn an_account_may_make_thirty_keys_an_hour_whatever_else_it_and_others_do() {
    let site = Site::new().await;
    let allowances = Allowances::new(site.connection().await, site.instance.clone());
    let take = async |account: &AccountId, what| allowances.take(account, what).await.unwrap();
    let (acme, globex) = (account(), "globex".parse().unwrap());
    let begun = Instant::now();
    let mut last = None;
    for _ in 0..30 {
        let Reply::Reserved(reservation) = take(&acme, Allowance::Creations).await else {
            panic!("thirty are left");
        };
        last = Some(reservation);
    }
    let Reply::Full(wait) = take(&acme, Allowance::Creations).await else {
        panic!("none is left");
    };
    let (wait, since) = (wait.as_secs(), begun.elapsed().as_secs());
    assert!(wait <= 3600 && wait + since >= 3590, "{wait}");
    let list = site.instance.allowance(&acme, "creations");
    let left: i64 = cmd("PTTL")
        .arg(&list)
        .query_async(&mut site.vandal().await)
        .await
        .unwrap();
    let since = begun.elapsed().as_millis() as i64;
    assert!(left <= 3_600_000 && left + since >= 3_599_000, "{left}");
    let mut length = cmd("LLEN");
    length.arg(list);
    let counted: u32 = length.query_async(&mut site.vandal().await).await.unwrap();
    assert_eq!(counted, 30);
    for (account, what) in [
        (&globex, Allowance::Creations),
        (&acme, Allowance::Rotations),
        (&acme, Allowance::Reads),
    ] {
        assert!(
            matches!(take(account, what).await, Reply::Reserved(_)),
            "{what:?}"
        );
    }
    allowances.give_back(last.unwrap()).await.unwrap();
    let again = take(&acme, Allowance::Creations).await;
    assert!(matches!(again, Reply::Reserved(_)), "{again:?}");
    let again = take(&acme, Allowance::Creations).await;
    assert!(matches!(again, Reply::Full(_)), "{again:?}");
}

#[tokio::test]
async fn an_allowance_comes_back_as_its_times_grow_old() {
    exactly(async || -> Result<()> {
        let site = Site::new().await;
        let list = site.instance.allowance(&account(), "reads");
        let micros = now().as_millis() * 1000;
        for age in [70_000_000, 61_000_000] {
            site.vandalise(cmd("RPUSH").arg(&list).arg(micros - age))
                .await;
        }
        for _ in 0..59 {
            site.vandalise(cmd("RPUSH").arg(&list).arg(micros - 1_000_000))
                .await;
        }
        let allowances = Allowances::new(site.connection().await, site.instance.clone());
        let take = async || allowances.take(&account(), Allowance::Reads).await;
        ensure!(matches!(take().await?, Reply::Reserved(_)));
        let full = take().await?;
        ensure!(
            matches!(full, Reply::Full(wait) if wait <= Duration::from_secs(59)),
            "{full:?}"
        );
        Ok(())
    })
    .await;
}
