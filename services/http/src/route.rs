//! Routes of the API: the one table of its paths, from which the gate forwards, the services answer, and the description is
//! made.
//!
//! A path is compared byte for byte: nothing is normalised.

use warp::path::FullPath;
use warp::{Filter, Rejection};
use water_domain::Format;

use crate::deprecation::Deprecation;
use crate::{Problem, Query};

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
    /// All of its parameters. A request with another one is refused.
    pub parameters: &'static [&'static str],
    /// Formats of its answers other than JSON.
    pub formats: &'static [Format],
    /// Deprecation of the path; no path of v1 is deprecated yet.
    pub deprecation: Option<Deprecation>,
}

/// `offset` is for JSON, `cursor` and `changedSince` for the other formats; the service validates that. The gate
/// validates `format`; the service repeats it in its links.
const HISTORY_PARAMETERS: &[&str] = &["limit", "offset", "cursor", "changedSince", "format"];

/// The water stress of the départements.
pub static STRESS: Route = Route {
    path: "/api/v1/stress",
    name: "stress",
    service: ServiceName::Departements,
    parameters: &["dept", "format"],
    formats: &[Format::Csv],
    deprecation: None,
};

/// The water risk of the départements.
pub static RISQUE: Route = Route {
    path: "/api/v1/risque",
    name: "risque",
    service: ServiceName::Departements,
    parameters: &["dept", "format"],
    formats: &[Format::Csv],
    deprecation: None,
};

/// The calling account's risk analyses.
pub static HYDRORISK: Route = Route {
    path: "/api/v1/hydrorisk",
    name: "hydrorisk",
    service: ServiceName::History,
    parameters: HISTORY_PARAMETERS,
    formats: &[Format::Csv, Format::NdJson],
    deprecation: None,
};

/// The calling account's compliance audits.
pub static CONFORMITE: Route = Route {
    path: "/api/v1/conformite",
    name: "conformite",
    service: ServiceName::History,
    parameters: HISTORY_PARAMETERS,
    formats: &[Format::Csv, Format::NdJson],
    deprecation: None,
};

/// Origin and licence of each dataset.
pub static SOURCES: Route = Route {
    path: "/api/v1/sources",
    name: "sources",
    service: ServiceName::History,
    parameters: &[],
    formats: &[],
    deprecation: None,
};

/// All routes that need a key.
pub static ROUTES: [&Route; 5] = [&STRESS, &RISQUE, &HYDRORISK, &CONFORMITE, &SOURCES];

/// Accepts a GET of exactly the route's path, without a trailing slash, dots or percent-encoding (warp's own path filters
/// would let a trailing slash pass). The method is checked before the path. Extracts the query, or the refusal of a
/// parameter that the route does not have.
pub fn get(
    route: &'static Route,
) -> impl Filter<Extract = (Result<Query<'static>, Problem>,), Error = Rejection> + Clone {
    let exact = move |asked: FullPath| async move {
        if asked.as_str() == route.path {
            Ok(())
        } else {
            Err(warp::reject::not_found())
        }
    };
    warp::get()
        .and(warp::path::full())
        .and_then(exact)
        .untuple_one()
        .and(warp::ext::get())
        .map(move |query: Query<'static>| query.only(route.parameters).map(|()| query))
}
