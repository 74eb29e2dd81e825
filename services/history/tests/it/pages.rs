//! Walks through a history by links, and while loads are in progress.

use serde_json::Value;
use water_database::writer::History;
use water_harness::Answer;
use water_kit::rows;

use crate::{empty, link};

fn ids(answer: &Answer) -> Vec<String> {
    let body = answer.json().unwrap();
    let data = body["data"].as_array().unwrap();
    data.iter()
        .map(|record| record["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn following_next_reads_each_row_once_newest_first_and_prev_leads_back() {
    let (service, mut loader) = empty().await;
    loader.history(History::Audits, &rows(333)).await;
    let mut expected: Vec<_> = rows(333).into_iter().map(|row| row.id).collect();
    expected.reverse();

    let first = service
        .get("/api/v1/conformite?limit=50&utm_source=dropped")
        .await;
    let last = link(&first, "last").unwrap();
    let (mut page, mut seen, mut at) = (first.clone(), ids(&first), String::new());
    while let Some(next) = link(&page, "next") {
        page = service.get(&next).await;
        seen.extend(ids(&page));
        at = next;
    }
    assert_eq!((seen, at), (expected, last));
    let mut steps = 0;
    while let Some(prev) = link(&page, "prev") {
        page = service.get(&prev).await;
        steps += 1;
    }
    assert_eq!((page.body, steps), (first.body, 6));
}

#[tokio::test]
async fn total_and_rows_are_of_one_moment_while_loads_go_on() {
    let (service, mut loader) = empty().await;
    let loads = tokio::spawn(async move {
        for round in 1..=25 {
            loader.history(History::Analyses, &rows(round * 10)).await;
        }
    });
    let mut total = Value::Null;
    let mut versions = 0;
    while total != 250 {
        let page = service.get("/api/v1/hydrorisk?limit=100").await;
        let body = page.json().unwrap();
        let expected = body["total"].as_u64().unwrap();
        assert_eq!(ids(&page).len() as u64, expected.min(100));
        if let Some(newest) = ids(&page).first() {
            assert_eq!(*newest, format!("r{:04}", expected - 1));
        }
        versions += i32::from(total != body["total"]);
        total = body["total"].clone();
    }
    loads.await.unwrap();
    assert!(versions > 2, "the reader saw {versions} versions only");
}
