//! The service on a database of the test's own, and rows to load.

use water_database::Writer;
use water_database::writer::{RiskRow, StressRow};
use water_domain::{Level, Number, RiskRating, Timestamp, departement};
use water_harness::Postgres;

pub use water_kit::{NEXT, Running, SOON, Signature, load, migrated, problem, writer};

/// The service, in this process, on a database that may be away.
pub fn start(postgres_url: &str) -> Running {
    Running::start(postgres_url, water_departements::start)
}

/// The same, once it is ready.
pub async fn ready(postgres_url: &str) -> Running {
    start(postgres_url).ready().await
}

/// The service with one load of each dataset, and a writer for further ones.
pub async fn with_data() -> (Running, Writer) {
    let database = migrated(Postgres::shared().await.unwrap()).await;
    let mut writer = writer(&database).await;
    let codes = ["30", "2B", "34", "01", "971", "2A", "29"];
    let stress = codes.map(|code| stress(code, 3.0));
    writer
        .replace_stress(&stress, day(2), &load())
        .await
        .unwrap();
    let risks = codes.map(|code| risk(code, 62.5));
    writer.replace_risk(&risks, day(1), &load()).await.unwrap();
    (ready(&database.url_as("water_reader")).await, writer)
}

/// Midnight of a day of January 2026, counted from 1.
pub fn day(day: i64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + (day - 1) * 86_400_000).unwrap()
}

pub fn stress(code: &str, index: f64) -> StressRow {
    StressRow {
        departement: departement::parse(code).unwrap(),
        stress_index: Number::try_from(index).unwrap(),
        level: Some(Level::AlerteRenforcee),
    }
}

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
