//! `GET /api/v1/stress`: the water stress of the départements ([`StressRecord`]).

use std::sync::Arc;

use serde::Serialize;
use warp::{Filter, Rejection, Reply};
use water_database::departements::Dataset;
use water_domain::StressRecord;
use water_http::{Problem, Query, Representation};

use crate::datasets::{Answers, Datasets, Envelope, json};
use crate::refresh::Current;
use crate::routes;

/// `GET /api/v1/stress` answers `{count, updatedAt, data}` with all records;
/// `GET /api/v1/stress?dept=34` the same with one, and its four fields beside them.
pub fn route(
    current: Current,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    water_http::get("/api/v1/stress")
        .and(water_http::query())
        .and(routes::datasets(current))
        .then(answer)
}

async fn answer(
    query: Query<'static>,
    datasets: Option<Arc<Datasets>>,
) -> Result<Representation, Problem> {
    let departement = query.departement()?;
    let datasets = datasets.ok_or_else(Problem::dependency_unavailable)?;
    routes::choose(datasets.stress.as_ref(), departement)
}

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
