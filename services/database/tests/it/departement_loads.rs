//! Loads of stress, risk and levels: idempotent; records that a file leaves out stay or are named.

use water_database::departements::{self, Snapshot};
use water_database::writer::{Outcome, RiskRow};
use water_domain::{Level, StressRecord, departement};

use crate::fixture::{Fixture, day, load, risk, stress};

impl Fixture {
    async fn snapshot(&self) -> Snapshot {
        departements::snapshot(&self.reader).await.unwrap()
    }

    pub async fn levels(&self) -> Vec<(&'static str, Level)> {
        let records = self.snapshot().await.stress.unwrap().records;
        let records = records.iter();
        records
            .map(|record| (record.departement.code, record.level))
            .collect()
    }
}

#[tokio::test]
async fn the_same_file_twice_changes_nothing_and_at_a_later_date_no_record() {
    let mut fixture = Fixture::new().await;
    let rows = [
        stress("34", 3.5, None),
        stress("75", 1.0, Some(Level::Crise)),
    ];
    let risks = [risk("34", 50.0)];
    let first = fixture.stress(&rows, 1).await;
    assert_eq!((first.inserted, first.derived), (2, vec!["34".to_owned()]));
    fixture.risk(&risks, 1).await;
    let (stored, before) = (fixture.dump(), fixture.snapshot().await);
    let second = fixture.stress(&rows, 1).await;
    assert_eq!((second.changed(), second.unchanged()), (false, 2));
    fixture.risk(&risks, 1).await;
    assert_eq!(fixture.dump(), stored);
    fixture.stress(&rows, 2).await;
    fixture.risk(&risks, 2).await;
    let later = fixture.snapshot().await;
    let (risks, records) = (later.risk, later.stress.unwrap());
    let stress = before.stress.unwrap();
    assert_eq!(
        (risks, records.updated_at),
        (before.risk, stress.updated_at)
    );
    for (new, old) in records.records.iter().zip(&stress.records) {
        let same = StressRecord {
            level_as_of: old.level_as_of,
            ..*new
        };
        assert_eq!((same, new.level_as_of), (*old, day(2)));
    }
}

#[tokio::test]
async fn a_stress_file_without_levels_keeps_the_registers() {
    let mut fixture = Fixture::new().await;
    let rows = [
        stress("34", 3.5, Some(Level::Vigilance)),
        stress("75", 1.0, None),
    ];
    fixture.stress(&rows, 1).await;
    let rows = [stress("34", 0.5, None), stress("75", 4.0, None)];
    let outcome = fixture.stress(&rows, 2).await;
    let levels = fixture.levels().await;
    assert_eq!(levels, [("34", Level::Vigilance), ("75", Level::Crise)]);
    let (kept, derived) = (vec!["34".to_owned()], vec!["75".to_owned()]);
    assert_eq!((outcome.kept, outcome.derived), (kept, derived));
}

#[tokio::test]
async fn the_register_sets_levels_keeps_the_unknown_and_reports_the_rest() {
    let mut fixture = Fixture::new().await;
    let rows = [
        stress("34", 3.5, None),
        stress("75", 1.0, Some(Level::Alerte)),
    ];
    fixture.stress(&rows, 9).await;
    let level = |code, level| (departement::parse(code).unwrap(), level);
    let levels = [
        level("34", Some(Level::Normal)),
        level("75", None),
        level("01", Some(Level::Crise)),
    ];
    // The register has a separate date, which may be older than the index's.
    let writer = &mut fixture.writer;
    let outcome = writer.update_levels(&levels, 0, day(3), &load()).await;
    let expected = Outcome {
        rows: 3,
        updated: 1,
        kept: vec!["75".to_owned()],
        without_record: vec!["01".to_owned()],
        laid_aside: 1,
        restated: 2,
        is_noted: true,
        ..Outcome::default()
    };
    assert_eq!(outcome.unwrap(), expected);
    let levels = fixture.levels().await;
    assert_eq!(levels, [("34", Level::Normal), ("75", Level::Alerte)]);
    assert_eq!(fixture.snapshot().await.stress.unwrap().updated_at, day(9));
}

#[tokio::test]
async fn a_risk_row_has_its_own_date_or_the_loads() {
    let mut fixture = Fixture::new().await;
    let own = RiskRow {
        updated_at: Some(day(1)),
        ..risk("34", 1.0)
    };
    fixture.risk(&[own, risk("75", 99.0)], 5).await;
    let records = fixture.snapshot().await.risk.unwrap().records;
    let seen = records.iter().map(|record| {
        (
            record.departement.code,
            record.rating.as_str(),
            record.updated_at,
        )
    });
    let expected = [("34", "A", day(1)), ("75", "E", day(5))];
    assert!(seen.eq(expected), "{records:?}");
}
