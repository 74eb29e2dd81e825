//! The WaterDataApi's plans, and whether keys may be in other namespaces, as last read.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use water_domain::{Limits, PlanName};

/// Plans of the last reading. Clones share it. Empty before the first one, which the portal's readiness
/// waits for; a later one that fails leaves it as it is.
#[derive(Clone, Default, Debug)]
pub struct Plans(Arc<RwLock<InstallationFacts>>);

/// Fields that are read of the WaterDataApi.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct InstallationFacts {
    /// The plans by name, and the limits of those with access.
    pub plans: HashMap<PlanName, Option<Limits>>,
    /// Whether ApiKeys may be in other namespaces than its own.
    pub keys_elsewhere: bool,
}

impl Plans {
    /// Takes what was read.
    pub fn set(&self, read: InstallationFacts) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = read;
    }

    /// Returns the limits of a plan; none where it has no access, or does not exist.
    pub fn limits(&self, plan: &PlanName) -> Option<Limits> {
        self.read().plans.get(plan).copied().flatten()
    }

    /// Whether there is such a plan.
    pub fn has(&self, plan: &PlanName) -> bool {
        self.read().plans.contains_key(plan)
    }

    /// Whether an account may have keys that the portal does not see: it reads its own namespace.
    pub fn keys_elsewhere(&self) -> bool {
        self.read().keys_elsewhere
    }

    fn read(&self) -> RwLockReadGuard<'_, InstallationFacts> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}
