//! Problems that a route can answer, made by the code that also makes the real ones.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::Value;
use water_http::{Language, Problem, Query, RequestIds, Route};

use crate::route::unknown_path;

/// A problem as clients see it.
pub(super) struct Example {
    pub(super) code: &'static str,
    pub(super) body: Value,
}

/// Returns all problems of a route's GET and HEAD, by status.
pub(super) fn by_status(route: &Route) -> BTreeMap<StatusCode, Vec<Example>> {
    let mut statuses: BTreeMap<StatusCode, Vec<Example>> = BTreeMap::new();
    for problem in of_parameters(route).chain(of_every_route()) {
        let code = problem.code();
        statuses.entry(code.status()).or_default().push(Example {
            code: code.as_str(),
            body: body(&problem),
        });
    }
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
        Problem::internal("an example"),
        Problem::dependency_unavailable(),
        Problem::upstream_unavailable(),
    ]
    .into_iter()
}

fn of_parameters(route: &Route) -> impl Iterator<Item = Problem> {
    let parse = |text| Query::parse(Some(text)).expect("the examples can be decoded");
    let problems = match route.parameters {
        ["dept", ..] => [
            parse("Dept=34").only(route.parameters).err(),
            parse("dept=x").departement().err(),
            parse("dept=20").departement().err(),
            Some(Problem::no_data()),
        ],
        [] => [
            parse("dept=34").only(&[]).err(),
            Some(unknown_path()),
            None,
            None,
        ],
        _ => [
            parse("changed_since=x").only(route.parameters).err(),
            parse("limit=0").page().err(),
            Some(unknown_path()),
            Some(Problem::cursor_expired("changedSince")),
        ],
    };
    problems.into_iter().flatten()
}

/// Returns the body without logging a cause.
fn body(problem: &Problem) -> Value {
    let id = RequestIds::new(0x5f1c_8a90_b7d2_4e63).mint();
    serde_json::from_slice(&problem.body(&id, Language::English)).expect("a problem is JSON")
}
