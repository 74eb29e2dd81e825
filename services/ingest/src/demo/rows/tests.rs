//! The synthetic rows: the same for the same seed, accepted by the readers, and consistent with each other and the
//! register.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use proptest::prelude::*;
use water_domain::Level;

use super::super::register;
use super::*;
use crate::cell::NullWords;
use crate::dataset;
use crate::dataset::history::Rules;
use crate::problem::Problems;

const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();
/// Rows of four companies.
const ROWS: NonZeroU32 = NonZeroU32::new(4 * VISITS as u32).unwrap();
/// Points by which a score may differ from the one before.
const STEP: f64 = 7.0;

fn end() -> Timestamp {
    Timestamp::parse("2026-01-01T00:00:00Z").unwrap()
}

#[test]
fn the_same_seed_gives_the_same_rows_and_another_others() {
    let rows = |seed| history(History::Audits, seed, THREE, THREE, end()).collect::<Vec<_>>();
    assert_eq!(rows(1), rows(1));
    assert_ne!(rows(1), rows(2));
}

#[test]
fn every_row_is_one_that_a_file_may_have() {
    let text = |rows: Vec<String>| Box::new(Cursor::new(rows.join("\n").into_bytes()));
    let mut problems = Problems::new("demo");
    let stress = dataset::stress::read(text(stress(7).collect()), &mut problems).unwrap();
    let risk = dataset::risk::read(text(risk(7).collect()), end(), &mut problems).unwrap();
    let rows = history(History::Analyses, 7, THREE, THREE, end()).collect();
    let rows = dataset::history::read(
        text(rows),
        History::Analyses,
        Rules {
            now: end(),
            company_names: NullWords::Refused,
            allow_empty: false,
        },
        &mut problems,
        |_, _| {},
    )
    .unwrap();
    assert_eq!((stress.len(), risk.len(), rows), (101, 101, 9));
    assert_eq!(problems.text(), "");
    assert!(problems.calls_itself_synthetic());
}

#[test]
fn an_accounts_rows_do_not_depend_on_the_other_accounts() {
    let one = NonZeroU32::MIN;
    let alone: Vec<_> = history(History::Analyses, 1, one, THREE, end()).collect();
    let among: Vec<_> = history(History::Analyses, 1, THREE, THREE, end())
        .take(4)
        .collect();
    assert_eq!(alone, among);
}

/// A row of a history.
struct Row {
    /// Account, name, sector and département.
    company: String,
    departement: String,
    month: u32,
    created_at: String,
    score: f64,
    rating: String,
}

impl Row {
    fn read(line: &str) -> Self {
        let cells: Vec<_> = line.split(',').collect();
        // The name takes two cells, for its comma.
        let [
            account,
            _,
            name,
            place,
            sector,
            departement,
            score,
            rating,
            created_at,
            _,
        ] = cells[..]
        else {
            panic!("{line}")
        };
        Self {
            company: [account, name, place, sector, departement].join(","),
            departement: departement.to_owned(),
            month: created_at[5..7].parse().unwrap(),
            created_at: created_at.to_owned(),
            score: score.parse().unwrap(),
            rating: rating.to_owned(),
        }
    }

    /// Whether the row is from the driest (true) or the wettest three months of its département (false).
    fn is_dry(&self) -> Option<bool> {
        let [dry, wet] = match self.departement.as_str() {
            "971" | "972" => [2..=4, 8..=10],
            "973" | "974" | "976" => [9..=11, 3..=5],
            _ => [7..=9, 1..=3],
        };
        let is_dry = dry.contains(&self.month);
        (is_dry || wet.contains(&self.month)).then_some(is_dry)
    }
}

/// Rows of each company, the oldest first.
fn companies(which: History, seed: u64) -> BTreeMap<String, Vec<Row>> {
    let mut companies = BTreeMap::<_, Vec<_>>::new();
    for line in history(which, seed, THREE, ROWS, end()).skip(1) {
        let row = Row::read(&line);
        companies.entry(row.company.clone()).or_default().push(row);
    }
    for rows in companies.values_mut() {
        rows.sort_by(|one, next| one.created_at.cmp(&next.created_at));
    }
    companies
}

fn mean<'a>(rows: impl Iterator<Item = &'a Row>) -> f64 {
    let scores: Vec<_> = rows.map(|row| row.score).collect();
    scores.iter().sum::<f64>() / scores.len() as f64
}

/// Mean score in the driest or the wettest three months.
fn seasonal(rows: &[Row], is_dry: bool) -> f64 {
    mean(rows.iter().filter(|row| row.is_dry() == Some(is_dry)))
}

/// Points by which the last year's mean is above that of the first one, two years before; both have the same seasons.
fn rise(rows: &[Row]) -> f64 {
    let year = rows.len() / 3;
    mean(rows[2 * year..].iter()) - mean(rows[..year].iter())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_index_is_in_the_band_of_the_level_beside_it(seed: u64) {
        let levels = register::levels();
        let mut problems = Problems::new("demo");
        let rows = stress(seed).collect::<Vec<_>>().join("\n");
        let rows = dataset::stress::read(Box::new(Cursor::new(rows)), &mut problems).unwrap();
        for row in rows {
            let derived = Level::from_stress_index(row.stress_index.get());
            let code = row.departement.code;
            // Overseas départements get the derived level.
            prop_assert_eq!(levels.get(code).copied().unwrap_or(derived), derived, "{}", code);
        }
    }

    #[test]
    fn drought_follows_the_index_and_overall_is_the_mean_of_both_risks(seed: u64) {
        for (stress, risk) in stress(seed).zip(risk(seed)).skip(1) {
            let numbers = |row: &str, names: usize| -> Vec<f64> {
                row.split(',').skip(names).map_while(|cell| cell.parse().ok()).collect()
            };
            let index = numbers(&stress, 2)[0];
            let [flood, drought, overall] = numbers(&risk, 2)[..] else { panic!("{risk}") };
            prop_assert!((drought - 20.0 * index).abs() < 10.1, "{}: {}", stress, risk);
            prop_assert!((overall - (flood + drought) / 2.0).abs() < 0.1, "{}", risk);
        }
    }

    #[test]
    fn a_high_score_is_a_bad_analysis_and_a_good_audit(seed: u64) {
        for (which, letters) in [(History::Analyses, "ABCDE"), (History::Audits, "EDCBA")] {
            let mut rows: Vec<_> = companies(which, seed).into_values().flatten().collect();
            rows.sort_by(|one, next| one.score.total_cmp(&next.score));
            let place = |row: &Row| letters.find(&row.rating).unwrap();
            prop_assert!(rows.is_sorted_by_key(place));
            for row in &rows {
                let band = 20.0 * place(row) as f64;
                prop_assert!((band..=band + 20.0).contains(&row.score), "{} {}", row.score, row.rating);
            }
        }
    }

    #[test]
    fn a_company_is_analysed_and_audited_for_three_years_and_moves_in_small_steps(seed: u64) {
        let histories = [History::Analyses, History::Audits].map(|which| companies(which, seed));
        prop_assert!(histories[0].keys().eq(histories[1].keys()));
        for (company, rows) in histories.iter().flatten() {
            prop_assert_eq!(rows.len() as i64, VISITS, "{}", company);
            for pair in rows.windows(2) {
                let step = (pair[1].score - pair[0].score).abs();
                prop_assert!(step < STEP, "{}: {} at {}", company, step, pair[1].created_at);
            }
        }
    }

    #[test]
    fn risk_is_higher_and_compliance_lower_in_the_dry_season(seed: u64) {
        for (company, rows) in companies(History::Analyses, seed) {
            prop_assert!(seasonal(&rows, true) > seasonal(&rows, false) + 5.0, "{}", company);
        }
        for (company, rows) in companies(History::Audits, seed) {
            prop_assert!(seasonal(&rows, true) < seasonal(&rows, false), "{}", company);
        }
    }
}

#[test]
fn some_companies_rise_over_the_years_and_others_fall() {
    for which in [History::Analyses, History::Audits] {
        let histories = (0..20).flat_map(|seed| companies(which, seed).into_values());
        let rises: Vec<_> = histories.map(|rows| rise(&rows)).collect();
        for direction in [1.0, -1.0] {
            let moved = rises.iter().any(|rise| rise * direction > 2.0);
            assert!(moved, "{which:?}, {direction}: {rises:?}");
        }
    }
}

#[test]
fn every_departement_has_companies_of_every_trade_overseas_too() {
    const PAIRS: usize = 6 * 101;
    let companies = Companies::new(random(1, 2), departements(1).into()).take(PAIRS);
    let pairs: BTreeSet<_> = companies
        .map(|company| (company.sector, company.departement.code))
        .collect();
    assert_eq!(pairs.len(), PAIRS);
    assert!(pairs.contains(&("36.00Z", "976")));
}

#[test]
fn companies_of_an_account_have_names_of_their_own() {
    let count = 2000;
    let mut names: Vec<_> = Companies::new(random(1, 2), departements(1).into())
        .take(count)
        .map(|company| company.name)
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}
