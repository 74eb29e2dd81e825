//! Rows to load, each with no more words than matter to the test.

use water_database::writer::{Batch, HistoryRow, RiskRow, StressRow};
use water_domain::{Level, Number, RiskRating, Timestamp, departement};

/// The beginning of 2026, in milliseconds since the epoch.
const YEAR: i64 = 1_767_225_600_000;

/// Returns midnight of a day of 2026, counted from 1.
pub fn day(day: i64) -> Timestamp {
    Timestamp::from_millis(YEAR + (day - 1) * 86_400_000).unwrap()
}

/// Returns a stress record with a level.
pub fn stress(code: &str, index: f64) -> StressRow {
    StressRow {
        departement: departement::parse(code).unwrap(),
        stress_index: Number::try_from(index).unwrap(),
        level: Some(Level::AlerteRenforcee),
    }
}

/// Returns a risk record with a rating; its other scores are the same in all.
pub fn risk(code: &str, overall: f64) -> RiskRow {
    RiskRow {
        departement: departement::parse(code).unwrap(),
        flood: Number::try_from(12.25).unwrap(),
        drought: Number::try_from(100.0).unwrap(),
        overall: Number::try_from(overall).unwrap(),
        rating: Some(RiskRating::D),
        updated_at: None,
    }
}

/// A row of a history: the values of its place, and a score to distinguish its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The account that may read it.
    pub account: &'static str,
    /// Unique in the account's history.
    pub id: String,
    /// Milliseconds after the beginning of 2026.
    pub at: i64,
    /// Any number.
    pub score: f64,
    /// The company's name.
    pub company: &'static str,
}

/// Returns a row of `acme`, so many milliseconds after the beginning of 2026.
pub fn row(id: impl ToString, at: i64) -> Row {
    Row {
        account: "acme",
        id: id.to_string(),
        at,
        score: 61.5,
        company: "Eaux de l'Hérault",
    }
}

/// Returns `acme`'s rows `r0000`, `r0001` … a second apart; the last is the newest.
pub fn rows(count: i64) -> Vec<Row> {
    (0..count)
        .map(|number| row(format!("r{number:04}"), number * 1000))
        .collect()
}

impl Row {
    /// Gives the row another account.
    pub fn account(self, account: &'static str) -> Self {
        Self { account, ..self }
    }

    /// Gives the row another score.
    pub fn score(self, score: f64) -> Self {
        Self { score, ..self }
    }

    /// Gives the row another company.
    pub fn company(self, company: &'static str) -> Self {
        Self { company, ..self }
    }
}

/// Returns rows on the lines of a file from `line` on.
pub fn batch(rows: &[Row], line: u64) -> Batch {
    let mut batch = Batch::default();
    for (line, row) in (line..).zip(rows) {
        batch.push(&HistoryRow {
            line,
            account_id: row.account,
            id: &row.id,
            company_name: row.company,
            sector_code: "36.00Z",
            dept_code: "34",
            score: Number::try_from(row.score).unwrap(),
            rating: "B+",
            created_at: Timestamp::from_millis(YEAR + row.at).unwrap(),
        });
    }
    batch
}
