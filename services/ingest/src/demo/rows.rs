//! The rows of the synthetic datasets, as CSV. Each row says that it is synthetic, wherever the file goes.

#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use water_database::writer::History;
use water_domain::{RiskRating, Timestamp};

use super::company::{Companies, Company, YEAR_MILLIS};
use super::scores::{Scores, scores};
use crate::dataset::history::columns;

/// Rows of each company, three years of them.
const VISITS: i64 = 24;
const INTERVAL_MILLIS: i64 = 3 * YEAR_MILLIS / VISITS;

/// `dept,name,stressIndex,synthetic`; without levels, so that it never overwrites the register's.
pub fn stress(seed: u64) -> impl Iterator<Item = String> + Send {
    let row = |scores: Scores| {
        let stress_index = points(scores.stress_index);
        let departement = scores.departement;
        format!(
            "{},{},{stress_index},true",
            departement.code, departement.name
        )
    };
    header("dept,name,stressIndex,synthetic").chain(departements(seed).into_iter().map(row))
}

/// `dept,name,flood,drought,overall,synthetic`; the rating is derived.
pub fn risk(seed: u64) -> impl Iterator<Item = String> + Send {
    let row = |scores: Scores| {
        let [flood, drought, overall] = [scores.flood, scores.drought, scores.overall].map(points);
        format!(
            "{},{},{flood},{drought},{overall},true",
            scores.departement.code, scores.departement.name
        )
    };
    header("dept,name,flood,drought,overall,synthetic")
        .chain(departements(seed).into_iter().map(row))
}

/// The history of `accounts` accounts, `rows` each, ending at `end`. An account's rows do not
/// depend on how many other accounts there are, and its companies are the same in both histories.
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
    let scores: Arc<[_]> = departements(seed).into();
    header(&columns.join(",")).chain((1..=accounts.get()).flat_map(move |account| {
        let of_account = |stream| random(seed, stream + (u64::from(account) << 8));
        let mut random = of_account(stream);
        let visits = move |company: Company| {
            let row = |visit| self::visit(history, &company, visit, end, &mut random);
            (0..VISITS).map(row).collect::<Vec<_>>()
        };
        let companies = Companies::new(of_account(2), scores.clone());
        (1..=rows.get())
            .zip(companies.flat_map(visits))
            .map(move |(number, visit)| format!("demo-{account},{history}-{number:07},{visit}"))
    }))
}

/// Row of a company's visit, the newest first, without account and id.
fn visit(
    history: History,
    company: &Company,
    number: i64,
    end: Timestamp,
    random: &mut StdRng,
) -> String {
    let thousandths = number * 1000 + company.shift + random.random_range(0..=250);
    let age = thousandths * INTERVAL_MILLIS / 1000;
    let created_at = end.as_millis() - age;
    let course = match history {
        History::Analyses => &company.risk,
        History::Audits => &company.compliance,
    };
    let departement = company.departement;
    let score = course.at(created_at, age, departement) + random.random_range(-5..=5);
    let score = points(score);
    let created_at = Timestamp::from_millis(created_at).unwrap_or(end);
    // Company names contain a comma, hence the quotes.
    format!(
        "\"{}\",{},{},{score},{},{created_at},true",
        company.name,
        company.sector,
        departement.code,
        rating(history, score)
    )
}

/// Rates an analysis as a département's risk, and an audit by how far it is from full compliance.
fn rating(history: History, score: f64) -> RiskRating {
    RiskRating::from_overall(match history {
        History::Analyses => score,
        History::Audits => 100.0 - score,
    })
}

fn departements(seed: u64) -> Vec<Scores> {
    scores(random(seed, 1))
}

fn header(columns: &str) -> std::iter::Once<String> {
    std::iter::once(columns.to_owned())
}

/// Random numbers, independent of the other streams of the same seed.
fn random(seed: u64, stream: u64) -> StdRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&stream.to_le_bytes());
    StdRng::from_seed(bytes)
}

/// Converts tenths of a point.
fn points(tenths: i64) -> f64 {
    tenths as f64 / 10.0
}
