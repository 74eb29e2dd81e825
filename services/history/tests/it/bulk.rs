//! Pages as CSV and NDJSON: their records, their links, their forms.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use water_database::writer::History;
use water_harness::Answer;
use water_kit::{Row, Running, row, rows};

use crate::{ANALYSES, AUDITS, bulk, empty, link, token};

/// Rows that the service reads at once, and the time after which it ends a page with those that it has.
const PORTION: usize = 100;
const LONG: Duration = Duration::from_secs(1);

/// The ids of a page, in its order.
pub fn ids(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.text().unwrap();
    match answer.header("content-type") {
        Some("application/x-ndjson") => text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|record| record["id"].as_str().unwrap().to_owned())
            .collect(),
        _ => csv::Reader::from_reader(text.as_bytes())
            .records()
            .map(|record| record.unwrap()[0].to_owned())
            .collect(),
    }
}

/// Reads all pages from this one on.
pub async fn walk(service: &Running, target: &str, form: &str) -> Vec<Answer> {
    let pages = timed_walk(service, target, form).await;
    pages.into_iter().map(|(page, _)| page).collect()
}

/// Reads all pages from this one on. Each but the last has `limit` rows, unless it may have ended early.
pub async fn full_walk(service: &Running, target: &str, form: &str, limit: usize) -> Vec<Answer> {
    let pages = timed_walk(service, target, form).await;
    let (_, others) = pages.split_last().unwrap();
    for (page, took) in others {
        let rows = ids(page).len();
        let is_early = rows < limit && may_have_ended_early(rows, *took);
        assert!(rows == limit || is_early, "{rows} rows in {took:?}");
    }
    pages.into_iter().map(|(page, _)| page).collect()
}

/// Whether a page with so many rows may have ended after a portion, because it took long.
fn may_have_ended_early(rows: usize, took: Duration) -> bool {
    took >= LONG && rows.is_multiple_of(PORTION)
}

async fn timed_walk(service: &Running, target: &str, form: &str) -> Vec<(Answer, Duration)> {
    let (mut pages, mut next) = (Vec::new(), Some(target.to_owned()));
    while let Some(target) = next {
        let asked = Instant::now();
        let page = bulk(service, &target, form).await;
        next = link(&page, "next");
        pages.push((page, asked.elapsed()));
    }
    pages
}

#[tokio::test]
async fn csv_has_a_header_line_and_cells_as_they_are_in_json() {
    let (service, mut loader) = empty().await;
    let quoted = row("a-1", 5).company("Eaux, \"Sud\"; =1+1").score(3.0);
    let analyses = [quoted.clone(), row("a-2", 0)];
    loader.history(History::Analyses, &analyses).await;
    loader.history(History::Audits, &[quoted]).await;
    let csv = bulk(&service, ANALYSES, "csv").await;
    assert_eq!(
        csv.text().unwrap(),
        "id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\r\n\
         a-1,\"Eaux, \"\"Sud\"\"; =1+1\",36.00Z,34,3,B+,2026-01-01T00:00:00.005Z\r\n\
         a-2,Eaux de l'Hérault,36.00Z,34,61.5,B+,2026-01-01T00:00:00.000Z\r\n"
    );
    let kind = "text/csv; charset=utf-8; header=present";
    assert_eq!(csv.header("content-type"), Some(kind));
    let audits = bulk(&service, AUDITS, "csv").await;
    let header = "id,companyName,sectorCode,deptCode,score,globalRating,createdAt\r\na-1,";
    assert!(audits.text().unwrap().starts_with(header), "{audits:?}");
}

#[tokio::test]
async fn ndjson_has_the_records_of_json_one_a_line() {
    let (service, mut loader) = empty().await;
    for (path, history) in [(ANALYSES, History::Analyses), (AUDITS, History::Audits)] {
        loader.history(history, &rows(20)).await;
        let json = service.get(path).await;
        let (_, records) = json.text().unwrap().split_once("\"data\":[").unwrap();
        let records = records.strip_suffix("]}").unwrap().replace("},{", "}\n{");
        let mut newest_first: Vec<&str> = records.lines().collect();
        newest_first.reverse();
        let page = bulk(&service, path, "ndjson").await;
        let lines = page.text().unwrap();
        assert_eq!(lines, format!("{}\n", newest_first.join("\n")));
    }
}

#[tokio::test]
async fn following_next_meets_each_row_once_and_only_the_first_page_has_a_token_and_the_total() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(5345)).await;
    for (query, form, limit) in [
        ("", "csv", 1000),
        ("?limit=1069", "ndjson", 1069),
        ("?limit=9999&other=dropped", "csv", 5000),
    ] {
        let pages = full_walk(&service, &format!("{ANALYSES}{query}"), form, limit).await;
        let met: Vec<_> = pages.iter().map(ids).collect();
        let expected: Vec<_> = rows(5345).into_iter().map(|row| row.id).collect();
        assert_eq!(met.concat(), expected);
        let tokens = pages.iter().map(|page| page.header("x-changes-token"));
        let tokens: Vec<_> = tokens.map(|token| token.is_some()).collect();
        assert!(tokens[0] && !tokens[1..].contains(&true), "{tokens:?}");
        let totals = pages.iter().map(|page| page.header("x-total-count"));
        let totals: Vec<_> = totals.collect();
        assert_eq!(totals[0], Some("5345"));
        assert!(totals[1..].iter().all(Option::is_none), "{totals:?}");
        let sources = link(&pages[0], "describedby");
        assert_eq!(sources.as_deref(), Some("/api/v1/sources"));
        let next = link(&pages[0], "next").unwrap();
        let applied = format!("/api/v1/hydrorisk?limit={limit}&cursor=");
        assert!(next.starts_with(&applied), "{next}");
    }
}

#[tokio::test]
async fn links_name_the_form_where_the_query_names_it() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(9)).await;
    for form in ["csv", "ndjson"] {
        let pages = walk(&service, &format!("{ANALYSES}?limit=4&format={form}"), form).await;
        let met: Vec<_> = pages.iter().flat_map(ids).collect();
        assert_eq!((pages.len(), met.len()), (3, 9));
        let next = link(&pages[0], "next").unwrap();
        assert!(next.ends_with(&format!("&format={form}")), "{next}");
    }
    let page = bulk(
        &service,
        "/api/v1/hydrorisk?limit=4&offset=4&format=json",
        "json",
    )
    .await;
    for (relation, offset) in [("first", 0), ("prev", 0), ("next", 8), ("last", 8)] {
        let expected = format!("{ANALYSES}?limit=4&offset={offset}&format=json");
        assert_eq!(link(&page, relation), Some(expected));
    }
}

#[tokio::test]
async fn a_page_of_long_rows_ends_before_900_kib_and_never_inside_a_row() {
    let (service, mut loader) = empty().await;
    let company = &*"é".repeat(300).leak();
    let long = rows(4000).into_iter().map(|row| row.company(company));
    let long: Vec<Row> = long.collect();
    loader.history(History::Analyses, &long).await;
    for form in ["csv", "ndjson"] {
        let pages = timed_walk(&service, "/api/v1/hydrorisk?limit=5000", form).await;
        let ((last, _), others) = pages.split_last().unwrap();
        assert!(last.body.len() <= 900 * 1024 && others.len() > 1);
        for (page, took) in others {
            let (size, rows) = (page.body.len(), ids(page).len());
            let is_full = size >= 890 * 1024 || may_have_ended_early(rows, *took);
            let report = format!("{size} bytes, {rows} rows in {took:?}");
            assert!(size <= 900 * 1024 && is_full, "{report}");
        }
        let met: Vec<_> = pages.iter().flat_map(|(page, _)| ids(page)).collect();
        assert!(met.iter().eq(long.iter().map(|row| &row.id)));
    }
}

#[tokio::test]
async fn an_account_without_rows_has_an_empty_page_and_a_token() {
    let (service, mut loader) = empty().await;
    let theirs = row(1, 1).account("other");
    loader.history(History::Analyses, &[theirs]).await;
    let csv = bulk(&service, ANALYSES, "csv").await;
    let header = "id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\r\n";
    assert_eq!(csv.text().unwrap(), header);
    let ndjson = bulk(&service, ANALYSES, "ndjson").await;
    assert_eq!((ndjson.status, ndjson.body.len()), (200, 0));
    assert_eq!((link(&csv, "next"), token(&csv).is_empty()), (None, false));
}

#[tokio::test]
async fn a_page_that_the_client_has_is_not_sent_again_and_its_token_is() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(9)).await;
    let page = bulk(&service, ANALYSES, "csv").await;
    assert_eq!(page.header("cache-control"), Some("private, no-cache"));
    let tag = page.header("etag").unwrap();
    let headers = [("X-Water-Format", "csv"), ("If-None-Match", tag)];
    let known = service.request("GET", ANALYSES, &headers).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert!(known.header("x-changes-token").is_some());
}
