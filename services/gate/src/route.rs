//! The route of a request.

use water_http::problem::texts;
use water_http::route::{ROUTES, Route};
use water_http::{Problem, RequestHead};

/// Path of the API's description, the only one that needs no key.
pub const OPENAPI_PATH: &str = "/api/v1/openapi.json";

/// Returns the route of a request. The method is checked before the path: a request that would write does not learn
/// which paths exist.
pub fn route(request: &RequestHead) -> Result<&'static Route, Problem> {
    if !request.only_reads() {
        return Err(Problem::method_not_allowed());
    }
    find(request.uri.path()).ok_or_else(unknown_path)
}

/// Returns the 404 for any path that is not the API's.
pub fn unknown_path() -> Problem {
    Problem::not_found(texts::unknown_path())
}

/// Finds a route without normalisation: a path that two parties would normalise differently is no route.
fn find(path: &str) -> Option<&'static Route> {
    ROUTES.into_iter().find(|route| route.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_finds_its_own_route() {
        for route in ROUTES {
            assert_eq!(find(route.path), Some(route));
        }
    }
}
