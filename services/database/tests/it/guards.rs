//! Guards of loads; a dry run has them too, and writes nothing.

use tokio::time::timeout;
use water_database::departements;
use water_database::writer::{History, Load, LoadError};
use water_domain::{Level, departement};

use crate::SOON;
use crate::fixture::{Fixture, day, levels_of, load, risk, row, stress};

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

fn forced() -> Load {
    Load {
        force: true,
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

#[tokio::test]
async fn a_first_file_must_have_every_departement_unless_it_is_meant() {
    let mut fixture = Fixture::new().await;
    let (before, careful) = (fixture.dump(), careful());
    let all = || departement::all().iter().map(|one| one.code);
    let writer = &mut fixture.writer;
    let most: Vec<_> = all().skip(2).map(|code| stress(code, 1.0, None)).collect();
    let refused = writer.replace_stress(&most, day(1), &careful).await;
    assert_eq!(
        refusal(refused),
        "stress: nothing is stored yet, and the file lacks départements: 01, 02: \
         add --allow-missing if this is meant"
    );
    let risks: Vec<_> = all().skip(1).map(|code| risk(code, 1.0)).collect();
    let refused = writer.replace_risk(&risks, day(1), &careful).await;
    assert!(refusal(refused).starts_with("risk: nothing is stored yet"));
    assert_eq!(fixture.dump(), before);
    let every: Vec<_> = all().map(|code| stress(code, 1.0, None)).collect();
    let writer = &mut fixture.writer;
    let loaded = writer.replace_stress(&every, day(1), &careful).await;
    assert_eq!(loaded.unwrap().inserted, every.len() as u64);
}

#[tokio::test]
async fn a_file_that_would_remove_departements_is_refused_unless_it_is_meant() {
    let mut fixture = Fixture::new().await;
    let all = ["01", "34", "75"].map(|code| stress(code, 1.0, None));
    fixture.stress(&all, 1).await;
    let (before, one) = (fixture.dump(), &all[1..2]);
    let writer = &mut fixture.writer;
    let refused = writer.replace_stress(one, day(1), &careful()).await;
    assert_eq!(
        refusal(refused),
        "stress: the file would remove départements that it does not have: 01, 75: \
         add --allow-missing if this is meant"
    );
    assert_eq!(fixture.dump(), before);
    assert_eq!(fixture.stress(one, 1).await.removed, 2);
    assert_eq!(fixture.levels().await, [("34", Level::Vigilance)]);
}

#[tokio::test]
async fn a_register_may_not_leave_out_a_legal_level_and_may_a_derived_one() {
    let mut fixture = Fixture::new().await;
    let rows = ["01", "34", "971"].map(|code| stress(code, 1.0, None));
    fixture.stress(&rows, 1).await;
    let both = levels_of(&[("01", Level::Crise), ("34", Level::Crise)]);
    let writer = &mut fixture.writer;
    let loaded = writer.update_levels(&both, 0, day(2), &load()).await;
    loaded.unwrap();
    let refused = writer
        .update_levels(&both[..1], 0, day(3), &careful())
        .await;
    assert_eq!(
        refusal(refused),
        "vigieau: the file leaves out départements that have a legal level: 34: \
         add --allow-missing if this is meant"
    );
    // An entry whose code cannot be read may be the one that is missing.
    let loaded = writer
        .update_levels(&both[..1], 1, day(3), &careful())
        .await;
    assert_eq!(loaded.unwrap().kept, ["34"]);
    let levels = [
        ("01", Level::Crise),
        ("34", Level::Crise),
        ("971", Level::Vigilance),
    ];
    assert_eq!(fixture.levels().await, levels);
}

#[tokio::test]
async fn a_first_answer_of_the_register_must_have_ninety_departements_unless_it_is_meant() {
    let mut fixture = Fixture::new().await;
    let all = departement::all().iter();
    let levels: Vec<_> = all.map(|one| (one, Some(Level::Alerte))).collect();
    let (writer, careful) = (&mut fixture.writer, careful());
    let refused = writer.update_levels(&levels[..89], 0, day(1), &careful);
    assert_eq!(
        refusal(refused.await),
        "vigieau: no level of the register is stored yet, and the file has too few départements, 89 of at least 90: \
         add --allow-missing if this is meant"
    );
    let (levels, mut unknown) = (&levels[..90], levels[..90].to_vec());
    unknown[89].1 = None;
    let refused = writer.update_levels(&unknown, 0, day(1), &careful);
    assert!(refusal(refused.await).contains("89 of at least 90"));
    let loaded = writer.update_levels(levels, 0, day(1), &careful);
    assert_eq!(loaded.await.unwrap().rows, 90);
}

#[tokio::test]
async fn an_older_date_is_refused_unless_it_is_forced() {
    let mut fixture = Fixture::new().await;
    fixture.risk(&[risk("34", 1.0)], 5).await;
    let (writer, rows) = (&mut fixture.writer, [risk("34", 2.0)]);
    let refused = writer.replace_risk(&rows, day(4), &load()).await;
    assert_eq!(
        refusal(refused),
        "risk: as of 2026-01-05T00:00:00.000Z is older than the stored 2026-01-06T00:00:00.000Z: \
         add --force if this is meant"
    );
    let loaded = writer.replace_risk(&rows, day(4), &forced()).await;
    loaded.unwrap();
    let snapshot = departements::snapshot(&fixture.reader).await.unwrap();
    let risk = snapshot.risk.unwrap();
    assert_eq!(risk.records[0].overall.get(), 2.0);
    assert_eq!(risk.updated_at, day(5));
}

#[tokio::test]
async fn synthetic_data_does_not_replace_measured_data_unless_it_is_forced() {
    let mut fixture = Fixture::new().await;
    let (history, rows) = (History::Analyses, [row("acme", 1, day(1))]);
    let writer = &mut fixture.writer;
    for overall in [1.0, 2.0] {
        let risks = [risk("34", overall)];
        let loaded = writer.replace_risk(&risks, day(1), &measured()).await;
        loaded.unwrap();
    }
    let risks = [risk("34", 3.0)];
    let refused = writer.replace_risk(&risks, day(1), &load()).await;
    let why = "synthetic data would replace measured data: add --force if this is meant";
    assert_eq!(refusal(refused), format!("risk: {why}"));
    let loaded = writer.replace_risk(&risks, day(1), &forced()).await;
    loaded.unwrap();

    let loaded = fixture.load_as(history, &rows, day(1), &measured()).await;
    loaded.unwrap();
    let refused = fixture.load_as(history, &rows, day(1), &load()).await;
    assert_eq!(refusal(refused), format!("analyses: {why}"));
    let loaded = fixture.load_as(history, &rows, day(1), &forced()).await;
    loaded.unwrap();
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
    let (writer, measured) = (&mut fixture.writer, measured());
    let meant = Load {
        max_changed: 100,
        ..measured.clone()
    };
    let far = "would move far, more than 50 percent: raise --max-changed if this is meant";
    let first = writer.replace_stress(&indices(0), day(1), &measured).await;
    first.unwrap();
    let refused = writer.replace_stress(&indices(3), day(2), &measured).await;
    assert_eq!(
        refusal(refused),
        format!("stress: 3 of 4 measured records {far}")
    );
    let half = writer.replace_stress(&indices(2), day(2), &measured).await;
    half.unwrap();
    let all = writer.replace_stress(&indices(4), day(3), &meant).await;
    all.unwrap();

    let risks = |overall| codes.map(|code| risk(code, overall));
    for (as_of, overall) in [(1, 10.0), (2, 30.0)] {
        let risks = risks(overall);
        let near = writer.replace_risk(&risks, day(as_of), &measured).await;
        near.unwrap();
    }
    let refused = writer.replace_risk(&risks(70.0), day(3), &measured).await;
    assert_eq!(
        refusal(refused),
        format!("risk: 4 of 4 measured records {far}")
    );

    let levels = |level| levels_of(&codes.map(|code| (code, level)));
    let (alerte, vigilance) = (levels(Level::Alerte), levels(Level::Vigilance));
    let first = writer.update_levels(&alerte, 0, day(4), &measured).await;
    first.unwrap();
    let refused = writer.update_levels(&vigilance, 0, day(5), &measured).await;
    assert_eq!(
        refusal(refused),
        format!("vigieau: 4 of 4 measured levels {far}")
    );
    // The same guard covers a stress file's levels, whatever its indices do.
    let rows = codes.map(|code| stress(code, 4.5, Some(Level::Vigilance)));
    let refused = writer.replace_stress(&rows, day(5), &measured).await;
    assert_eq!(
        refusal(refused),
        format!("stress: 4 of 4 measured levels {far}")
    );
}

#[tokio::test]
async fn a_dry_run_compares_holds_up_nobody_and_touches_no_table() {
    let mut fixture = Fixture::new().await;
    let old = [row("acme", 1, day(1)), row("acme", 2, day(2))];
    fixture.load(History::Analyses, &old).await;
    let before = fixture.dump();
    let size = "SELECT pg_relation_size('water.audits') + pg_relation_size('water.stress')";
    // Another load holds the locks.
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
    let compared = timeout(SOON, compared).await;
    let outcome = compared.expect("it waits for no load").unwrap();
    assert_eq!((outcome.inserted, outcome.updated), (1, 1));
    let audits: Vec<_> = (0..1000).map(|id| row("acme", id, day(1))).collect();
    let outcome = fixture.load_as(History::Audits, &audits, day(1), &dry);
    assert_eq!(outcome.await.unwrap().inserted, 1000);
    let index = [stress("34", 1.0, None)];
    let outcome = fixture.writer.replace_stress(&index, day(1), &dry);
    assert_eq!(outcome.await.unwrap().inserted, 1);
    // Rows that are written and rolled back would leave pages.
    assert_eq!(fixture.sql(size), "0");
    assert_eq!(fixture.dump(), before);
}
