//! The two routes, answered from the datasets in memory.

use warp::{Filter, Rejection, Reply};
use water_domain::Format;
use water_http::problem::texts;
use water_http::route::{RISQUE, Route, STRESS};
use water_http::{Problem, Query, Representation};

use crate::answers::Answers;
use crate::datasets::Datasets;
use crate::refresh::Current;

/// All routes of this service.
pub fn routes(
    current: Current,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    let stress = route(&STRESS, Current::clone(&current), |datasets| {
        datasets.stress.as_ref()
    });
    stress.or(route(&RISQUE, current, |datasets| datasets.risk.as_ref()))
}

/// A route, answered from the datasets as they are when the request arrives: all records, or one with `dept`. `of`
/// selects the path's answers.
fn route(
    route: &'static Route,
    current: Current,
    of: fn(&Datasets) -> Option<&Answers>,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    water_http::get(route).and(water_http::format()).map(
        move |query: Result<Query<'static>, Problem>, format| {
            answer(&query?, format, current.load().as_deref(), of)
        },
    )
}

fn answer(
    query: &Query<'static>,
    format: Format,
    datasets: Option<&Datasets>,
    of: fn(&Datasets) -> Option<&Answers>,
) -> Result<Representation, Problem> {
    let departement = query.departement()?;
    let datasets = datasets.ok_or_else(Problem::dependency_unavailable)?;
    let answers = of(datasets).ok_or_else(Problem::no_data)?;
    let Some(departement) = departement else {
        return Ok(answers.list.choose(format));
    };
    let answer = answers.by_code.get(departement.code);
    answer
        .map(|forms| forms.choose(format))
        .ok_or_else(|| Problem::not_found(texts::no_record()))
}
