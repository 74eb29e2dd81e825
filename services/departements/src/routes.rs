//! The two routes, and what they answer from.

use std::sync::Arc;

use warp::{Filter, Rejection, Reply};
use water_domain::Departement;
use water_http::{Problem, Representation};

use crate::datasets::{Answers, Datasets};
use crate::refresh::Current;
use crate::{risque, stress};

/// All routes of this service.
pub fn routes(
    current: Current,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    stress::route(current.clone()).or(risque::route(current))
}

/// The datasets as they are when the request comes; the whole answer is of this one moment.
pub fn datasets(
    current: Current,
) -> impl Filter<Extract = (Option<Arc<Datasets>>,), Error = std::convert::Infallible> + Clone {
    warp::any().map(move || current.load_full())
}

/// Chooses the answer of one dataset: to all, or to one département.
pub fn choose(
    answers: Option<&Answers>,
    departement: Option<&Departement>,
) -> Result<Representation, Problem> {
    let answers = answers.ok_or_else(Problem::no_data)?;
    let Some(departement) = departement else {
        return Ok(answers.list.clone());
    };
    let answer = answers.by_code.get(departement.code).cloned();
    answer.ok_or_else(|| Problem::not_found("There is no record of this département."))
}
