//! The plans of a WaterDataApi, and comparisons of what they allow.

use std::collections::BTreeSet;

use water_domain::{Limits, Plan, PlanName};
use water_resources::WaterDataApi;
use water_resources::water_data_api::{Access, PlanSpec};

/// The plans of a WaterDataApi as the directory holds them.
pub fn plans(api: &WaterDataApi) -> Vec<Plan> {
    api.spec.plans.iter().map(plan).collect()
}

fn plan(spec: &PlanSpec) -> Plan {
    let limit = |limit: Option<u32>| limit.and_then(|limit| limit.try_into().ok());
    let limits = match (
        spec.access,
        limit(spec.requests_per_minute),
        limit(spec.requests_per_day),
    ) {
        (Access::Allowed, Some(requests_per_minute), Some(requests_per_day)) => Some(Limits {
            requests_per_minute,
            requests_per_day,
        }),
        // The schema refuses an open plan without limits; without a schema it opens nothing.
        _ => None,
    };
    Plan {
        name: spec.name.clone(),
        limits,
    }
}

/// Plans of a WaterDataApi that allow all that the one of this name does; none if it has no such plan.
pub fn wider(api: &WaterDataApi, name: &PlanName) -> BTreeSet<PlanName> {
    let plans = plans(api);
    let Some(declared) = plans.iter().find(|plan| plan.name == *name) else {
        return BTreeSet::new();
    };
    let wider = plans.iter().filter(|plan| covers(plan, declared));
    wider.map(|plan| plan.name.clone()).collect()
}

/// Whether a plan allows all that the other does.
fn covers(plan: &Plan, other: &Plan) -> bool {
    match (plan.limits, other.limits) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(limits), Some(other)) => {
            limits.requests_per_minute >= other.requests_per_minute
                && limits.requests_per_day >= other.requests_per_day
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_plan_covers_what_it_exceeds_nowhere() {
        let plans = plans(&sample::api("water-data", "team"));
        assert!(covers(&plans[0], &plans[1]) && covers(&plans[0], &plans[0]));
        assert!(!covers(&plans[1], &plans[0]));
    }

    #[test]
    fn a_plan_that_exceeds_another_in_one_limit_does_not_cover_it() {
        let open = |requests_per_minute, requests_per_day| {
            plan(&PlanSpec {
                name: "Gold".parse().unwrap(),
                access: Access::Allowed,
                requests_per_minute: Some(requests_per_minute),
                requests_per_day: Some(requests_per_day),
            })
        };
        let (faster, longer) = (open(240, 1000), open(120, 50_000));
        assert!(!covers(&faster, &longer));
        assert!(!covers(&longer, &faster));
    }
}
