//! `GET /api/v1/stress`: the water stress of the départements ([`StressRecord`]).
//!
//! Without `dept` it answers `{count, updatedAt, data}` with all records; with it the same with one,
//! and its four fields beside them.

use serde::Serialize;
use water_database::departements::Dataset;
use water_domain::StressRecord;

use crate::answers::{Answers, Envelope, json};
use crate::csv::Row;

/// One record, in the envelope and beside it: the specification leaves open whether a client reads
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
    Answers::of(dataset, |record| {
        let envelope = Envelope::new(dataset.updated_at, std::slice::from_ref(record));
        (record.departement.code, json(&Single { envelope, record }))
    })
}

impl Row for StressRecord {
    const HEADER: &'static [&'static str] = &["dept", "name", "stressIndex", "level"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.departement.code.to_owned(),
            self.departement.name.to_owned(),
            self.stress_index.to_string(),
            self.level.to_string(),
        ]
    }
}
