//! The two routes of this service.

use warp::{Filter, Rejection, Reply};
use water_database::Database;

use crate::{conformite, hydrorisk};

/// All routes of this service.
pub fn routes(
    database: Database,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    hydrorisk::route(database.clone()).or(conformite::route(database))
}
