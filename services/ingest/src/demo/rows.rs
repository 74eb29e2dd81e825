//! The rows of the synthetic datasets, as CSV. Each calls itself synthetic, wherever the file goes.

use std::num::NonZeroU32;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use water_database::writer::History;
use water_domain::{Timestamp, departement};

use crate::dataset::history::columns;

/// How far a history goes back from its end.
const YEARS: i64 = 3;
const YEAR_MILLIS: i64 = 365 * 86_400_000;

/// A few sections of NAF rév. 2.
const SECTORS: [&str; 6] = ["01.13Z", "10.51A", "20.15Z", "35.11Z", "36.00Z", "37.00Z"];
const RATINGS: [&str; 6] = ["A", "B+", "B", "C", "D", "E"];
const TRADES: [&str; 6] = [
    "Brasserie",
    "Laiterie",
    "Papeterie",
    "Maraîchage",
    "Énergie",
    "Régie des eaux",
];
/// No company is called "exemple".
const INVENTED: &str = "Exemple";

/// `dept,name,stressIndex,synthetic`; without levels, so that it never overwrites the register's.
pub fn stress(seed: u64) -> impl Iterator<Item = String> + Send {
    let mut random = random(seed, 1);
    let row = move |departement: &water_domain::Departement| {
        format!(
            "{},{},{},true",
            departement.code,
            departement.name,
            tenths(&mut random, 50)
        )
    };
    header("dept,name,stressIndex,synthetic").chain(departement::all().iter().map(row))
}

/// `dept,name,flood,drought,overall,synthetic`; the rating is derived.
pub fn risk(seed: u64) -> impl Iterator<Item = String> + Send {
    let mut random = random(seed, 2);
    let row = move |departement: &water_domain::Departement| {
        let [flood, drought] = [0; 2].map(|_| random.random_range(0..=1000));
        let [flood, drought, overall] =
            [flood, drought, (flood + drought) / 2].map(|tenths| f64::from(tenths) / 10.0);
        format!(
            "{},{},{flood},{drought},{overall},true",
            departement.code, departement.name
        )
    };
    header("dept,name,flood,drought,overall,synthetic").chain(departement::all().iter().map(row))
}

/// The history of `accounts` accounts, `rows` each, ending at `end`. An account's rows do not
/// depend on how many other accounts there are.
pub fn history(
    history: History,
    seed: u64,
    accounts: NonZeroU32,
    rows: NonZeroU32,
    end: Timestamp,
) -> impl Iterator<Item = String> + Send {
    let columns: Vec<_> = columns(history).all().collect();
    let stream = match history {
        History::Analyses => 3,
        History::Audits => 4,
    };
    header(&columns.join(",")).chain((1..=accounts.get()).flat_map(move |account| {
        let mut random = random(seed, stream + (u64::from(account) << 8));
        (1..=rows.get()).map(move |number| {
            let created_at = end.as_millis() - random.random_range(1..=YEARS * YEAR_MILLIS);
            let created_at = Timestamp::from_millis(created_at).unwrap_or(end);
            let trade = TRADES[random.random_range(0..TRADES.len())];
            let sector = SECTORS[random.random_range(0..SECTORS.len())];
            let departement = departement::all()[random.random_range(0..departement::all().len())];
            let rating = RATINGS[random.random_range(0..RATINGS.len())];
            let score = tenths(&mut random, 1000);
            // The quotes are for the comma, which company names do have.
            let company = format!("\"{trade} {INVENTED}, {}\"", departement.name);
            format!(
                "demo-{account},{history}-{number:07},{company},{sector},{},{score},{rating},{created_at},true",
                departement.code
            )
        })
    }))
}

fn header(columns: &str) -> std::iter::Once<String> {
    std::iter::once(columns.to_owned())
}

/// Independent of the other streams of the same seed.
fn random(seed: u64, stream: u64) -> StdRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&stream.to_le_bytes());
    StdRng::from_seed(bytes)
}

/// A number with one decimal, from 0 to a tenth of `max`.
fn tenths(random: &mut StdRng, max: u32) -> f64 {
    f64::from(random.random_range(0..=max)) / 10.0
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::cell::NullWords;
    use crate::dataset;
    use crate::dataset::history::Rules;
    use crate::problem::Problems;

    const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();

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
        let mut problems = Problems::of("demo");
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
}
