//! Deleting single rows: what goes, what stays right, and how long it is remembered.

use water_database::writer::History::{Analyses, Audits};
use water_database::writer::{Deleted, Load};

use crate::fixture::{Fixture, Row, account, day, load, row};

/// 200 rows of `acme`, one a day.
fn rows() -> Vec<Row> {
    (0..200)
        .map(|id| row("acme", format!("{id:03}"), day(id)))
        .collect()
}

impl Fixture {
    async fn with(rows: &[Row]) -> Self {
        let mut fixture = Self::new().await;
        fixture.load(Analyses, rows).await.unwrap();
        fixture
    }

    async fn deleted(&mut self, ids: &[&str], load: &Load) -> Deleted {
        let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        let acme = account("acme");
        let deleted = self.writer.delete(Analyses, &acme, &ids, load).await;
        deleted.unwrap()
    }
}

#[tokio::test]
async fn pages_stay_right_when_old_and_new_rows_are_deleted() {
    let mut rows = rows();
    let mut fixture = Fixture::with(&rows).await;
    for ids in [&["199", "198"][..], &["000"], &["064", "100", "101"]] {
        assert_eq!(fixture.delete(ids).await, ids.len() as u64);
        rows.retain(|row| !ids.contains(&row.id.as_str()));
        fixture.assert_pages("acme", rows.clone()).await;
    }
    let more = [row("acme", "new", day(50))];
    fixture.load(Analyses, &more).await.unwrap();
    rows.extend(more);
    fixture.assert_pages("acme", rows).await;
}

#[tokio::test]
async fn an_account_whose_last_row_is_deleted_has_an_empty_page() {
    let mut fixture = Fixture::with(&rows()[..1]).await;
    assert_eq!(fixture.delete(&["000"]).await, 1);
    fixture.assert_pages("acme", vec![]).await;
    let places = "SELECT count(*) FROM water.analyses_anchors";
    assert_eq!(fixture.sql(places), "0");
    fixture.load(Analyses, &rows()[..3]).await.unwrap();
    fixture.assert_pages("acme", rows()[..3].to_vec()).await;
}

#[tokio::test]
async fn ids_that_are_not_there_are_named_and_the_others_deleted() {
    let mut fixture = Fixture::with(&rows()).await;
    let others = [row("other", "x", day(1))];
    fixture.load(Analyses, &others).await.unwrap();
    fixture
        .load(Audits, &[row("acme", "audit", day(1))])
        .await
        .unwrap();
    let deleted = fixture
        .deleted(&["x", "005", "audit", "005", "nothing"], &load())
        .await;
    let unknown = ["audit", "nothing", "x"].map(str::to_owned).to_vec();
    let expected = Deleted {
        removed: 1,
        unknown,
    };
    assert_eq!(deleted, expected);
}

#[tokio::test]
async fn a_deletion_of_nothing_and_a_dry_run_change_nothing() {
    let mut fixture = Fixture::with(&rows()).await;
    let before = fixture.dump();
    assert_eq!(fixture.deleted(&["x"], &load()).await.removed, 0);
    let dry = Load {
        dry_run: true,
        ..load()
    };
    assert_eq!(fixture.deleted(&["000", "001"], &dry).await.removed, 2);
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn a_deletion_raises_the_version_and_is_noted() {
    let mut fixture = Fixture::with(&rows()).await;
    fixture.delete(&["000", "001"]).await;
    let version =
        "SELECT version, as_of = '2026-01-01' FROM water.datasets WHERE name = 'analyses'";
    assert_eq!(fixture.sql(version), "2|t");
    let noted = &fixture.writer.provenance(1).await.unwrap()[0];
    assert_eq!(
        (noted.rows, noted.inserted, noted.updated, noted.removed),
        (2, 0, 0, 2)
    );
    assert_eq!((noted.as_of, noted.dataset.as_str()), (None, "analyses"));
}

#[tokio::test]
async fn deletions_are_remembered_for_90_days_and_a_purge_takes_them_along() {
    let mut fixture = Fixture::with(&rows()).await;
    fixture.delete(&["000", "001"]).await;
    fixture.sql(
        "UPDATE water.analyses_deletions SET deleted_at = now() - interval '90 days' WHERE id = '000'; \
         UPDATE water.analyses_deletions SET deleted_at = now() - interval '92 days' WHERE id = '001'",
    );
    fixture.load(Analyses, &rows()[5..6]).await.unwrap();
    let remembered = "SELECT id FROM water.analyses_deletions";
    assert_eq!(fixture.sql(remembered), "000");
    let acme = account("acme");
    fixture.writer.purge(&acme, "nobody", false).await.unwrap();
    assert_eq!(fixture.sql(remembered), "");
}
