//! `GET /api/v1/risque`: the water risk of the départements ([`RiskRecord`]).
//!
//! Without `dept` the answer is `{count, updatedAt, data}` with all records; with it the one record.

use water_database::departements::Dataset;
use water_domain::RiskRecord;
use water_http::json;

use crate::answers::Answers;
use crate::csv::Row;

/// Makes all answers from a dataset.
pub fn answers(dataset: &Dataset<RiskRecord>) -> Answers {
    Answers::from_dataset(dataset, |record| {
        (record.departement.code, json::to_vec(record))
    })
}

impl Row for RiskRecord {
    const HEADER: &'static [&'static str] = &[
        "dept",
        "name",
        "flood",
        "drought",
        "overall",
        "rating",
        "updatedAt",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.departement.code.to_owned(),
            self.departement.name.to_owned(),
            self.flood.to_string(),
            self.drought.to_string(),
            self.overall.to_string(),
            self.rating.to_string(),
            self.updated_at.to_string(),
        ]
    }
}
