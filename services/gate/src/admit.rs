//! Admission by the key's plan: no access at all, or requests up to its limits.

use water_domain::{Limits, PlanName};
use water_http::Problem;
use water_keystore::{Record, View};

/// A plan that the directory lacks. It keeps every plan that a published key names; without the plan no request can be
/// admitted.
#[derive(Debug, thiserror::Error)]
#[error("the key directory has no plan {0}, which a key in it names")]
struct UnknownPlan(PlanName);

/// Returns the limits of the key's plan; a plan without API access is refused (specification §5.4).
pub fn admit(record: &Record, view: &View) -> Result<Limits, Problem> {
    let plan = view.plan(&record.plan).ok_or_else(|| {
        Problem::dependency_unavailable().caused_by(UnknownPlan(record.plan.clone()))
    })?;
    plan.limits.ok_or_else(Problem::plan_insufficient)
}
