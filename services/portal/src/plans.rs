//! The plans of the WaterDataApi as they were last read.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use water_domain::{Limits, PlanName};

/// The plans by name, and the limits of those with access. Clones share them. Empty before the
/// first reading; a later one that fails leaves them as they are.
#[derive(Clone, Default, Debug)]
pub struct Plans(Arc<RwLock<HashMap<PlanName, Option<Limits>>>>);

impl Plans {
    /// Takes what was read.
    pub fn set(&self, plans: HashMap<PlanName, Option<Limits>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = plans;
    }

    /// The limits of a plan; none where it has no access, or does not exist.
    pub fn limits(&self, plan: &PlanName) -> Option<Limits> {
        let plans = self.0.read().unwrap_or_else(PoisonError::into_inner);
        plans.get(plan).copied().flatten()
    }

    /// Whether there is such a plan.
    pub fn has(&self, plan: &PlanName) -> bool {
        let plans = self.0.read().unwrap_or_else(PoisonError::into_inner);
        plans.contains_key(plan)
    }
}
