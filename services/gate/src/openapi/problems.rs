//! The problems that a route can answer, made by the code that makes them in earnest.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use water_http::{Code, Problem, ProblemBody, Query, RequestIds};

use crate::route::{Route, unknown_path};

/// One problem as clients see it.
pub(super) struct Example {
    pub(super) code: &'static str,
    pub(super) body: Value,
}

/// All problems of a route's GET and HEAD, by status.
pub(super) fn by_status(route: &Route) -> BTreeMap<StatusCode, Vec<Example>> {
    let mut statuses: BTreeMap<StatusCode, Vec<Example>> = BTreeMap::new();
    for problem in of_parameters(route).chain(of_every_route()) {
        let code = problem.code();
        statuses.entry(code.status()).or_default().push(Example {
            code: code.as_str(),
            body: body(problem),
        });
    }
    statuses.insert(StatusCode::INTERNAL_SERVER_ERROR, vec![internal()]);
    statuses
}

fn of_every_route() -> impl Iterator<Item = Problem> {
    [
        Problem::invalid_query(),
        Problem::body_not_allowed(),
        Problem::invalid_host(),
        Problem::key_in_query(),
        Problem::missing_credentials(),
        Problem::invalid_key(),
        Problem::key_expired(),
        Problem::key_suspended(),
        Problem::key_not_yet_valid(),
        Problem::invalid_request(),
        Problem::plan_insufficient(),
        Problem::uri_too_long(),
        Problem::expectation_failed(),
        Problem::rate_limited(&["minute"], 12),
        Problem::headers_too_large(),
        Problem::dependency_unavailable(),
        Problem::upstream_unavailable(),
    ]
    .into_iter()
}

fn of_parameters(route: &Route) -> impl Iterator<Item = Problem> {
    let parse = |text| Query::parse(Some(text)).expect("the examples can be decoded");
    let problems = match route.parameters {
        ["dept"] => [
            parse("dept=x").departement().err(),
            parse("dept=20").departement().err(),
            Some(Problem::no_data()),
        ],
        [] => [Some(unknown_path()), None, None],
        _ => [
            parse("limit=0").page().err(),
            Some(unknown_path()),
            Some(Problem::cursor_expired("changedSince")),
        ],
    };
    problems.into_iter().flatten()
}

fn body(problem: Problem) -> Value {
    let answer = problem.into_response::<Bytes>(&RequestIds::new(0x5f1c_8a90_b7d2_4e63).mint());
    serde_json::from_slice(answer.body()).expect("a problem is JSON")
}

/// Made without a cause, which would be logged.
fn internal() -> Example {
    let code = Code::Internal;
    let body = ProblemBody {
        type_uri: code.type_uri(),
        title: code.title(),
        status: code.status().as_u16(),
        detail: "The failure has been recorded under the requestId; trying again is no use.",
        code: code.as_str(),
        request_id: "5f1c8a90b7d24e63-0",
        parameter: None,
        violated_policies: &[],
    };
    Example {
        code: code.as_str(),
        body: serde_json::to_value(body).expect("texts and numbers are JSON"),
    }
}
