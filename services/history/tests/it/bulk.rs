//! Pages as CSV and NDJSON: their records, their links, their forms.

use serde_json::Value;
use water_database::writer::History;
use water_harness::Answer;
use water_kit::{Row, Running, row, rows};

use crate::{ANALYSES, AUDITS, bulk, empty, link, token};

/// Times that a page is asked for again, which the service could not read in time on a busy machine.
const REPEATS: usize = 4;

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
    let (mut pages, mut next) = (Vec::new(), Some(target.to_owned()));
    while let Some(target) = next {
        let page = served(service, &target, form).await;
        next = link(&page, "next");
        pages.push(page);
    }
    pages
}

/// Reads all pages from this one on. Each but the last has `limit` rows.
pub async fn full_walk(service: &Running, target: &str, form: &str, limit: usize) -> Vec<Answer> {
    let pages = walk(service, target, form).await;
    let (_, others) = pages.split_last().unwrap();
    for page in others {
        assert_eq!(ids(page).len(), limit);
    }
    pages
}

/// Requests a page, again where it is refused because it took too long.
pub async fn served(service: &Running, target: &str, form: &str) -> Answer {
    let mut page = bulk(service, target, form).await;
    for _ in 0..REPEATS {
        let slow = page.status == 503 && page.text().unwrap().contains("in time");
        if !slow {
            break;
        }
        page = bulk(service, target, form).await;
    }
    page
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

/// Characters at which Python's `str.splitlines` ends a line.
const LINE_ENDS: [char; 10] = [
    '\n', '\u{b}', '\u{c}', '\r', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}',
];

#[tokio::test]
async fn a_record_is_one_line_whatever_line_ends_a_reader_counts() {
    let (service, mut loader) = empty().await;
    let company = "Eaux\u{2028}du\u{2029}Sud\u{85}A\u{b}B\u{c}C\u{1c}D\u{1d}E\u{1e}F\r\nG";
    let analyses = [row("a-1", 0).company(company), row("a-2", 5)];
    loader.history(History::Analyses, &analyses).await;
    let json = service.get(ANALYSES).await;
    let body: Value = serde_json::from_str(json.text().unwrap()).unwrap();
    assert!(!json.text().unwrap().contains(LINE_ENDS), "{json:?}");
    assert_eq!(body["data"][1]["companyName"], company);
    let ndjson = bulk(&service, ANALYSES, "ndjson").await;
    let lines = ndjson.text().unwrap().split_terminator(LINE_ENDS);
    let records: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records, [body["data"][1].clone(), body["data"][0].clone()]);
    let csv = bulk(&service, ANALYSES, "csv").await;
    let rows = rows_of_lines(csv.text().unwrap());
    let (first, second) = (&rows[1], &rows[2]);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(first.starts_with(&format!("a-1,\"{company}\",36.00Z,")) && second.starts_with("a-2,"));
}

/// Joins lines to rows as a reader of CSV does that is given lines: while a quote is open, the row goes on.
fn rows_of_lines(csv: &str) -> Vec<String> {
    let (mut rows, mut row) = (Vec::new(), String::new());
    for line in csv.split_inclusive(LINE_ENDS) {
        row.push_str(line);
        if row.matches('"').count() % 2 == 1 {
            continue;
        }
        let row = std::mem::take(&mut row);
        // The LF of a CRLF is a line of its own here.
        if row != "\n" {
            rows.push(row);
        }
    }
    rows
}

#[tokio::test]
async fn following_next_meets_each_row_once_and_each_page_has_a_token_and_the_first_the_total() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(5345)).await;
    for (query, form, limit) in [
        ("", "csv", 1000),
        ("?limit=1069", "ndjson", 1069),
        ("?limit=9999&_=dropped", "csv", 5000),
    ] {
        let pages = full_walk(&service, &format!("{ANALYSES}{query}"), form, limit).await;
        let met: Vec<_> = pages.iter().map(ids).collect();
        let expected: Vec<_> = rows(5345).into_iter().map(|row| row.id).collect();
        assert_eq!(met.concat(), expected);
        for page in &pages {
            assert!(page.header("x-changes-token").is_some(), "{page:?}");
        }
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
        let pages = walk(&service, "/api/v1/hydrorisk?limit=5000", form).await;
        let (last, others) = pages.split_last().unwrap();
        assert!(last.body.len() <= 900 * 1024 && others.len() > 1);
        for page in others {
            let size = page.body.len();
            assert!((890 * 1024..=900 * 1024).contains(&size), "{size} bytes");
        }
        let met: Vec<_> = pages.iter().flat_map(ids).collect();
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
