//! The paths of the API: which service answers, with which parameters and in which forms.

use water_domain::Format;
use water_http::Problem;

use crate::deprecation::Deprecation;
use water_http::Received;

/// The service that answers a route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ServiceName {
    /// `water-departements`: stress and risque.
    Departements,
    /// `water-history`: hydrorisk, conformite and sources.
    History,
}

impl ServiceName {
    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Departements => "departements",
            Self::History => "history",
        }
    }
}

/// One path of the API.
#[derive(PartialEq, Eq, Debug)]
pub struct Route {
    /// The path, byte for byte; the same towards the service.
    pub path: &'static str,
    /// Its name in logs and metrics.
    pub name: &'static str,
    /// Who answers it.
    pub service: ServiceName,
    /// The parameters that reach the service; all others stay outside.
    pub parameters: &'static [&'static str],
    /// The forms that it answers in beside JSON.
    pub formats: &'static [Format],
    /// Whether clients should move to another path; no path of v1 is left yet.
    pub deprecation: Option<Deprecation>,
}

/// Where the API's description is: the one path that needs no key.
pub const OPENAPI_PATH: &str = "/api/v1/openapi.json";

/// `offset` is for JSON, `cursor` and `changedSince` for the other forms; the service judges that.
const HISTORY_PARAMETERS: &[&str] = &["limit", "offset", "cursor", "changedSince"];

/// All routes that need a key.
pub static ROUTES: [Route; 5] = [
    Route {
        path: "/api/v1/stress",
        name: "stress",
        service: ServiceName::Departements,
        parameters: &["dept"],
        formats: &[Format::Csv],
        deprecation: None,
    },
    Route {
        path: "/api/v1/risque",
        name: "risque",
        service: ServiceName::Departements,
        parameters: &["dept"],
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

/// The route that a request asks for. The method is judged before the path: a
/// request that would write does not learn which paths exist.
pub fn route(request: &Received) -> Result<&'static Route, Problem> {
    if !request.only_reads() {
        return Err(Problem::method_not_allowed());
    }
    find(request.uri.path()).ok_or_else(unknown_path)
}

/// 404 for everything that is no path of the API.
pub fn unknown_path() -> Problem {
    Problem::not_found("Ask for one of the paths in /api/v1/openapi.json.")
}

/// No normalisation: what two parties would normalise differently is no route.
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

    #[test]
    fn anything_but_the_exact_bytes_finds_nothing() {
        for path in [
            "",
            "/",
            "*",
            "/api/v1",
            "/api/v1/",
            "/api/v1/stress/",
            "//api/v1/stress",
            "/api/v1/./stress",
            "/api/v1/x/../stress",
            "/api/v1/%73tress",
            "/api/v1%2fstress",
            "/API/v1/stress",
            "/api/v1/Stress",
            "/api/v1/stress;x=1",
            OPENAPI_PATH,
        ] {
            assert_eq!(find(path), None, "{path}");
        }
    }
}
