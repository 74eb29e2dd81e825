//! Changes since a token: rows and deletions in both forms, and a client that follows.

use std::collections::BTreeMap;

use serde_json::Value;
use water_database::writer::History;
use water_kit::{Loader, Running, day, load, row, rows};

use crate::bulk::{full_walk, ids, served, walk};
use crate::{ANALYSES, bulk, empty, link, token};

/// Target for the changes since a token.
pub fn since(token: &str) -> String {
    format!("/api/v1/hydrorisk?changedSince={token}")
}

async fn delete(loader: &mut Loader, ids: &[&str]) {
    let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
    let (acme, load) = ("acme".parse().unwrap(), load());
    let deleted = loader
        .delete(History::Analyses, &acme, &ids, day(-1), &load)
        .await;
    assert_eq!(deleted.unwrap().removed, ids.len() as u64);
}

#[tokio::test]
async fn changes_are_reported_in_both_forms() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(9)).await;
    let token = token(&bulk(&service, ANALYSES, "csv").await);
    let changed = row("r0003", 3000).score(9.25);
    loader.history(History::Analyses, &[changed]).await;
    delete(&mut loader, &["r0001"]).await;
    let csv = bulk(&service, &since(&token), "csv").await;
    assert_eq!(
        csv.text().unwrap(),
        "id,companyName,sectorCode,deptCode,globalScore,rating,createdAt,deleted\r\n\
         r0003,Eaux de l'Hérault,36.00Z,34,9.25,B+,2026-01-01T00:00:03.000Z,false\r\n\
         r0001,,,,,,,true\r\n"
    );
    let ndjson = bulk(&service, &since(&token), "ndjson").await;
    let lines: Vec<_> = ndjson.text().unwrap().lines().collect();
    assert!(lines[0].starts_with(r#"{"id":"r0003","#), "{lines:?}");
    assert_eq!(lines[1..], [r#"{"deleted":{"id":"r0001"}}"#]);
    // The number of all rows is not that of the changes.
    for page in [csv, ndjson] {
        assert_eq!(page.header("x-total-count"), None);
    }
}

#[tokio::test]
async fn nothing_changed_is_an_empty_page_with_a_token_to_go_on_with() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(9)).await;
    let first = token(&bulk(&service, ANALYSES, "csv").await);
    let nothing = bulk(&service, &since(&first), "csv").await;
    assert_eq!((ids(&nothing).len(), link(&nothing, "next")), (0, None));
    loader.history(History::Analyses, &[row("new", 1)]).await;
    let changes = bulk(&service, &since(&token(&nothing)), "csv").await;
    assert_eq!(ids(&changes), ["new"]);
}

#[tokio::test]
async fn many_changes_come_page_by_page() {
    let (service, mut loader) = empty().await;
    let first = token(&bulk(&service, ANALYSES, "csv").await);
    loader.history(History::Analyses, &rows(1234)).await;
    let target = format!("{}&limit=500", since(&first));
    let mut pages = vec![served(&service, &target, "csv").await];
    loader.history(History::Analyses, &[row("later", 1)]).await;
    let next = link(&pages[0], "next").unwrap();
    pages.extend(full_walk(&service, &next, "csv", 500).await);
    let met: Vec<_> = pages.iter().map(ids).collect();
    let expected: Vec<_> = rows(1234).into_iter().map(|row| row.id).collect();
    assert_eq!(met.concat(), expected);
    // The state is that of the beginning, whichever page has the token.
    for page in [&pages[0], pages.last().unwrap()] {
        let changes = bulk(&service, &since(&token(page)), "csv").await;
        assert_eq!(ids(&changes), ["later"]);
    }
}

/// A client's copy of `acme`'s analyses: scores by id.
type Copy = BTreeMap<String, f64>;

/// Walks to the end, and returns the token for the next walk.
async fn follow(service: &Running, target: &str, copy: &mut Copy) -> String {
    let pages = walk(service, target, "ndjson").await;
    for line in pages.iter().flat_map(|page| page.text().unwrap().lines()) {
        let line: Value = serde_json::from_str(line).unwrap();
        match line["deleted"]["id"].as_str() {
            Some(id) => {
                copy.remove(id);
            }
            None => {
                let id = line["id"].as_str().unwrap().to_owned();
                copy.insert(id, line["globalScore"].as_f64().unwrap());
            }
        }
    }
    token(pages.last().unwrap())
}

/// Loads, changes and deletes.
async fn churn(mut loader: Loader) {
    for round in 0..20 {
        let some = (0..200).map(|n| (round * 37 + n * 11) % 3000);
        let some: Vec<_> = some.map(|n| format!("c{n:04}")).collect();
        let rows = some.iter().map(|id| row(id, 1).score(f64::from(round)));
        loader
            .history(History::Analyses, &rows.collect::<Vec<_>>())
            .await;
        let gone: Vec<_> = some.iter().step_by(3).map(String::as_str).collect();
        delete(&mut loader, &gone).await;
    }
}

#[tokio::test]
async fn a_client_that_follows_changes_has_what_a_new_walk_has() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(3000)).await;
    let mut copy = Copy::new();
    let mut token = follow(&service, "/api/v1/hydrorisk?limit=500", &mut copy).await;
    let churning = tokio::spawn(churn(loader));
    let mut ended = false;
    while !ended {
        ended = churning.is_finished();
        token = follow(&service, &format!("{}&limit=100", since(&token)), &mut copy).await;
    }
    churning.await.unwrap();
    let mut fresh = Copy::new();
    follow(&service, "/api/v1/hydrorisk?limit=5000", &mut fresh).await;
    assert_eq!(copy, fresh);
}
