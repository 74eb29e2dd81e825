//! The answers of one path: made and compressed once, when the data has changed.

use std::collections::HashMap;

use http::HeaderValue;
use serde::Serialize;
use water_database::departements::Dataset;
use water_domain::{Format, Timestamp};
use water_http::representation::{CACHE_DATASET, DESCRIBED_BY};
use water_http::{Representation, json};

use crate::csv::{self, Row};

/// The answers of one path.
#[derive(Debug)]
pub struct Answers {
    /// Answer for all départements.
    pub list: Forms,
    /// Answers for one département, by its code.
    pub by_code: HashMap<&'static str, Forms>,
}

/// An answer in each form.
#[derive(Debug)]
pub struct Forms {
    json: Representation,
    csv: Representation,
}

/// A list of records: `{count, updatedAt, data}`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<'a, R> {
    count: usize,
    updated_at: Timestamp,
    data: &'a [R],
}

impl<'a, R> Envelope<'a, R> {
    /// Makes the envelope of these records.
    pub fn new(updated_at: Timestamp, data: &'a [R]) -> Self {
        Self {
            count: data.len(),
            updated_at,
            data,
        }
    }
}

impl Answers {
    /// Makes the list of all records, and an answer for each, whose JSON `one` makes.
    pub fn from_dataset<R: Serialize + Row>(
        dataset: &Dataset<R>,
        one: impl Fn(&R) -> (&'static str, Vec<u8>),
    ) -> Self {
        let by_code = dataset.records.iter().map(|record| {
            let (code, json) = one(record);
            (code, Forms::prepare(json, std::slice::from_ref(record)))
        });
        let list = json::to_vec(&Envelope::new(dataset.updated_at, &dataset.records));
        Self {
            list: Forms::prepare(list, &dataset.records),
            by_code: by_code.collect(),
        }
    }
}

impl Forms {
    fn prepare<R: Row>(json: Vec<u8>, records: &[R]) -> Self {
        let prepare = |body| {
            Representation::prepared(body, CACHE_DATASET)
                .with_link(HeaderValue::from_static(DESCRIBED_BY))
        };
        Self {
            json: prepare(json),
            csv: prepare(csv::document(records)).in_format(Format::Csv),
        }
    }

    /// Returns the answer in the requested form; there is no other than these.
    pub fn choose(&self, format: Format) -> Representation {
        match format {
            Format::Csv => self.csv.clone(),
            Format::Json | Format::NdJson => self.json.clone(),
        }
    }
}
