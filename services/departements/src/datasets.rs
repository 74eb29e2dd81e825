//! Both datasets in memory: every answer that can be asked for, made once when the data changed.

use std::collections::HashMap;

use serde::Serialize;
use water_database::departements::{Dataset, Snapshot};
use water_domain::Timestamp;
use water_http::Representation;
use water_http::representation::CACHE_DATASET;

/// The stress and risk answers of one snapshot of the database.
#[derive(Debug)]
pub struct Datasets {
    /// The answers of `/api/v1/stress`; none before the first load.
    pub stress: Option<Answers>,
    /// The answers of `/api/v1/risque`; none before the first load.
    pub risk: Option<Answers>,
}

/// The answers of one path.
#[derive(Debug)]
pub struct Answers {
    /// To the request for all départements.
    pub list: Representation,
    /// To the request for one, by its code.
    pub by_code: HashMap<&'static str, Representation>,
}

/// A list of records: `{count, updatedAt, data}` (specification §4.1).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<'a, R> {
    count: usize,
    updated_at: Timestamp,
    data: &'a [R],
}

impl Datasets {
    /// Serialises and compresses everything.
    pub fn prepare(snapshot: &Snapshot) -> Self {
        Self {
            stress: snapshot.stress.as_ref().map(crate::stress::answers),
            risk: snapshot.risk.as_ref().map(crate::risque::answers),
        }
    }
}

impl<'a, R> Envelope<'a, R> {
    /// The envelope of these records.
    pub fn new(updated_at: Timestamp, data: &'a [R]) -> Self {
        Self {
            count: data.len(),
            updated_at,
            data,
        }
    }
}

impl Answers {
    /// The list of all records, and an answer for each made by `one`.
    pub fn of<R: Serialize>(
        dataset: &Dataset<R>,
        one: impl Fn(&R) -> (&'static str, Vec<u8>),
    ) -> Self {
        let by_code = dataset.records.iter().map(|record| {
            let (code, json) = one(record);
            (code, Representation::prepared(json, CACHE_DATASET))
        });
        Self {
            list: Representation::prepared(
                json(&Envelope::new(dataset.updated_at, &dataset.records)),
                CACHE_DATASET,
            ),
            by_code: by_code.collect(),
        }
    }
}

/// The bytes of a body.
pub fn json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("records are always JSON")
}
