//! A whole history, walked by a client that the limits stop: the real gate before the real history
//! service.

use std::time::Duration;

use futures::future::join;
use tokio::time::{Instant, sleep_until};
use water_database::writer::{Batch, History, HistoryRow};
use water_domain::{Number, Timestamp};
use water_harness::{Answer, HttpClient, Postgres};
use water_kit::{CURRENT, Running, migrated, writer};

use crate::site::{Key, Site};

/// Two walks of them, in pages of two, are more requests than Enterprise has in a minute.
const RECORDS: usize = 126;

/// What came of a walk.
#[derive(Default)]
struct Walk {
    ids: Vec<String>,
    pages: usize,
    /// How often it was told to wait.
    waits: usize,
}

/// The history service with [`RECORDS`] records of this account.
async fn history_of(account: &str) -> Running {
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let mut batch = Batch::default();
    for number in 0..RECORDS {
        batch.push(&HistoryRow {
            line: number as u64 + 2,
            account_id: account,
            id: &id(number),
            company_name: "Eaux de l'Hérault",
            sector_code: "36.00Z",
            dept_code: "34",
            score: Number::try_from(61.5).unwrap(),
            rating: "B+",
            created_at: Timestamp::from_millis(1_767_225_600_000 + number as i64).unwrap(),
        });
    }
    let mut writer = writer(&database).await;
    let mut staging = writer.stage(History::Analyses).await.unwrap();
    staging.push(batch).await.unwrap();
    let as_of = Timestamp::parse("2026-07-01T00:00:00Z").unwrap();
    staging.finish(as_of, &water_kit::load()).await.unwrap();
    Running::start(&database.url_as("water_reader"), water_history::start)
        .ready()
        .await
}

fn id(number: usize) -> String {
    format!("r{number:04}")
}

/// From this page to the last, on one connection; `ids` reads a page.
async fn walk(
    site: &Site,
    key: &Key,
    from: &str,
    accept: &str,
    ids: fn(&Answer) -> Vec<String>,
) -> Walk {
    let mut client = site.connect().await;
    let (mut next, mut walk) = (Some(from.to_owned()), Walk::default());
    while let Some(target) = next {
        let page = patient(&mut client, &target, key, accept, &mut walk.waits).await;
        walk.ids.extend(ids(&page));
        walk.pages += 1;
        next = following(&page);
    }
    walk
}

/// The page, after as many refusals as there are; each says how long to wait.
async fn patient(
    client: &mut HttpClient,
    target: &str,
    key: &Key,
    accept: &str,
    waits: &mut usize,
) -> Answer {
    let bearer = format!("Bearer {}", key.text);
    let fields = [("Authorization", bearer.as_str()), ("Accept", accept)];
    loop {
        let answer = client.request("GET", target, &fields).await.unwrap();
        if answer.status == 200 {
            return answer;
        }
        assert_eq!(answer.status, 429, "{answer:?}");
        *waits += 1;
        let seconds = answer.header("retry-after").unwrap().parse().unwrap();
        // What is tested is that exactly this wait, and nothing else, is enough.
        sleep_until(Instant::now() + Duration::from_secs(seconds)).await;
    }
}

/// The target of `rel="next"`.
fn following(page: &Answer) -> Option<String> {
    let mut links = page.header("link").unwrap_or_default().split(", ");
    let next = links.find(|link| link.ends_with("; rel=\"next\""))?;
    Some(next[1..next.find('>').unwrap()].to_owned())
}

fn of_json(page: &Answer) -> Vec<String> {
    let records = page.json().unwrap()["data"].take();
    let records = records.as_array().unwrap().iter();
    records
        .map(|record| record["id"].as_str().unwrap().to_owned())
        .collect()
}

fn of_csv(page: &Answer) -> Vec<String> {
    let records = page.text().unwrap().lines().skip(1);
    records
        .map(|line| line.split(',').next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn walks_that_wait_as_the_limits_tell_them_see_each_record_once() {
    let key = Key::new();
    let history = history_of(key.record.account.as_str()).await;
    let site = Site::start_with(&[
        ("WATER_HISTORY_ADDRESS", &history.address().to_string()),
        ("WATER_IDENTITY_CURRENT", CURRENT),
    ])
    .await;
    let key = site.publish(key).await;
    let target = "/api/v1/hydrorisk?limit=2";
    let (json, csv) = join(
        walk(&site, &key, target, "application/json", of_json),
        walk(&site, &key, target, "text/csv", of_csv),
    )
    .await;
    assert!(
        json.pages + csv.pages > 120,
        "{} and {}",
        json.pages,
        csv.pages
    );
    assert!(json.waits + csv.waits > 0, "nobody was told to wait");
    let all: Vec<String> = (0..RECORDS).map(id).collect();
    assert_eq!(csv.ids, all);
    // JSON pages have the newest first.
    assert!(json.ids.iter().rev().eq(&all), "{:?}", json.ids);
}
