//! A plan: no API access at all, or requests up to two limits (specification §8).

use std::num::NonZeroU32;

use crate::text::validated_text;

validated_text!(
    /// The name of a plan, such as `Enterprise`.
    PlanName,
    InvalidPlanName,
    "plan name",
    is_plan_name,
    "a plan name is 1 to 63 letters, digits or '-', and begins with a letter",
    "^[A-Za-z][A-Za-z0-9-]{0,62}$",
    63
);

fn is_plan_name(text: &str) -> bool {
    text.len() <= PlanName::MAX_LENGTH
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Requests that an account may make in each window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Accepted requests in any 60 000 ms.
    pub requests_per_minute: NonZeroU32,
    /// Accepted requests in a UTC calendar day.
    pub requests_per_day: NonZeroU32,
}

/// A plan: its name and its limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The name that keys refer to.
    pub name: PlanName,
    /// `None`: no API access, every request is 403. `Some`: beyond these, 429.
    pub limits: Option<Limits>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_name_begins_with_a_letter() {
        for good in ["Enterprise", "Free", "plan-2"] {
            assert!(good.parse::<PlanName>().is_ok(), "{good}");
        }
        for bad in ["", "2", "-a", "a b", "a_b", &"x".repeat(64)] {
            assert_eq!(bad.parse::<PlanName>(), Err(InvalidPlanName), "{bad}");
        }
    }
}
