//! Deleting single rows: the rows removed, totals and pages afterwards, and the files that bring rows back.

use water_database::writer::History::{Analyses, Audits};
use water_database::writer::{DeletionOutcome, Load};

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
        fixture.load(Analyses, rows).await;
        fixture
    }

    async fn deleted(&mut self, ids: &[&str], load: &Load) -> DeletionOutcome {
        let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        let acme = account("acme");
        let deleted = self.writer.delete(Analyses, &acme, &ids, day(-1), load);
        let deleted = deleted.await;
        deleted.unwrap()
    }
}

#[tokio::test]
async fn ids_that_are_not_there_are_named_and_the_others_deleted() {
    let mut fixture = Fixture::with(&rows()).await;
    let others = [row("other", "x", day(1))];
    fixture.load(Analyses, &others).await;
    let audits = [row("acme", "audit", day(1))];
    fixture.load(Audits, &audits).await;
    let deleted = fixture
        .deleted(&["x", "005", "audit", "005", "nothing"], &load())
        .await;
    let unknown = ["audit", "nothing", "x"].map(str::to_owned).to_vec();
    let expected = DeletionOutcome {
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
async fn a_file_as_old_as_a_deletion_or_older_brings_no_row_back_however_long_ago_that_was() {
    let mut fixture = Fixture::with(&rows()).await;
    let (acme, ids, written) = (account("acme"), ["005".to_owned()], load());
    let deleted = fixture
        .writer
        .delete(Analyses, &acme, &ids, day(2), &written);
    assert_eq!(deleted.await.unwrap().removed, 1);
    fixture.sql("UPDATE water.analyses_deletions SET deleted_at = now() - interval '9 years'");
    let stored = "SELECT count(*) FROM water.analyses WHERE id = '005'";
    let dry = Load {
        dry_run: true,
        ..load()
    };
    let file = &rows()[4..7];
    for as_of in [1, 2] {
        for load in [&dry, &written] {
            let again = fixture.load_as(Analyses, file, day(as_of), load).await;
            let again = again.unwrap();
            assert_eq!((again.inserted, again.older), (0, 1), "{as_of}");
        }
        assert_eq!(fixture.sql(stored), "0");
    }
    // Deleted again, though it is not there; an earlier moment takes nothing back.
    for as_of in [4, 1] {
        let again = fixture
            .writer
            .delete(Analyses, &acme, &ids, day(as_of), &written)
            .await;
        assert_eq!(again.unwrap().removed, 0);
    }
    for (as_of, inserted) in [(3, 0), (4, 0), (5, 1)] {
        let later = fixture.load_as(Analyses, file, day(as_of), &written).await;
        assert_eq!(later.unwrap().inserted, inserted, "{as_of}");
    }
    assert_eq!(fixture.sql(stored), "1");
    let earlier = fixture
        .writer
        .delete(Analyses, &acme, &ids, day(2), &written)
        .await;
    assert_eq!(earlier.unwrap().removed, 1);
    let older = fixture.load_as(Analyses, file, day(4), &written).await;
    assert_eq!(older.unwrap().inserted, 0);
}

#[tokio::test]
async fn a_deletion_keeps_out_rows_of_its_account_only() {
    let rows = ["acme", "other"].map(|account| row(account, "000", day(0)));
    let mut fixture = Fixture::with(&rows[..1]).await;
    assert_eq!(fixture.deleted(&["000"], &load()).await.removed, 1);
    let outcome = fixture.load_as(Analyses, &rows, day(-1), &load()).await;
    let outcome = outcome.unwrap();
    assert_eq!((outcome.inserted, outcome.older), (1, 1));
}

#[tokio::test]
async fn a_purge_takes_the_deletions_along() {
    let mut fixture = Fixture::with(&rows()).await;
    fixture.delete(&["000"]).await;
    let remembered = "SELECT id FROM water.analyses_deletions";
    assert_eq!(fixture.sql(remembered), "000");
    let acme = account("acme");
    fixture.writer.purge(&acme, "nobody", false).await.unwrap();
    assert_eq!(fixture.sql(remembered), "");
}
