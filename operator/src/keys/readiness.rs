//! State, in words, of a key that every gate knows.

use water_domain::Timestamp;
use water_keystore::{Record, Validity};
use water_resources::water_data_api::{Access, PlanSpec};

use crate::conditions::{Readiness, Reason};

/// State of a published key, in words.
pub fn readiness(record: &Record, plan: &PlanSpec, now: Timestamp) -> Readiness {
    match record.validity(now) {
        Validity::Expired | Validity::Retired => Readiness::Stuck(
            Reason::Expired,
            "spec.expirationTime has passed and the key is refused: set a later one, or delete the ApiKey".into(),
        ),
        Validity::Suspended => {
            Readiness::InForce(Reason::Suspended, "the key is refused while spec.suspend is set".into())
        }
        Validity::NotYetValid => {
            Readiness::InForce(Reason::NotYetValid, "the key is refused until spec.notBefore".into())
        }
        Validity::Active if plan.access == Access::Denied => Readiness::InForce(
            Reason::PlanWithoutAccess,
            format!("plan {} does not open the API: requests are answered 403", plan.name),
        ),
        Validity::Active => Readiness::InForce(Reason::Active, "the key is accepted".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::record::{self, Issuance};
    use crate::sample;
    use water_resources::ApiKey;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn reason(key: &ApiKey, plan: &str) -> Reason {
        let api = sample::api("water-data", "team");
        let mut plans = api.spec.plans.iter();
        let plan = plans.find(|known| known.name.as_str() == plan).unwrap();
        let issued = Issuance {
            hash: "ab".repeat(32).parse().unwrap(),
            key_id: "abababababab".parse().unwrap(),
            revision: 0,
            time: at("2026-01-01T00:00:00Z"),
        };
        let record = issued.record(&key.spec.account_id, &record::declared(&key.spec));
        readiness(&record, plan, at("2026-06-01T00:00:00Z")).reason()
    }

    #[test]
    fn a_key_stands_as_its_spec_and_plan_say() {
        let key = sample::key("acme", "team");
        assert_eq!(reason(&key, "Enterprise"), Reason::Active);
        assert_eq!(reason(&key, "Free"), Reason::PlanWithoutAccess);
        let mut early = key.clone();
        early.spec.not_before = Some(at("2026-06-01T00:00:00.001Z"));
        assert_eq!(reason(&early, "Enterprise"), Reason::NotYetValid);
        early.spec.suspend = true;
        assert_eq!(reason(&early, "Enterprise"), Reason::Suspended);
        early.spec.expiration_time = Some(at("2026-06-01T00:00:00Z"));
        assert_eq!(reason(&early, "Enterprise"), Reason::Expired);
    }
}
