//! Each migration is compatible with the version before: its services go on reading, and what its
//! loader writes keeps the promises of this version. Their statements are kept as they were.

use water_database::migrations;
use water_database::walk::{Start, Walk, WalkError};
use water_database::writer::History::{Analyses, Audits};
use water_domain::Level;

use crate::fixture::{Fixture, Row, account, day, load, risk, row, stress};
use crate::walks::Told;

/// What takes the schema back to the version before; the data stays.
pub const BACK_TO_V2: &str = "DELETE FROM water.migrations WHERE version > 2; \
    DROP INDEX water.analyses_changes, water.audits_changes, water.loads_by_dataset, water.purges_by_account; \
    DROP VIEW water.sources, water.last_purges; \
    ALTER TABLE water.loads DROP COLUMN licence, DROP COLUMN source_url; \
    DROP TABLE water.analyses_deletions, water.audits_deletions; \
    DROP FUNCTION water.stamp_version CASCADE; \
    ALTER TABLE water.analyses DROP COLUMN version; ALTER TABLE water.audits DROP COLUMN version";

/// What takes the second version of the schema back to the first.
pub const BACK_TO_V1: &str = "DELETE FROM water.migrations WHERE version > 1; \
    DROP TABLE water.levels, water.purges; \
    ALTER TABLE water.analyses DROP COLUMN as_of; ALTER TABLE water.audits DROP COLUMN as_of";

/// What the services of each version of the schema ask that was or is in use.
const READER_V1: &str = include_str!("former/reader_v1.sql");
const READER_V2: &str = include_str!("former/reader_v2.sql");
const READER_V4: &str = include_str!("former/reader_v4.sql");

const LOAD: &str = include_str!("former/load_v2.sql");

impl Fixture {
    /// With something in each dataset.
    async fn filled() -> Self {
        let mut fixture = Self::new().await;
        let index = [
            stress("34", 3.5, Some(Level::Crise)),
            stress("75", 1.0, None),
        ];
        let writer = &mut fixture.writer;
        writer
            .replace_stress(&index, day(1), &load())
            .await
            .unwrap();
        let risks = [risk("34", 50.0)];
        writer.replace_risk(&risks, day(1), &load()).await.unwrap();
        let rows: Vec<Row> = (0..100).map(|id| row("acme", id, day(id))).collect();
        fixture.load(Analyses, &rows).await.unwrap();
        fixture.load(Audits, &rows[..70]).await.unwrap();
        fixture
    }

    /// What services with these statements read.
    fn read(&self, statements: &str) -> String {
        self.sql(&format!("SET ROLE water_reader; {statements}"))
    }

    async fn migrate(&self) {
        let url = self.own.url_as("water_owner");
        migrations::migrate(&url, None).await.unwrap();
    }
}

/// What is read of the filled datasets, whatever the version.
fn assert_all_is_told(read: &str) {
    for told in [
        "34|3.5|crise",
        "50|50|50|C",
        "100|99|Société Test",
        "70|69|Société Test",
    ] {
        assert!(read.contains(told), "{told} is not in {read}");
    }
}

#[tokio::test]
async fn services_of_the_first_version_read_the_same_after_the_migrations() {
    let fixture = Fixture::filled().await;
    fixture.sql(BACK_TO_V2);
    fixture.sql(BACK_TO_V1);
    let before = fixture.read(READER_V1);
    assert_all_is_told(&before);
    fixture.migrate().await;
    assert_eq!(fixture.read(READER_V1), before);
}

#[tokio::test]
async fn services_of_the_version_before_read_the_same_after_the_migration() {
    let fixture = Fixture::filled().await;
    fixture.sql(BACK_TO_V2);
    let before = fixture.read(READER_V2);
    assert_all_is_told(&before);
    fixture.migrate().await;
    assert_eq!(fixture.read(READER_V2), before);
}

#[tokio::test]
async fn services_of_the_version_before_read_what_this_one_writes() {
    let mut fixture = Fixture::filled().await;
    fixture.delete(&["99", "98", "3"]).await;
    let read = fixture.read(READER_V2);
    assert!(read.contains("97|97|Société Test"), "{read}");
}

/// They are kept for the migrations of later versions; tests beside the statements hold them to the
/// file.
#[tokio::test]
async fn the_kept_statements_of_this_version_read_everything() {
    let mut fixture = Fixture::filled().await;
    fixture.delete(&["99"]).await;
    let read = fixture.read(READER_V4);
    for told in [
        "34|3.5|crise",
        "50|50|50|C",
        "99|98|Société Test",
        "70|69|Société Test",
        "0|0|Société Test",
        "2|99|||||",
        "|t|{75}|2",
        "|t|{}|99",
    ] {
        assert!(read.contains(told), "{told} is not in {read}");
    }
}

#[tokio::test]
async fn what_a_loader_of_the_version_before_writes_is_followed() {
    let mut fixture = Fixture::new().await;
    let rows = ["changed", "confirmed", "untouched"].map(|id| row("acme", id, day(1)));
    fixture.load(Analyses, &rows).await.unwrap();
    let others = ["kept", "deleted"].map(|id| row("other", id, day(1)));
    fixture.load(Analyses, &others).await.unwrap();
    let (other, gone) = (account("other"), ["deleted".to_owned()]);
    let deleted = fixture
        .writer
        .delete(Analyses, &other, &gone, &load())
        .await;
    assert_eq!(deleted.unwrap().removed, 1);
    let (known, _) = fixture.all().await;

    fixture.sql(&format!("SET ROLE water_writer; {LOAD}"));
    let (_, told) = fixture.since(known).await;
    let changes = [Told::Row("changed".to_owned(), 9.0), Told::row("new")];
    assert_eq!(told, changes);
    let walk = Walk::start(&fixture.reader, Analyses, &other, Start::Changes(known));
    assert!(matches!(walk.await.err(), Some(WalkError::Expired)));
    let remembered = "SELECT count(*) FROM water.analyses_deletions";
    assert_eq!(fixture.sql(remembered), "0");
}

#[tokio::test]
async fn rows_from_before_the_versions_are_walked_and_no_changes() {
    let fixture = Fixture::filled().await;
    fixture.sql(BACK_TO_V2);
    fixture.migrate().await;
    let (known, told) = fixture.all().await;
    assert_eq!((told.len(), fixture.since(known).await.1), (100, vec![]));
}
