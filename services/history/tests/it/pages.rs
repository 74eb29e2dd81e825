//! Walking through a history: order, links, and loads under way.

use serde_json::Value;
use water_database::writer::History;
use water_harness::Answer;

use crate::fixture::{Row, empty, link, load, row, rows};

fn ids(answer: &Answer) -> Vec<String> {
    let body = answer.json().unwrap();
    let data = body["data"].as_array().unwrap();
    data.iter()
        .map(|record| record["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn rows_come_newest_first_and_by_descending_bytes_of_the_id() {
    let (service, mut writer) = empty().await;
    let same_moment = ["a", "B", "b", "10", "9", "é"].map(|id| row(id, 5));
    load(&mut writer, History::Analyses, &same_moment).await;
    load(
        &mut writer,
        History::Analyses,
        &[row("old", 4), row("new", 6)],
    )
    .await;
    let page = service.get("/api/v1/hydrorisk").await;
    assert_eq!(ids(&page), ["new", "é", "b", "a", "B", "9", "10", "old"]);
}

#[tokio::test]
async fn following_next_reads_each_row_once_and_ends_at_last() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Audits, &rows(333)).await;
    let mut expected: Vec<_> = rows(333).into_iter().map(|row| row.id).collect();
    expected.reverse();

    let mut page = service.get("/api/v1/conformite?limit=50").await;
    let mut seen = ids(&page);
    let last = link(&page, "last").unwrap();
    let mut at = String::new();
    while let Some(next) = link(&page, "next") {
        page = service.get(&next).await;
        seen.extend(ids(&page));
        at = next;
    }
    assert_eq!((seen, at), (expected, last));
}

#[tokio::test]
async fn following_prev_from_last_leads_back_to_first() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(95)).await;
    let first = service.get("/api/v1/hydrorisk?limit=30").await;
    let mut page = service.get(&link(&first, "last").unwrap()).await;
    let mut steps = 0;
    while let Some(prev) = link(&page, "prev") {
        page = service.get(&prev).await;
        steps += 1;
    }
    assert_eq!((page.body, steps), (first.body, 3));
}

#[tokio::test]
async fn a_page_links_to_those_that_exist() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(60)).await;
    let relations = |answer: &Answer| {
        ["first", "prev", "next", "last"].map(|relation| link(answer, relation).is_some())
    };
    for (offset, exist) in [
        (0, [true, false, true, true]),
        (20, [true, true, true, true]),
        (40, [true, true, false, true]),
        (1000, [true, true, false, true]),
    ] {
        let page = service
            .get(&format!("/api/v1/hydrorisk?offset={offset}"))
            .await;
        assert_eq!(relations(&page), exist, "{offset}");
    }
    let middle = service
        .get("/api/v1/hydrorisk?offset=20&other=dropped")
        .await;
    assert_eq!(
        link(&middle, "next").unwrap(),
        "/api/v1/hydrorisk?limit=20&offset=40"
    );
}

#[tokio::test]
async fn deep_pages_are_those_that_a_walk_would_reach() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(700)).await;
    // Upserts move old rows, and with them the places of all later ones.
    let moved: Vec<Row> = (0..700)
        .step_by(97)
        .map(|number| row(format!("r{number:04}"), 900_000 - number))
        .collect();
    load(&mut writer, History::Analyses, &moved).await;
    let mut walk = Vec::new();
    for offset in (0..700).step_by(100) {
        walk.extend(ids(&service
            .get(&format!("/api/v1/hydrorisk?limit=100&offset={offset}"))
            .await));
    }
    for offset in [1, 63, 64, 65, 127, 128, 500, 639, 640, 693, 699] {
        let page = ids(&service
            .get(&format!("/api/v1/hydrorisk?limit=7&offset={offset}"))
            .await);
        assert_eq!(page, walk[offset..700.min(offset + 7)], "{offset}");
    }
}

#[tokio::test]
async fn total_and_rows_are_of_one_moment_while_loads_go_on() {
    let (service, mut writer) = empty().await;
    let loads = tokio::spawn(async move {
        for round in 1..=25 {
            load(&mut writer, History::Analyses, &rows(round * 10)).await;
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
