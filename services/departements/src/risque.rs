//! `GET /api/v1/risque`: the water risk of the départements ([`RiskRecord`]).

use std::sync::Arc;

use warp::{Filter, Rejection, Reply};
use water_database::departements::Dataset;
use water_domain::RiskRecord;
use water_http::{Problem, Query, Representation};

use crate::datasets::{Answers, Datasets, json};
use crate::refresh::Current;
use crate::routes;

/// `GET /api/v1/risque` answers `{count, updatedAt, data}` with all records;
/// `GET /api/v1/risque?dept=34` one record.
pub fn route(
    current: Current,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    water_http::get("/api/v1/risque")
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
    routes::choose(datasets.risk.as_ref(), departement)
}

/// Makes all answers from a dataset; that for one département is the record itself
/// (specification §4.2).
pub fn answers(dataset: &Dataset<RiskRecord>) -> Answers {
    Answers::of(dataset, |record| (record.departement.code, json(record)))
}
