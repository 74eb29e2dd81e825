//! Paths of the API, each with the service that answers it, its parameters and its formats.

use water_domain::Format;
use water_http::Problem;
use water_http::problem::texts;

use crate::deprecation::Deprecation;
use water_http::RequestHead;

/// A service that answers routes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ServiceName {
    /// `water-departements`: stress and risque.
    Departements,
    /// `water-history`: hydrorisk, conformite and sources.
    History,
}

impl ServiceName {
    /// Returns the name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Departements => "departements",
            Self::History => "history",
        }
    }
}

/// A path of the API.
#[derive(PartialEq, Eq, Debug)]
pub struct Route {
    /// The path, byte for byte; the same in requests to the service.
    pub path: &'static str,
    /// Name in logs and metrics.
    pub name: &'static str,
    /// Service that answers it.
    pub service: ServiceName,
    /// Parameters that are passed on to the service; all others are dropped.
    pub parameters: &'static [&'static str],
    /// Formats of its answers other than JSON.
    pub formats: &'static [Format],
    /// Deprecation of the path; no path of v1 is deprecated yet.
    pub deprecation: Option<Deprecation>,
}

/// Path of the API's description, the only one that needs no key.
pub const OPENAPI_PATH: &str = "/api/v1/openapi.json";

/// `offset` is for JSON, `cursor` and `changedSince` for the other formats; the service validates that. The gate
/// validates `format`; the service repeats it in its links.
const HISTORY_PARAMETERS: &[&str] = &["limit", "offset", "cursor", "changedSince", "format"];

/// All routes that need a key.
pub static ROUTES: [Route; 5] = [
    Route {
        path: "/api/v1/stress",
        name: "stress",
        service: ServiceName::Departements,
        parameters: &["dept", "format"],
        formats: &[Format::Csv],
        deprecation: None,
    },
    Route {
        path: "/api/v1/risque",
        name: "risque",
        service: ServiceName::Departements,
        parameters: &["dept", "format"],
        formats: &[Format::Csv],
        deprecation: None,
    },
    Route {
        path: "/api/v1/hydrorisk",
        name: "hydrorisk",
        service: ServiceName::History,
        parameters: HISTORY_PARAMETERS,
        formats: &[Format::Csv, Format::NdJson],
        deprecation: None,
    },
    Route {
        path: "/api/v1/conformite",
        name: "conformite",
        service: ServiceName::History,
        parameters: HISTORY_PARAMETERS,
        formats: &[Format::Csv, Format::NdJson],
        deprecation: None,
    },
    Route {
        path: "/api/v1/sources",
        name: "sources",
        service: ServiceName::History,
        parameters: &[],
        formats: &[],
        deprecation: None,
    },
];

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
    ROUTES.iter().find(|route| route.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_finds_its_own_route() {
        for route in &ROUTES {
            assert_eq!(find(route.path), Some(route));
        }
    }
}
