//! Reads of the départements' service.

use water_database::departements::{self, Snapshot, Versions};
use water_domain::{Level, LevelSource};

use crate::fixture::{Fixture, day, risk, stress};

fn numbers(Versions { stress, risk }: Versions) -> [i64; 2] {
    [stress, risk].map(|version| version.number)
}

#[tokio::test]
async fn an_empty_database_has_no_datasets() {
    let fixture = Fixture::new().await;
    let snapshot = departements::snapshot(&fixture.reader).await.unwrap();
    let versions = departements::versions(&fixture.reader).await.unwrap();
    assert_eq!(numbers(versions), [0, 0]);
    let empty = Snapshot {
        versions,
        stress: None,
        risk: None,
    };
    assert_eq!(snapshot, empty);
}

#[tokio::test]
async fn a_snapshot_has_the_records_in_ascii_order_with_their_date() {
    let mut fixture = Fixture::new().await;
    let rows = ["30", "2B", "01", "971", "2A", "29"].map(|code| stress(code, 2.5, None));
    fixture.stress(&rows, 1).await;
    let snapshot = departements::snapshot(&fixture.reader).await.unwrap();
    let stress = snapshot.stress.unwrap();
    let codes: Vec<_> = stress
        .records
        .iter()
        .map(|record| record.departement.code)
        .collect();
    assert_eq!(codes, ["01", "29", "2A", "2B", "30", "971"]);
    assert_eq!(
        (stress.updated_at, stress.records[0].level),
        (day(1), Level::Alerte)
    );
    assert_eq!(numbers(snapshot.versions), [1, 0]);
    assert_eq!(snapshot.risk, None);
}

#[tokio::test]
async fn a_level_has_its_origin_and_the_newest_date_for_which_that_gave_it() {
    let mut fixture = Fixture::new().await;
    let index = |first| {
        [
            stress("01", first, None),
            stress("02", 1.0, Some(Level::Alerte)),
            stress("34", 1.0, None),
        ]
    };
    let told = async |fixture: &Fixture| {
        let snapshot = departements::snapshot(&fixture.reader).await.unwrap();
        let records = snapshot.stress.unwrap().records;
        let told = records.iter().map(|record| {
            let (source, days) = (record.level_source, [record.level_as_of, record.updated_at]);
            (source, days)
        });
        (snapshot.versions.stress.number, told.collect::<Vec<_>>())
    };
    fixture.stress(&index(1.0), 1).await;
    fixture.register(&[("34", Level::Vigilance)], 2).await;
    let expected = |version, derived: [i64; 2], file: [i64; 2], register: [i64; 2]| {
        let records = vec![
            (LevelSource::Derived, derived.map(day)),
            (LevelSource::File, file.map(day)),
            (LevelSource::Register, register.map(day)),
        ];
        (version, records)
    };
    assert_eq!(told(&fixture).await, expected(2, [1, 1], [1, 1], [2, 2]));
    // The level is confirmed, which changes no record: readers are to show its date.
    let confirmed = fixture.register(&[("34", Level::Vigilance)], 5).await;
    assert!(!confirmed.changed());
    assert_eq!(told(&fixture).await, expected(3, [1, 1], [1, 1], [5, 2]));
    // One index changes, and only that record's date.
    fixture.stress(&index(1.5), 6).await;
    assert_eq!(told(&fixture).await, expected(4, [6, 6], [6, 1], [5, 2]));
}

#[tokio::test]
async fn each_dataset_has_its_own_version() {
    let mut fixture = Fixture::new().await;
    fixture.risk(&[risk("34", 50.0)], 1).await;
    fixture.risk(&[risk("34", 51.0)], 2).await;
    let versions = departements::versions(&fixture.reader).await.unwrap();
    assert_eq!(numbers(versions), [0, 2]);
}
