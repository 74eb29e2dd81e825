//! What a load is held against; a dry run is too, and writes nothing.

use std::time::Duration;

use tokio::time::timeout;
use water_database::writer::{History, Load, LoadError};
use water_domain::{Departement, Level, departement};

use crate::fixture::{Fixture, day, load, risk, row, stress};

fn careful() -> Load {
    Load {
        allow_missing: false,
        ..load()
    }
}

fn measured() -> Load {
    Load {
        synthetic: false,
        ..load()
    }
}

fn refusal(result: Result<impl Sized, LoadError>) -> String {
    match result {
        Err(error @ LoadError::Refused(_)) => error.to_string(),
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("it was loaded"),
    }
}

fn levels(codes: &[&str], level: Level) -> Vec<(&'static Departement, Option<Level>)> {
    let codes = codes.iter().map(|code| departement::parse(code).unwrap());
    codes
        .map(|departement| (departement, Some(level)))
        .collect()
}

#[tokio::test]
async fn a_first_file_must_have_every_departement_unless_it_is_meant() {
    let mut fixture = Fixture::new().await;
    let before = fixture.dump();
    let all = || {
        departement::all()
            .iter()
            .map(|departement| departement.code)
    };
    let most: Vec<_> = all().skip(2).map(|code| stress(code, 1.0, None)).collect();
    let refused = fixture
        .writer
        .replace_stress(&most, day(1), &careful())
        .await;
    assert_eq!(
        refusal(refused),
        "stress: nothing is stored yet, and the file lacks départements: 01, 02: \
         add --allow-missing if this is meant"
    );
    let risks: Vec<_> = all().skip(1).map(|code| risk(code, 1.0)).collect();
    let refused = fixture
        .writer
        .replace_risk(&risks, day(1), &careful())
        .await;
    assert!(refusal(refused).starts_with("risk: nothing is stored yet"));
    assert_eq!(fixture.dump(), before);
    let every: Vec<_> = all().map(|code| stress(code, 1.0, None)).collect();
    fixture
        .writer
        .replace_stress(&every, day(1), &careful())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_register_may_not_leave_out_a_legal_level_and_may_a_derived_one() {
    let mut fixture = Fixture::new().await;
    let rows = ["01", "34", "971"].map(|code| stress(code, 1.0, None));
    fixture
        .writer
        .replace_stress(&rows, day(1), &load())
        .await
        .unwrap();
    let both = levels(&["01", "34"], Level::Crise);
    fixture
        .writer
        .update_levels(&both, day(2), &careful())
        .await
        .unwrap();
    let refused = fixture
        .writer
        .update_levels(&both[..1], day(3), &careful())
        .await;
    assert_eq!(
        refusal(refused),
        "vigieau: the file leaves out départements that have a legal level: 34: \
         add --allow-missing if this is meant"
    );
}

#[tokio::test]
async fn more_than_half_of_the_measured_records_may_not_move_far() {
    let mut fixture = Fixture::new().await;
    let codes = ["01", "02", "34", "75"];
    let indices = |moved: usize| {
        let index = move |place: usize| if place < moved { 4.5 } else { 0.5 };
        let rows = codes.iter().enumerate();
        let rows = rows.map(|(place, code)| stress(code, index(place), None));
        rows.collect::<Vec<_>>()
    };
    let writer = &mut fixture.writer;
    writer
        .replace_stress(&indices(0), day(1), &measured())
        .await
        .unwrap();
    let refused = writer
        .replace_stress(&indices(3), day(2), &measured())
        .await;
    assert_eq!(
        refusal(refused),
        "stress: 3 of 4 measured records would move far, more than 50 percent: \
         raise --max-changed if this is meant"
    );
    writer
        .replace_stress(&indices(2), day(2), &measured())
        .await
        .unwrap();
    let meant = Load {
        max_changed: 100,
        ..measured()
    };
    writer
        .replace_stress(&indices(4), day(3), &meant)
        .await
        .unwrap();
    let risks = |overall| codes.map(|code| risk(code, overall));
    writer
        .replace_risk(&risks(10.0), day(1), &measured())
        .await
        .unwrap();
    writer
        .replace_risk(&risks(30.0), day(2), &measured())
        .await
        .unwrap();
    let refused = writer.replace_risk(&risks(70.0), day(3), &measured()).await;
    assert!(refusal(refused).starts_with("risk: 4 of 4 measured records"));
    let alerte = levels(&codes, Level::Alerte);
    writer
        .update_levels(&alerte, day(4), &measured())
        .await
        .unwrap();
    let refused = writer
        .update_levels(&levels(&codes, Level::Vigilance), day(5), &measured())
        .await;
    assert!(refusal(refused).starts_with("vigieau: 4 of 4 measured records"));
}

#[tokio::test]
async fn generated_rows_do_not_mix_with_a_measured_history_unless_it_is_forced() {
    let mut fixture = Fixture::new().await;
    let rows = [row("acme", 1, day(1))];
    fixture
        .load_as(History::Analyses, &rows, day(1), &measured())
        .await
        .unwrap();
    let refused = fixture
        .load_as(History::Analyses, &rows, day(1), &load())
        .await;
    assert_eq!(
        refusal(refused),
        "analyses: synthetic data would replace measured data: add --force if this is meant"
    );
    let forced = Load {
        force: true,
        ..load()
    };
    fixture
        .load_as(History::Analyses, &rows, day(1), &forced)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dry_run_compares_holds_up_nobody_and_touches_no_table() {
    let mut fixture = Fixture::new().await;
    let old = [row("acme", 1, day(1)), row("acme", 2, day(2))];
    fixture.load(History::Analyses, &old).await.unwrap();
    let before = fixture.dump();
    let size = "SELECT pg_relation_size('water.audits') + pg_relation_size('water.stress')";
    // Another load is under way.
    let locks = "SELECT pg_advisory_xact_lock(hashtext('water.' || name)) FROM water.datasets";
    let _other_load = fixture.hold(locks).await;
    let dry = Load {
        dry_run: true,
        ..load()
    };
    let rows = [
        row("acme", 1, day(1)).score(9.0),
        row("acme", 2, day(2)),
        row("acme", 3, day(3)),
        row("acme", 3, day(3)),
    ];
    let compared = fixture.load_as(History::Analyses, &rows, day(1), &dry);
    let compared = timeout(Duration::from_secs(10), compared).await;
    let outcome = compared.expect("it waits for no load").unwrap();
    assert_eq!((outcome.inserted, outcome.updated), (1, 1));
    let audits: Vec<_> = (0..1000).map(|id| row("acme", id, day(1))).collect();
    let outcome = fixture
        .load_as(History::Audits, &audits, day(1), &dry)
        .await
        .unwrap();
    assert_eq!(outcome.inserted, 1000);
    let index = [stress("34", 1.0, None)];
    let outcome = fixture
        .writer
        .replace_stress(&index, day(1), &dry)
        .await
        .unwrap();
    assert_eq!(outcome.inserted, 1);
    // Rows that are written and taken back leave pages behind.
    assert_eq!(fixture.sql(size), "0");
    assert_eq!(fixture.dump(), before);
}
