//! What the key's plan allows: nothing at all, or requests up to its limits.

use water_domain::{Limits, PlanName};
use water_http::Problem;
use water_keystore::{Record, View};

/// The directory keeps every plan that a published key names; without it nothing can be judged.
#[derive(Debug, thiserror::Error)]
#[error("the key directory has no plan {0}, which a key in it names")]
struct UnknownPlan(PlanName);

/// The limits of the key's plan; a plan without API access is refused (specification §5.4).
pub fn admit(record: &Record, view: &View) -> Result<Limits, Problem> {
    let plan = view.plan(&record.plan).ok_or_else(|| {
        Problem::dependency_unavailable().caused_by(UnknownPlan(record.plan.clone()))
    })?;
    plan.limits.ok_or_else(Problem::plan_insufficient)
}
