//! Problems that a path can answer, made by the code that also makes the real ones.

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

/// All problems of a path's GET and HEAD, by status.
pub(super) type ByStatus = BTreeMap<StatusCode, Vec<Example>>;

/// Returns the problems of a route.
pub(super) fn of_route(route: &Route) -> ByStatus {
    let of_requests = of_every_request().chain(of_every_route());
    by_status(of_parameters(route).chain(of_requests))
}

/// Returns the problems of the description, which needs no key and asks no service.
pub(super) fn of_description() -> ByStatus {
    let unknown = parse("dept=34").only(&[]).err();
    by_status(unknown.into_iter().chain(of_every_request()))
}

fn by_status(problems: impl Iterator<Item = Problem>) -> ByStatus {
    let mut statuses = ByStatus::new();
    for problem in problems {
        let code = problem.code();
        statuses.entry(code.status()).or_default().push(Example {
            code: code.as_str(),
            body: body(&problem),
        });
    }
    statuses
}

/// Returns the problems that come before authentication, and a bug's.
fn of_every_request() -> impl Iterator<Item = Problem> {
    [
        Problem::invalid_query(),
        Problem::body_not_allowed(),
        Problem::invalid_host(),
        Problem::key_in_query(),
        Problem::uri_too_long(),
        Problem::expectation_failed(),
        Problem::headers_too_large(),
        Problem::internal("an example"),
    ]
    .into_iter()
}

fn of_every_route() -> impl Iterator<Item = Problem> {
    [
        Problem::missing_credentials(),
        Problem::invalid_key(),
        Problem::key_expired(),
        Problem::key_suspended(),
        Problem::key_not_yet_valid(),
        Problem::invalid_request(),
        Problem::plan_insufficient(),
        Problem::rate_limited(&["minute"], 12),
        Problem::dependency_unavailable(),
        Problem::upstream_unavailable(),
    ]
    .into_iter()
}

fn of_parameters(route: &Route) -> impl Iterator<Item = Problem> {
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

fn parse(example: &'static str) -> Query<'static> {
    Query::parse(Some(example)).expect("the examples can be decoded")
}

/// Returns the body without logging a cause.
fn body(problem: &Problem) -> Value {
    let id = RequestIds::new(0x5f1c_8a90_b7d2_4e63).mint();
    serde_json::from_slice(&problem.body(&id, Language::English)).expect("a problem is JSON")
}
