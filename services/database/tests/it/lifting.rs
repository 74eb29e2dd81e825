//! Levels that end together: refused, unless they are meant, or still end half a day later.

use water_database::writer::{Load, LoadError, Outcome, Refusal};
use water_domain::{Departement, Level, departement};

use crate::fixture::{Fixture, day, load, stress};

fn measured() -> Load {
    Load {
        synthetic: false,
        ..load()
    }
}

/// Returns an answer of the register in which this many départements are at `alerte`.
fn answer(restricted: usize) -> Vec<(&'static Departement, Option<Level>)> {
    let level = |place| {
        if place < restricted {
            Level::Alerte
        } else {
            Level::Normal
        }
    };
    let all = departement::all().iter().enumerate();
    all.map(|(place, one)| (one, Some(level(place)))).collect()
}

impl Fixture {
    async fn answer(&mut self, restricted: usize, as_of: i64) -> Result<Outcome, LoadError> {
        self.answer_with(&answer(restricted), as_of).await
    }

    async fn answer_with(
        &mut self,
        levels: &[(&'static Departement, Option<Level>)],
        as_of: i64,
    ) -> Result<Outcome, LoadError> {
        let load = measured();
        let loaded = self.writer.update_levels(levels, 0, day(as_of), &load);
        loaded.await
    }

    /// Numbers of levels above `normal` and of remembered ends of levels.
    fn restricted_and_refused(&self) -> String {
        self.sql(
            "SELECT (SELECT count(*) FROM water.levels WHERE level <> 'normal'), \
             (SELECT count(*) FROM water.refused_liftings)",
        )
    }

    fn half_a_day_passes(&self) {
        self.hours_pass(12);
    }

    fn hours_pass(&self, hours: u8) {
        let earlier =
            "UPDATE water.refused_liftings SET refused_at = refused_at - interval '1 hour' *";
        self.sql(&format!("{earlier} {hours}"));
    }
}

fn is_lifting(result: &Result<Outcome, LoadError>) -> bool {
    matches!(result, Err(LoadError::Refused(Refusal::Lifts { .. })))
}

#[tokio::test]
async fn an_answer_in_which_nobody_has_a_level_any_more_is_refused_and_remembered() {
    let mut fixture = Fixture::new().await;
    fixture.answer(35, 1).await.unwrap();
    for _ in 0..2 {
        let refused = fixture.answer(0, 2).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "vigieau: the level would fall to normal in 35 of 35 départements that are above it: \
             add --allow-lifting if this is meant; without it they are loaded if they still end 12 hours on"
        );
        assert_eq!(fixture.restricted_and_refused(), "35|35");
    }
    fixture.hours_pass(11);
    assert!(is_lifting(&fixture.answer(0, 2).await));
}

#[tokio::test]
async fn levels_that_still_end_half_a_day_later_are_loaded_whatever_else_changed() {
    let mut fixture = Fixture::new().await;
    // More than half of France: an accepted answer is not limited by --max-changed.
    fixture.answer(94, 1).await.unwrap();
    assert!(is_lifting(&fixture.answer(10, 2).await));
    fixture.half_a_day_passes();
    // Another level rises, and one that ended is there again.
    let mut levels = answer(11);
    levels[0].1 = Some(Level::Crise);
    let healed = fixture.answer_with(&levels, 3).await.unwrap();
    assert!(healed.lifting_refused_at.is_some());
    assert_eq!(fixture.restricted_and_refused(), "11|0");
}

#[tokio::test]
async fn one_more_level_that_ends_is_refused_again_and_loaded_half_a_day_later() {
    let mut fixture = Fixture::new().await;
    fixture.answer(35, 1).await.unwrap();
    assert!(is_lifting(&fixture.answer(10, 2).await));
    fixture.half_a_day_passes();
    assert!(is_lifting(&fixture.answer(9, 3).await));
    fixture.half_a_day_passes();
    assert!(fixture.answer(9, 4).await.is_ok());
}

#[tokio::test]
async fn a_register_that_loses_other_levels_each_day_stays_refused() {
    let mut fixture = Fixture::new().await;
    fixture.answer(40, 1).await.unwrap();
    for (as_of, first) in [(2, 0), (3, 10), (4, 0), (5, 10)] {
        let mut levels = answer(40);
        for (_, level) in &mut levels[first..first + 30] {
            *level = Some(Level::Normal);
        }
        assert!(
            is_lifting(&fixture.answer_with(&levels, as_of).await),
            "{as_of}"
        );
        fixture.half_a_day_passes();
    }
}

#[tokio::test]
async fn a_refused_answer_is_forgotten_with_the_next_that_is_loaded() {
    let mut fixture = Fixture::new().await;
    fixture.answer(35, 1).await.unwrap();
    assert!(is_lifting(&fixture.answer(0, 2).await));
    fixture.half_a_day_passes();
    fixture.answer(35, 3).await.unwrap();
    assert!(is_lifting(&fixture.answer(0, 4).await));
}

#[tokio::test]
async fn levels_that_an_answer_has_again_wait_half_a_day_though_another_guard_refuses_it() {
    let mut incomplete = answer(94);
    incomplete.remove(0);
    let mut lower = answer(94);
    for (_, level) in &mut lower[..94] {
        *level = Some(Level::Vigilance);
    }
    let careful = Load {
        allow_missing: false,
        ..measured()
    };
    for again in [incomplete, lower] {
        let mut fixture = Fixture::new().await;
        fixture.answer(94, 1).await.unwrap();
        assert!(is_lifting(&fixture.answer(0, 2).await));
        let refused = fixture.writer.update_levels(&again, 0, day(3), &careful);
        let refused = refused.await;
        assert!(
            matches!(
                refused,
                Err(LoadError::Refused(
                    Refusal::Omits { .. } | Refusal::Moves { .. }
                ))
            ),
            "{refused:?}"
        );
        fixture.half_a_day_passes();
        assert!(is_lifting(&fixture.answer(0, 4).await));
    }
}

#[tokio::test]
async fn an_answer_that_is_refused_for_its_date_changes_nothing_of_what_is_remembered() {
    let mut fixture = Fixture::new().await;
    fixture.answer(35, 2).await.unwrap();
    assert!(is_lifting(&fixture.answer(0, 3).await));
    let older = fixture.answer(35, 1).await;
    assert!(
        matches!(older, Err(LoadError::Refused(Refusal::Older { .. }))),
        "{older:?}"
    );
    fixture.half_a_day_passes();
    assert!(fixture.answer(0, 4).await.is_ok());
}

#[tokio::test]
async fn levels_that_end_as_it_is_meant_are_loaded_at_once() {
    let mut fixture = Fixture::new().await;
    fixture.answer(94, 1).await.unwrap();
    let meant = Load {
        allow_lifting: true,
        ..measured()
    };
    let none = answer(0);
    let loaded = fixture.writer.update_levels(&none, 0, day(2), &meant);
    assert_eq!(loaded.await.unwrap().lifting_refused_at, None);
}

#[tokio::test]
async fn a_stress_file_ends_levels_of_most_departements_as_it_is_meant_only() {
    let mut fixture = Fixture::new().await;
    fixture.answer(20, 1).await.unwrap();
    let ending = |ended: usize| {
        let rows = departement::all().iter().enumerate();
        let level = move |place| (place < ended).then_some(Level::Normal);
        rows.map(|(place, one)| stress(one.code, 1.0, level(place)))
            .collect::<Vec<_>>()
    };
    let meant = Load {
        allow_lifting: true,
        ..measured()
    };
    for (ended, load, is_refused) in [
        (11, &measured(), true),
        (10, &measured(), false),
        (20, &measured(), true),
        (20, &meant, false),
    ] {
        let rows = ending(ended);
        let loaded = fixture.writer.replace_stress(&rows, day(2), load).await;
        let refused = matches!(loaded, Err(LoadError::Refused(Refusal::Ends { .. })));
        assert_eq!(refused, is_refused, "{ended}: {loaded:?}");
    }
    assert_eq!(fixture.restricted_and_refused(), "0|0");
}

#[tokio::test]
async fn a_few_levels_may_end_and_in_a_winter_without_levels_nothing_is_refused() {
    let mut fixture = Fixture::new().await;
    for (as_of, restricted) in [(1, 35), (2, 25), (3, 13), (4, 3)] {
        fixture.answer(restricted, as_of).await.unwrap();
    }
    assert!(is_lifting(&fixture.answer(0, 5).await));
    fixture.sql("UPDATE water.levels SET level = 'normal'");
    fixture.answer(0, 5).await.unwrap();
    fixture.answer(0, 6).await.unwrap();
}

#[tokio::test]
async fn a_dry_run_refuses_the_same_and_remembers_nothing() {
    let mut fixture = Fixture::new().await;
    fixture.answer(35, 1).await.unwrap();
    let dry = Load {
        dry_run: true,
        ..measured()
    };
    let none = answer(0);
    let compared = fixture.writer.update_levels(&none, 0, day(2), &dry);
    assert!(is_lifting(&compared.await));
    assert_eq!(fixture.restricted_and_refused(), "35|0");
}
