//! Where the data comes from, as an account is told.

use std::time::Duration;

use tokio::time::Instant;
use water_database::sources::sources;
use water_database::writer::History::{Analyses, Audits};
use water_database::writer::Load;
use water_domain::{Level, SourceRecord};

use crate::fixture::{Fixture, account, day, load, risk, row, stress};

impl Fixture {
    async fn sources(&self, id: &str) -> Vec<SourceRecord> {
        sources(&self.reader, &account(id)).await.unwrap()
    }

    async fn source(&self, id: &str, dataset: &str) -> SourceRecord {
        let sources = self.sources(id).await;
        let source = sources.iter().find(|source| source.dataset == dataset);
        source.unwrap().clone()
    }
}

fn measured() -> Load {
    Load {
        synthetic: false,
        ..load()
    }
}

#[tokio::test]
async fn datasets_that_were_never_loaded_have_no_source() {
    assert_eq!(Fixture::new().await.sources("acme").await, []);
}

/// Compiled it takes a fifth of a second or more each time.
#[tokio::test]
async fn the_sources_are_read_without_compiling_the_statement() {
    let mut fixture = Fixture::new().await;
    let index = [stress("34", 1.0, Some(Level::Alerte))];
    let writer = &mut fixture.writer;
    writer
        .replace_stress(&index, day(1), &load())
        .await
        .unwrap();
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let asked = Instant::now();
        fixture.sources("acme").await;
        fastest = fastest.min(asked.elapsed());
    }
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

#[tokio::test]
async fn each_dataset_has_its_last_loads_date_and_its_records() {
    let mut fixture = Fixture::new().await;
    let index = [
        stress("34", 1.0, Some(Level::Alerte)),
        stress("75", 1.0, None),
    ];
    let writer = &mut fixture.writer;
    writer
        .replace_stress(&index, day(1), &load())
        .await
        .unwrap();
    writer
        .replace_stress(&index, day(2), &load())
        .await
        .unwrap();
    writer
        .replace_risk(&[risk("34", 1.0)], day(3), &measured())
        .await
        .unwrap();
    let sources = fixture.sources("acme").await;
    let told = sources.iter().map(|source| {
        let SourceRecord { dataset, .. } = source;
        (
            dataset.as_str(),
            source.as_of.unwrap(),
            source.records,
            source.synthetic,
        )
    });
    let expected = [("stress", day(2), 2, true), ("risk", day(3), 1, false)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert_eq!(sources[0].derived_levels, ["75"]);
    assert!(sources[1].derived_levels.is_empty());
}

#[tokio::test]
async fn a_history_counts_the_accounts_own_rows_only() {
    let mut fixture = Fixture::new().await;
    let rows = [
        row("acme", 1, day(1)),
        row("acme", 2, day(1)),
        row("other", 1, day(1)),
    ];
    fixture.load(Analyses, &rows).await.unwrap();
    fixture.load(Audits, &rows[2..]).await.unwrap();
    for (id, counts) in [("acme", [2, 0]), ("other", [1, 1]), ("nobody", [0, 0])] {
        let sources = fixture.sources(id).await;
        let records = sources.iter().map(|source| source.records);
        assert_eq!(records.collect::<Vec<_>>(), counts, "{id}");
    }
}

#[tokio::test]
async fn a_label_is_told_beside_a_licence_or_a_link_only() {
    let mut fixture = Fixture::new().await;
    let rows = [row("acme", 1, day(1))];
    fixture.load(Analyses, &rows).await.unwrap();
    let told = fixture.source("acme", "analyses").await;
    assert_eq!(
        (told.source, told.licence, told.source_url),
        (None, None, None)
    );
    fixture.sql("UPDATE water.loads SET licence = 'Licence Ouverte 2.0'");
    let told = fixture.source("acme", "analyses").await;
    let named = (
        Some("a test".to_owned()),
        Some("Licence Ouverte 2.0".to_owned()),
    );
    assert_eq!((told.source, told.licence), named);
}

#[tokio::test]
async fn a_history_is_dated_by_its_newest_file_and_synthetic_when_a_part_of_it_is() {
    let mut fixture = Fixture::new().await;
    let rows = [row("acme", 1, day(1)), row("acme", 2, day(1))];
    fixture
        .load_as(Analyses, &rows[..1], day(5), &load())
        .await
        .unwrap();
    fixture
        .load_as(Analyses, &rows[1..], day(4), &measured())
        .await
        .unwrap();
    fixture.delete(&["1"]).await;
    let told = fixture.source("acme", "analyses").await;
    assert_eq!(
        (told.as_of, told.synthetic, told.records),
        (Some(day(5)), true, 1)
    );
}

#[tokio::test]
async fn the_reader_may_ask_the_view_and_not_the_loads() {
    let fixture = Fixture::new().await;
    let as_reader = |sql: &str| {
        let sql = format!("SET ROLE water_reader; {sql}");
        fixture.postgres.sql(fixture.own.name(), &sql)
    };
    assert!(as_reader("SELECT FROM water.sources").is_ok());
    assert!(as_reader("SELECT FROM water.loads").is_err());
    assert!(as_reader("SELECT FROM water.purges").is_err());
    let columns = "SELECT string_agg(attname, ',' ORDER BY attname) FROM pg_attribute \
                   WHERE attrelid = 'water.sources'::regclass AND attnum > 0";
    let shown =
        "as_of,dataset,derived_levels,licence,loaded_at,records,source,source_url,synthetic";
    assert_eq!(fixture.sql(columns), shown);
}
