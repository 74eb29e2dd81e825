//! A plan's form in Redis: `<per minute> <per day>`, or `-` for no API access.

use std::num::NonZeroU32;

use redis::cmd;
use water_domain::{Limits, Plan, PlanName};

use super::Directory;
use crate::failure::StoreError;

const NO_ACCESS: &str = "-";

pub(super) fn encode(limits: Option<Limits>) -> String {
    match limits {
        None => NO_ACCESS.into(),
        Some(limits) => format!("{} {}", limits.requests_per_minute, limits.requests_per_day),
    }
}

pub(super) fn decode(name: &str, value: &str) -> Option<Plan> {
    let name: PlanName = name.parse().ok()?;
    if value == NO_ACCESS {
        return Some(Plan { name, limits: None });
    }
    let (minute, day) = value.split_once(' ')?;
    let number = |text: &str| text.parse::<NonZeroU32>().ok();
    let limits = Limits {
        requests_per_minute: number(minute)?,
        requests_per_day: number(day)?,
    };
    Some(Plan {
        name,
        limits: Some(limits),
    })
}

impl Directory {
    /// The plans in Redis; one of another form is left out.
    pub async fn plans(&self) -> Result<Vec<Plan>, StoreError> {
        let plans = self.read_plans("read the plans").await?;
        Ok(plans.into_iter().flatten().collect())
    }

    /// Plans in Redis; `None`: a plan of another form.
    pub(super) async fn read_plans(
        &self,
        attempt: &'static str,
    ) -> Result<Vec<Option<Plan>>, StoreError> {
        let mut command = cmd("HGETALL");
        command.arg(self.instance.plans());
        let fields: Vec<(String, String)> = self.connection.run(attempt, &command).await?;
        let plans = fields.iter().map(|(name, value)| decode(name, value));
        Ok(plans.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_reads_back_as_it_was_stored() {
        for value in ["-", "120 50000"] {
            let plan = decode("Enterprise", value).unwrap();
            assert_eq!(encode(plan.limits), value);
        }
    }

    #[test]
    fn a_plan_of_another_form_is_no_plan() {
        for value in ["", "120", "0 1", "120 50000 7", "x y"] {
            assert_eq!(decode("Enterprise", value), None, "{value}");
        }
    }
}
