//! Loads of stress, risk and levels: guarded, idempotent, one at a time.

use water_database::departements::{self, Snapshot};
use water_database::writer::{Load, Outcome, RiskRow};
use water_domain::{Level, departement};

use crate::fixture::{Fixture, day, load, risk, stress};

impl Fixture {
    async fn snapshot(&self) -> Snapshot {
        departements::snapshot(&self.reader).await.unwrap()
    }

    pub async fn levels(&self) -> Vec<(&'static str, Level)> {
        let records = self.snapshot().await.stress.unwrap().records;
        records
            .iter()
            .map(|record| (record.departement.code, record.level))
            .collect()
    }
}

fn forced() -> Load {
    Load {
        force: true,
        ..load()
    }
}

#[tokio::test]
async fn the_same_stress_file_twice_changes_nothing() {
    let mut fixture = Fixture::new().await;
    let rows = [
        stress("34", 3.5, None),
        stress("75", 1.0, Some(Level::Crise)),
    ];
    let first = fixture
        .writer
        .replace_stress(&rows, day(1), &load())
        .await
        .unwrap();
    assert_eq!(
        (first.inserted, first.derived.clone()),
        (2, vec!["34".to_owned()])
    );
    let before = fixture.dump();
    let second = fixture
        .writer
        .replace_stress(&rows, day(1), &load())
        .await
        .unwrap();
    assert_eq!((second.changed(), second.unchanged()), (false, 2));
    assert_eq!(fixture.dump(), before);
}

#[tokio::test]
async fn the_same_content_at_a_later_date_keeps_version_and_date() {
    let mut fixture = Fixture::new().await;
    fixture
        .writer
        .replace_stress(&[stress("34", 3.5, None)], day(1), &load())
        .await
        .unwrap();
    fixture
        .writer
        .replace_risk(&[risk("34", 50.0)], day(1), &load())
        .await
        .unwrap();
    let before = fixture.snapshot().await;
    fixture
        .writer
        .replace_stress(&[stress("34", 3.5, None)], day(2), &load())
        .await
        .unwrap();
    fixture
        .writer
        .replace_risk(&[risk("34", 50.0)], day(2), &load())
        .await
        .unwrap();
    assert_eq!(fixture.snapshot().await, before);
}

#[tokio::test]
async fn a_stress_file_without_levels_keeps_the_registers() {
    let mut fixture = Fixture::new().await;
    let rows = [
        stress("34", 3.5, Some(Level::Vigilance)),
        stress("75", 1.0, None),
    ];
    fixture
        .writer
        .replace_stress(&rows, day(1), &load())
        .await
        .unwrap();
    let rows = [stress("34", 0.5, None), stress("75", 4.0, None)];
    let outcome = fixture
        .writer
        .replace_stress(&rows, day(2), &load())
        .await
        .unwrap();
    assert_eq!(
        fixture.levels().await,
        [("34", Level::Vigilance), ("75", Level::Crise)]
    );
    assert_eq!(
        (outcome.kept, outcome.derived),
        (vec!["34".to_owned()], vec!["75".to_owned()])
    );
}

#[tokio::test]
async fn the_register_sets_levels_keeps_the_unknown_and_reports_the_rest() {
    let mut fixture = Fixture::new().await;
    let rows = [
        stress("34", 3.5, None),
        stress("75", 1.0, Some(Level::Alerte)),
    ];
    fixture
        .writer
        .replace_stress(&rows, day(9), &load())
        .await
        .unwrap();
    let level = |code, level| (departement::parse(code).unwrap(), level);
    let levels = [
        level("34", Some(Level::Normal)),
        level("75", None),
        level("01", Some(Level::Crise)),
    ];
    // The register's date is its own: it may be older than the index's.
    let outcome = fixture
        .writer
        .update_levels(&levels, day(3), &load())
        .await
        .unwrap();
    assert_eq!(
        fixture.levels().await,
        [("34", Level::Normal), ("75", Level::Alerte)]
    );
    let expected = Outcome {
        rows: 3,
        updated: 1,
        kept: vec!["75".to_owned()],
        without_record: vec!["01".to_owned()],
        laid_aside: 1,
        ..Outcome::default()
    };
    assert_eq!(outcome, expected);
    assert_eq!(fixture.snapshot().await.stress.unwrap().updated_at, day(9));
}

#[tokio::test]
async fn a_file_that_would_remove_departements_is_refused_unless_it_is_meant() {
    let mut fixture = Fixture::new().await;
    let all = [
        stress("01", 1.0, None),
        stress("34", 1.0, None),
        stress("75", 1.0, None),
    ];
    fixture
        .writer
        .replace_stress(&all, day(1), &load())
        .await
        .unwrap();
    let before = fixture.dump();
    let careful = Load {
        allow_missing: false,
        ..load()
    };
    let error = fixture
        .writer
        .replace_stress(&all[1..2], day(1), &careful)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "stress: the file would remove départements that it does not have: 01, 75: \
         add --allow-missing if this is meant"
    );
    assert_eq!(fixture.dump(), before);
    let outcome = fixture
        .writer
        .replace_stress(&all[1..2], day(1), &load())
        .await
        .unwrap();
    assert_eq!((outcome.removed, fixture.levels().await.len()), (2, 1));
}

#[tokio::test]
async fn an_older_date_is_refused_unless_it_is_forced() {
    let mut fixture = Fixture::new().await;
    fixture
        .writer
        .replace_risk(&[risk("34", 1.0)], day(5), &load())
        .await
        .unwrap();
    let error = fixture
        .writer
        .replace_risk(&[risk("34", 2.0)], day(4), &load())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "risk: as of 2026-01-05T00:00:00.000Z is older than the stored 2026-01-06T00:00:00.000Z: \
         add --force if this is meant"
    );
    fixture
        .writer
        .replace_risk(&[risk("34", 2.0)], day(4), &forced())
        .await
        .unwrap();
    let risk = fixture.snapshot().await.risk.unwrap();
    assert_eq!(
        (risk.records[0].overall.get(), risk.updated_at),
        (2.0, day(5))
    );
}

#[tokio::test]
async fn synthetic_data_does_not_replace_measured_data_unless_it_is_forced() {
    let mut fixture = Fixture::new().await;
    let measured = Load {
        synthetic: false,
        ..load()
    };
    fixture
        .writer
        .replace_risk(&[risk("34", 1.0)], day(1), &measured)
        .await
        .unwrap();
    let error = fixture
        .writer
        .replace_risk(&[risk("34", 2.0)], day(1), &load())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "risk: synthetic data would replace measured data: add --force if this is meant"
    );
    fixture
        .writer
        .replace_risk(&[risk("34", 2.0)], day(1), &forced())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_risk_row_has_its_own_date_or_the_loads() {
    let mut fixture = Fixture::new().await;
    let own = RiskRow {
        updated_at: Some(day(1)),
        ..risk("34", 1.0)
    };
    fixture
        .writer
        .replace_risk(&[own, risk("75", 99.0)], day(5), &load())
        .await
        .unwrap();
    let records = fixture.snapshot().await.risk.unwrap().records;
    let seen: Vec<_> = records
        .iter()
        .map(|r| (r.departement.code, r.rating.as_str(), r.updated_at))
        .collect();
    assert_eq!(seen, [("34", "A", day(1)), ("75", "E", day(5))]);
}

#[tokio::test]
async fn two_loads_of_one_dataset_follow_each_other() {
    let mut fixture = Fixture::new().await;
    let mut other = water_database::Writer::connect(&fixture.own.url_as("water_writer"), None)
        .await
        .unwrap();
    let (rows, load) = ([stress("34", 1.0, None)], load());
    let (one, two) = tokio::join!(
        fixture.writer.replace_stress(&rows, day(1), &load),
        other.replace_stress(&rows, day(1), &load)
    );
    assert_eq!(one.unwrap().inserted + two.unwrap().inserted, 1);
}
