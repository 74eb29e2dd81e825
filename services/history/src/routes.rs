//! The routes of this service.

use warp::{Filter, Rejection, Reply};
use water_database::Database;
use water_domain::{ComplianceAudit, RiskAnalysis};

use crate::bulk::Bulk;
use crate::{page, sources};

/// All routes of this service.
pub fn routes(
    database: Database,
    bulk: Bulk,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    let hydrorisk = page::route::<RiskAnalysis>(database.clone(), bulk.clone());
    let conformite = page::route::<ComplianceAudit>(database.clone(), bulk);
    hydrorisk.or(conformite).or(sources::route(database))
}
