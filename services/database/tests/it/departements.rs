//! What the service of the départements reads.

use std::time::Duration;

use water_database::Changes;
use water_database::departements::{self, Snapshot, Versions};
use water_domain::Level;

use crate::fixture::{Fixture, day, load, risk, stress};

#[tokio::test]
async fn an_empty_database_has_no_datasets() {
    let fixture = Fixture::new().await;
    let empty = Snapshot {
        versions: Versions { stress: 0, risk: 0 },
        stress: None,
        risk: None,
    };
    assert_eq!(
        departements::snapshot(&fixture.reader).await.unwrap(),
        empty
    );
    assert_eq!(
        departements::versions(&fixture.reader).await.unwrap(),
        empty.versions
    );
}

#[tokio::test]
async fn a_snapshot_has_the_records_in_ascii_order_with_their_date() {
    let mut fixture = Fixture::new().await;
    let rows = ["30", "2B", "01", "971", "2A", "29"].map(|code| stress(code, 2.5, None));
    fixture
        .writer
        .replace_stress(&rows, day(1), &load())
        .await
        .unwrap();
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
    assert_eq!(
        (snapshot.versions, snapshot.risk),
        (Versions { stress: 1, risk: 0 }, None)
    );
}

#[tokio::test]
async fn each_dataset_has_its_own_version() {
    let mut fixture = Fixture::new().await;
    fixture
        .writer
        .replace_risk(&[risk("34", 50.0)], day(1), &load())
        .await
        .unwrap();
    fixture
        .writer
        .replace_risk(&[risk("34", 51.0)], day(2), &load())
        .await
        .unwrap();
    let versions = departements::versions(&fixture.reader).await.unwrap();
    assert_eq!(versions, Versions { stress: 0, risk: 2 });
}

#[tokio::test]
async fn a_load_wakes_those_who_listen() {
    let mut fixture = Fixture::new().await;
    let mut changes = Changes::listen(&fixture.reader).await.unwrap();
    fixture
        .writer
        .replace_stress(&[stress("34", 1.0, None)], day(1), &load())
        .await
        .unwrap();
    let woken = tokio::time::timeout(Duration::from_secs(5), changes.next()).await;
    assert!(woken.expect("a hint must come"));
}
