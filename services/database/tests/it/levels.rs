//! The legal level of a département has a date of its own, and outlives the stress record.

use water_domain::{Departement, Level, departement};

use crate::fixture::{Fixture, day, load, stress};

fn level(code: &str, level: Level) -> (&'static Departement, Option<Level>) {
    (departement::parse(code).unwrap(), Some(level))
}

#[tokio::test]
async fn an_older_stress_file_does_not_overwrite_the_registers_levels() {
    let mut fixture = Fixture::new().await;
    let writer = &mut fixture.writer;
    let index = [stress("34", 1.0, None)];
    writer
        .replace_stress(&index, day(1), &load())
        .await
        .unwrap();
    let register = [level("34", Level::Crise)];
    writer
        .update_levels(&register, day(9), &load())
        .await
        .unwrap();
    // Newer than the stored index, older than the register.
    let older = [stress("34", 3.0, Some(Level::Normal))];
    let outcome = writer
        .replace_stress(&older, day(5), &load())
        .await
        .unwrap();
    assert_eq!((outcome.updated, outcome.kept), (1, vec!["34".to_owned()]));
    assert_eq!(fixture.levels().await, [("34", Level::Crise)]);
    assert_eq!(fixture.sql("SELECT stress_index FROM water.stress"), "3");
    let newer = [stress("34", 3.0, Some(Level::Normal))];
    fixture
        .writer
        .replace_stress(&newer, day(10), &load())
        .await
        .unwrap();
    assert_eq!(fixture.levels().await, [("34", Level::Normal)]);
}

#[tokio::test]
async fn a_departement_that_comes_back_has_its_level() {
    let mut fixture = Fixture::new().await;
    let writer = &mut fixture.writer;
    let both = [stress("01", 1.0, None), stress("34", 1.0, None)];
    writer.replace_stress(&both, day(1), &load()).await.unwrap();
    let register = [level("34", Level::Crise)];
    writer
        .update_levels(&register, day(2), &load())
        .await
        .unwrap();
    writer
        .replace_stress(&both[..1], day(3), &load())
        .await
        .unwrap();
    writer.replace_stress(&both, day(4), &load()).await.unwrap();
    let levels = fixture.levels().await;
    assert_eq!(levels, [("01", Level::Vigilance), ("34", Level::Crise)]);
}

#[tokio::test]
async fn levels_before_the_first_index_wait_for_it_and_change_no_version() {
    let mut fixture = Fixture::new().await;
    let register = [level("34", Level::Crise)];
    let outcome = fixture
        .writer
        .update_levels(&register, day(2), &load())
        .await
        .unwrap();
    assert_eq!((outcome.changed(), outcome.laid_aside), (false, 1));
    let state = "SELECT version, updated_at IS NULL FROM water.datasets WHERE name = 'stress'";
    assert_eq!(fixture.sql(state), "0|t");
    let index = [stress("34", 0.5, None)];
    fixture
        .writer
        .replace_stress(&index, day(1), &load())
        .await
        .unwrap();
    assert_eq!(fixture.levels().await, [("34", Level::Crise)]);
}

#[tokio::test]
async fn a_register_of_an_older_day_is_kept_out_for_each_departement() {
    let mut fixture = Fixture::new().await;
    let given = [
        stress("01", 1.0, Some(Level::Alerte)),
        stress("34", 1.0, None),
    ];
    fixture
        .writer
        .replace_stress(&given, day(9), &load())
        .await
        .unwrap();
    let register = [level("01", Level::Crise), level("34", Level::Crise)];
    let outcome = fixture
        .writer
        .update_levels(&register, day(3), &load())
        .await
        .unwrap();
    assert_eq!(outcome.kept, ["01"]);
    let levels = fixture.levels().await;
    assert_eq!(levels, [("01", Level::Alerte), ("34", Level::Crise)]);
}
