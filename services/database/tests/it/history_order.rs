//! Files of different dates, repeated rows, purged accounts: what a history keeps of them.

use std::time::Duration;

use tokio::time::timeout;
use water_database::history;
use water_database::writer::History::Analyses;
use water_database::writer::Purged;

use crate::fixture::{Fixture, Row, account, batch, day, load, page, row};

impl Fixture {
    /// Loads one row, `acme 1`, and returns how many were updated and older, and the stored score.
    async fn scored(&mut self, score: f64, as_of: i64) -> (u64, u64, String) {
        let rows = [row("acme", 1, day(1)).score(score)];
        let outcome = self
            .load_as(Analyses, &rows, day(as_of), &load())
            .await
            .unwrap();
        let stored = self.sql("SELECT score FROM water.analyses");
        (outcome.updated, outcome.older, stored)
    }

    async fn pages_are_whole(&self, rows: &[Row]) {
        let slice = history::analyses(&self.reader, &account("acme"), page(100, 0))
            .await
            .unwrap();
        assert_eq!(slice.total, rows.len() as u64);
        let mut wanted: Vec<_> = rows.iter().map(|row| (row.created_at, &row.id)).collect();
        wanted.sort_by(|one, other| other.cmp(one));
        let found: Vec<_> = slice
            .rows
            .iter()
            .map(|row| (row.created_at, &row.id))
            .collect();
        assert_eq!(found, wanted);
    }
}

#[tokio::test]
async fn an_older_file_never_reverts_a_row_and_an_equal_one_overwrites_it() {
    let mut fixture = Fixture::new().await;
    fixture.scored(1.0, 5).await;
    assert_eq!(fixture.scored(2.0, 4).await, (0, 1, "1".to_owned()));
    assert_eq!(fixture.scored(3.0, 5).await, (1, 0, "3".to_owned()));
    assert_eq!(fixture.scored(4.0, 6).await, (1, 0, "4".to_owned()));
}

#[tokio::test]
async fn a_file_that_confirms_a_row_raises_its_date_and_no_version() {
    let mut fixture = Fixture::new().await;
    fixture.scored(1.0, 5).await;
    let version = "SELECT version FROM water.datasets WHERE name = 'analyses'";
    let before = fixture.sql(version);
    assert_eq!(fixture.scored(1.0, 7).await, (0, 0, "1".to_owned()));
    assert_eq!(fixture.sql(version), before);
    assert_eq!(fixture.scored(2.0, 6).await, (0, 1, "1".to_owned()));
}

#[tokio::test]
async fn rows_from_before_the_dates_are_the_oldest() {
    let mut fixture = Fixture::new().await;
    fixture.scored(1.0, 5).await;
    fixture.sql("UPDATE water.analyses SET as_of = NULL");
    assert_eq!(fixture.scored(2.0, 1).await, (1, 0, "2".to_owned()));
}

#[tokio::test]
async fn an_older_file_that_moves_a_row_leaves_the_pages_right() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..70).map(|id| row("acme", id, day(id))).collect();
    fixture
        .load_as(Analyses, &rows, day(5), &load())
        .await
        .unwrap();
    let moved = [row("acme", 3, day(90)), row("acme", 70, day(70))];
    let outcome = fixture
        .load_as(Analyses, &moved, day(4), &load())
        .await
        .unwrap();
    assert_eq!((outcome.inserted, outcome.older), (1, 1));
    let rows = [rows, moved[1..].to_vec()].concat();
    fixture.pages_are_whole(&rows).await;
}

#[tokio::test]
async fn a_record_that_is_repeated_many_times_costs_no_more_than_as_many_rows() {
    let mut fixture = Fixture::new().await;
    let rows = vec![row("acme", 1, day(1)); 40_000];
    // All pairs of them would take minutes.
    let loaded = timeout(Duration::from_secs(20), fixture.load(Analyses, &rows)).await;
    assert_eq!(loaded.unwrap().unwrap().inserted, 1);
}

#[tokio::test]
async fn rows_that_wait_hold_no_snapshot() {
    let mut fixture = Fixture::new().await;
    let rows: Vec<Row> = (0..100).map(|id| row("acme", id, day(id))).collect();
    let mut staging = fixture.writer.stage(Analyses).await.unwrap();
    staging.push(batch(&rows, 2)).await.unwrap();
    let holding = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'water_writer' \
                   AND datname = current_database() \
                   AND (backend_xmin IS NOT NULL OR xact_start IS NOT NULL)";
    let held = fixture.postgres.sql(fixture.own.name(), holding).unwrap();
    assert_eq!(held, "0");
    let outcome = staging.finish(day(1), &load()).await.unwrap();
    assert_eq!((outcome.rows, outcome.inserted), (100, 100));
}

#[tokio::test]
async fn a_purged_account_stays_away_until_its_purge_is_lifted() {
    let mut fixture = Fixture::new().await;
    let acme = account("acme");
    let rows = [row("acme", 1, day(1)), row("other", 1, day(1))];
    fixture.load(Analyses, &rows).await.unwrap();
    let purged = fixture
        .writer
        .purge(&acme, "somebody", false)
        .await
        .unwrap();
    let one = Purged {
        analyses: 1,
        audits: 0,
    };
    assert_eq!(purged, one);
    let noted =
        "SELECT purged_by, analyses, audits, account_sha256 = sha256('acme') FROM water.purges";
    assert_eq!(fixture.sql(noted), "somebody|1|0|t");
    let again = fixture.load(Analyses, &rows).await.unwrap();
    assert_eq!((again.inserted, again.purged, again.unchanged()), (0, 1, 1));
    assert!(!fixture.dump().contains("acme"));
    assert!(fixture.writer.lift_purge(&acme).await.unwrap());
    assert!(!fixture.writer.lift_purge(&acme).await.unwrap());
    let back = fixture.load(Analyses, &rows).await.unwrap();
    assert_eq!((back.inserted, back.purged), (1, 0));
}
