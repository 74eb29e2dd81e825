//! `GET /api/v1/stress`: the water stress of the départements ([`StressRecord`]).
//!
//! Without `dept` the answer is `{count, updatedAt, data}` with all records; with it the same with one record, and
//! that record's fields at the top level.

use serde::Serialize;
use water_database::departements::Dataset;
use water_domain::StressRecord;
use water_http::json;

use crate::answers::{Answers, Envelope};
use crate::csv::Row;

/// A record, in the envelope and at the top level: the specification leaves open whether a client reads
/// `.data[0].stressIndex` or `.stressIndex`, so both are there.
#[derive(Serialize)]
struct Single<'a> {
    #[serde(flatten)]
    envelope: Envelope<'a, StressRecord>,
    #[serde(flatten)]
    record: &'a StressRecord,
}

/// Makes all answers from a dataset.
pub fn answers(dataset: &Dataset<StressRecord>) -> Answers {
    Answers::from_dataset(dataset, |record| {
        let envelope = Envelope::new(record.updated_at, std::slice::from_ref(record));
        let single = Single { envelope, record };
        (record.departement.code, json::to_vec(&single))
    })
}

impl Row for StressRecord {
    const HEADER: &'static [&'static str] = &[
        "dept",
        "name",
        "stressIndex",
        "level",
        "levelSource",
        "levelAsOf",
        "updatedAt",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.departement.code.to_owned(),
            self.departement.name.to_owned(),
            self.stress_index.to_string(),
            self.level.to_string(),
            self.level_source.as_str().to_owned(),
            self.level_as_of.to_string(),
            self.updated_at.to_string(),
        ]
    }
}
