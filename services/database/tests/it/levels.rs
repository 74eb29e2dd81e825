//! Legal levels of départements, which have a separate date and outlive the stress record.

use water_domain::Level;

use crate::fixture::{Fixture, stress};

#[tokio::test]
async fn an_older_stress_file_does_not_overwrite_the_registers_levels() {
    let mut fixture = Fixture::new().await;
    fixture.stress(&[stress("34", 1.0, None)], 1).await;
    fixture.register(&[("34", Level::Crise)], 9).await;
    // Newer than the stored index, older than the register.
    let given = [stress("34", 3.0, Some(Level::Normal))];
    let outcome = fixture.stress(&given, 5).await;
    assert_eq!((outcome.updated, outcome.kept), (1, vec!["34".to_owned()]));
    assert_eq!(fixture.levels().await, [("34", Level::Crise)]);
    assert_eq!(fixture.sql("SELECT stress_index FROM water.stress"), "3");
    fixture.stress(&given, 10).await;
    assert_eq!(fixture.levels().await, [("34", Level::Normal)]);
}

#[tokio::test]
async fn a_stress_file_of_the_registers_day_leaves_its_levels_whichever_comes_first() {
    let mut fixture = Fixture::new().await;
    let given = [stress("34", 3.0, Some(Level::Normal))];
    fixture.stress(&given, 1).await;
    fixture.register(&[("34", Level::Crise)], 1).await;
    assert_eq!(fixture.stress(&given, 1).await.kept, ["34"]);
    assert_eq!(fixture.levels().await, [("34", Level::Crise)]);
}

#[tokio::test]
async fn a_departement_that_comes_back_has_its_level() {
    let mut fixture = Fixture::new().await;
    let both = [stress("01", 1.0, None), stress("34", 1.0, None)];
    fixture.stress(&both, 1).await;
    fixture.register(&[("34", Level::Crise)], 2).await;
    fixture.stress(&both[..1], 3).await;
    fixture.stress(&both, 4).await;
    let levels = fixture.levels().await;
    assert_eq!(levels, [("01", Level::Vigilance), ("34", Level::Crise)]);
}

#[tokio::test]
async fn levels_before_the_first_index_wait_for_it_and_change_no_version() {
    let mut fixture = Fixture::new().await;
    let outcome = fixture.register(&[("34", Level::Crise)], 2).await;
    assert_eq!((outcome.changed(), outcome.laid_aside), (false, 1));
    let state = "SELECT version, updated_at IS NULL FROM water.datasets WHERE name = 'stress'";
    assert_eq!(fixture.sql(state), "0|t");
    fixture.stress(&[stress("34", 0.5, None)], 1).await;
    assert_eq!(fixture.levels().await, [("34", Level::Crise)]);
}

#[tokio::test]
async fn a_register_of_an_older_day_is_kept_out_for_each_departement() {
    let mut fixture = Fixture::new().await;
    let given = [
        stress("01", 1.0, Some(Level::Alerte)),
        stress("34", 1.0, None),
    ];
    fixture.stress(&given, 9).await;
    let register = [("01", Level::Crise), ("34", Level::Crise)];
    assert_eq!(fixture.register(&register, 3).await.kept, ["01"]);
    let levels = fixture.levels().await;
    assert_eq!(levels, [("01", Level::Alerte), ("34", Level::Crise)]);
}
