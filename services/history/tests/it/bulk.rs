//! Pages as CSV and NDJSON: what they say, how they follow each other, how they travel.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;
use water_database::writer::History;
use water_harness::Answer;

use crate::fixture::{Row, Running, bulk, empty, link, load, row, rows, token};

const ALL: &str = "/api/v1/hydrorisk";

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

/// All pages from this one on.
pub async fn walk(service: &Running, target: &str, form: &str) -> Vec<Answer> {
    let mut pages = vec![bulk(service, target, form).await];
    while let Some(next) = link(pages.last().unwrap(), "next") {
        pages.push(bulk(service, &next, form).await);
    }
    pages
}

#[tokio::test]
async fn csv_has_a_header_line_and_cells_as_they_are_in_json() {
    let (service, mut writer) = empty().await;
    let company = "Eaux, \"Sud\"; =1+1";
    let quoted = Row {
        company,
        score: 3.0,
        ..row("a-1", 5)
    };
    load(
        &mut writer,
        History::Analyses,
        &[quoted.clone(), row("a-2", 0)],
    )
    .await;
    load(&mut writer, History::Audits, &[quoted]).await;
    assert_eq!(
        bulk(&service, ALL, "csv").await.text().unwrap(),
        "id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\r\n\
         a-1,\"Eaux, \"\"Sud\"\"; =1+1\",36.00Z,34,3,B+,2026-01-01T00:00:00.005Z\r\n\
         a-2,Eaux de l'Hérault,36.00Z,34,61.5,B+,2026-01-01T00:00:00.000Z\r\n"
    );
    let audits = bulk(&service, "/api/v1/conformite", "csv").await;
    let header = "id,companyName,sectorCode,deptCode,score,globalRating,createdAt\r\na-1,";
    assert!(audits.text().unwrap().starts_with(header), "{audits:?}");
}

#[tokio::test]
async fn ndjson_has_the_records_of_json_one_a_line() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Audits, &rows(20)).await;
    let json = service.get("/api/v1/conformite").await.json().unwrap();
    let mut records = json["data"].as_array().unwrap().clone();
    records.reverse();
    let page = bulk(&service, "/api/v1/conformite", "ndjson").await;
    let lines = page.text().unwrap().lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, records);
    assert!(page.body.ends_with(b"}\n"));
    let fields = concat!(
        r#"{"id":"r0000","companyName":"Eaux de l'Hérault","sectorCode":"36.00Z","deptCode":"34","#,
        r#""score":61.5,"globalRating":"B+","createdAt":"2026-01-01T00:00:00.000Z"}"#
    );
    assert_eq!(page.text().unwrap().lines().next(), Some(fields));
}

#[tokio::test]
async fn following_next_meets_each_row_once_and_only_the_first_page_has_a_token() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(2345)).await;
    for (target, form, sizes) in [
        (ALL, "csv", vec![1000, 1000, 345]),
        ("/api/v1/hydrorisk?limit=469", "ndjson", vec![469; 5]),
        ("/api/v1/hydrorisk?limit=9999", "csv", vec![2345]),
    ] {
        let pages = walk(&service, target, form).await;
        let met: Vec<_> = pages.iter().map(ids).collect();
        assert_eq!(met.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
        let expected: Vec<_> = rows(2345).into_iter().map(|row| row.id).collect();
        assert_eq!(met.concat(), expected);
        let tokens = pages.iter().map(|page| page.header("x-changes-token"));
        let tokens: Vec<_> = tokens.map(|token| token.is_some()).collect();
        assert!(tokens[0] && !tokens[1..].contains(&true), "{tokens:?}");
    }
}

#[tokio::test]
async fn a_page_shows_the_limit_that_was_applied_in_its_link() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(5001)).await;
    let page = bulk(
        &service,
        "/api/v1/hydrorisk?limit=6000&other=dropped",
        "csv",
    )
    .await;
    assert_eq!(ids(&page).len(), 5000);
    let next = link(&page, "next").unwrap();
    assert!(
        next.starts_with("/api/v1/hydrorisk?limit=5000&cursor="),
        "{next}"
    );
    assert_eq!(
        link(&page, "describedby").as_deref(),
        Some("/api/v1/sources")
    );
}

#[tokio::test]
async fn a_page_of_long_rows_ends_before_900_kib_and_never_inside_a_row() {
    let (service, mut writer) = empty().await;
    let company = &*"é".repeat(300).leak();
    let long = rows(4000).into_iter().map(|row| Row { company, ..row });
    let long: Vec<_> = long.collect();
    load(&mut writer, History::Analyses, &long).await;
    for form in ["csv", "ndjson"] {
        let pages = walk(&service, "/api/v1/hydrorisk?limit=5000", form).await;
        let sizes: Vec<_> = pages.iter().map(|page| page.body.len()).collect();
        let (last, others) = sizes.split_last().unwrap();
        assert!(*last < 900 * 1024 && others.len() > 1);
        for size in others {
            assert!((890 * 1024..=900 * 1024).contains(size), "{sizes:?}");
        }
        let met: Vec<_> = pages.iter().flat_map(ids).collect();
        assert!(met.iter().eq(long.iter().map(|row| &row.id)));
    }
}

#[tokio::test]
async fn an_account_without_rows_has_an_empty_page_and_a_token() {
    let (service, mut writer) = empty().await;
    load(
        &mut writer,
        History::Analyses,
        &[Row {
            account: "other",
            ..row(1, 1)
        }],
    )
    .await;
    let csv = bulk(&service, ALL, "csv").await;
    let header = "id,companyName,sectorCode,deptCode,globalScore,rating,createdAt\r\n";
    assert_eq!(csv.text().unwrap(), header);
    let ndjson = bulk(&service, ALL, "ndjson").await;
    assert_eq!((ndjson.status, ndjson.body.len()), (200, 0));
    assert_eq!((link(&csv, "next"), token(&csv).is_empty()), (None, false));
}

#[tokio::test]
async fn forms_have_their_own_type_and_tag_and_are_not_sent_again() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(9)).await;
    let mut tags = vec![service.get(ALL).await.header("etag").unwrap().to_owned()];
    for (form, kind) in [
        ("csv", "text/csv; charset=utf-8; header=present"),
        ("ndjson", "application/x-ndjson"),
    ] {
        let page = bulk(&service, ALL, form).await;
        assert_eq!(page.header("content-type"), Some(kind));
        assert_eq!(page.header("cache-control"), Some("private, no-cache"));
        let tag = page.header("etag").unwrap().to_owned();
        let headers = [("X-Water-Format", form), ("If-None-Match", tag.as_str())];
        let known = service.request("GET", ALL, &headers).await;
        assert_eq!((known.status, known.body.len()), (304, 0));
        assert!(known.header("x-changes-token").is_some());
        tags.push(tag);
    }
    tags.dedup();
    assert_eq!(tags.len(), 3);
}

#[tokio::test]
async fn a_page_is_coded_when_asked_and_reads_the_same() {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(5000)).await;
    let target = "/api/v1/hydrorisk?limit=5000";
    let plain = bulk(&service, target, "csv").await;
    let headers = [("X-Water-Format", "csv"), ("Accept-Encoding", "gzip")];
    let gzip = service.request("GET", target, &headers).await;
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    let mut read = Vec::new();
    GzDecoder::new(gzip.body.as_ref())
        .read_to_end(&mut read)
        .unwrap();
    assert_eq!(read, plain.body);
}
