//! Files of different dates: the rows that a history keeps of them.

use water_database::writer::History::Analyses;

use crate::fixture::{Fixture, Row, day, load, row};

#[tokio::test]
async fn an_older_file_never_reverts_a_row_and_an_equal_or_later_one_overwrites_it() {
    let mut fixture = Fixture::new().await;
    let version = "SELECT version FROM water.datasets WHERE name = 'analyses'";
    // Score and date of a file, how many rows it updates and how many are older, the stored score.
    for (score, as_of, expected) in [
        (1.0, 5, (0, 0, "1")),
        (2.0, 4, (0, 1, "1")),
        (3.0, 5, (1, 0, "3")),
        (4.0, 6, (1, 0, "4")),
        // The file confirms the row: a later date, and no version.
        (4.0, 8, (0, 0, "4")),
        // An older file with the same row confirms nothing.
        (4.0, 6, (0, 1, "4")),
        (5.0, 7, (0, 1, "4")),
    ] {
        let before = fixture.sql(version);
        let rows = [row("acme", 1, day(1)).score(score)];
        let outcome = fixture.load_as(Analyses, &rows, day(as_of), &load()).await;
        let outcome = outcome.unwrap();
        let stored = fixture.sql("SELECT score FROM water.analyses");
        let seen = (outcome.updated, outcome.older, &*stored);
        assert_eq!(seen, expected, "{score} of day {as_of}");
        let is_new = outcome.inserted + outcome.updated > 0;
        assert_eq!(fixture.sql(version) != before, is_new, "day {as_of}");
    }
    // Rows stored before dates were recorded are the oldest.
    fixture.sql("UPDATE water.analyses SET as_of = NULL");
    let rows = [row("acme", 1, day(1)).score(6.0)];
    let outcome = fixture.load_as(Analyses, &rows, day(1), &load()).await;
    assert_eq!(outcome.unwrap().updated, 1);
}

#[tokio::test]
async fn a_file_confirms_the_rows_of_its_account_only() {
    let mut fixture = Fixture::new().await;
    let rows = ["acme", "other"].map(|account| row(account, 1, day(1)));
    for (rows, as_of) in [(&rows[..], 5), (&rows[..1], 8)] {
        let loaded = fixture.load_as(Analyses, rows, day(as_of), &load()).await;
        loaded.unwrap();
    }
    let changed = rows.map(|row| row.score(2.0));
    let outcome = fixture.load_as(Analyses, &changed, day(6), &load()).await;
    let outcome = outcome.unwrap();
    assert_eq!((outcome.updated, outcome.older), (1, 1));
}

#[tokio::test]
async fn an_older_file_that_moves_a_row_leaves_the_pages_right() {
    let mut fixture = Fixture::new().await;
    let mut rows: Vec<Row> = (0..70).map(|id| row("acme", id, day(id))).collect();
    let loaded = fixture.load_as(Analyses, &rows, day(5), &load()).await;
    loaded.unwrap();
    let moved = [row("acme", 3, day(90)), row("acme", 70, day(70))];
    let outcome = fixture.load_as(Analyses, &moved, day(4), &load()).await;
    let outcome = outcome.unwrap();
    assert_eq!((outcome.inserted, outcome.older), (1, 1));
    rows.push(moved[1].clone());
    fixture.assert_pages("acme", rows).await;
}
