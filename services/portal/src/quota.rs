//! `GET /account/v1/accounts/{account}/quota`: how much of its plan the account has left. Looking
//! costs nothing of it.

use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use water_domain::{PlanName, Timestamp};
use water_http::Problem;
use water_keystore::{Decision, Quotas, Window as Left};

use crate::asked::{Asked, Response};
use crate::json::json;
use crate::member::Member;
use crate::plans::Plans;

/// How both limits of a plan stand.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// When, by the clock that the limits are counted by.
    #[schema(value_type = String, format = DateTime)]
    as_of: Timestamp,
    /// The plan whose limits these are.
    #[schema(value_type = String, example = "Enterprise")]
    plan: PlanName,
    /// Any 60 seconds.
    minute: Window,
    /// The UTC calendar day.
    day: Window,
}

/// How one limit stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Requests that the plan allows in it.
    #[schema(example = 120)]
    limit: u32,
    /// Requests that it would still accept.
    #[schema(example = 119)]
    remaining: u32,
    /// Seconds until its next slot opens.
    #[schema(example = 42)]
    opens_in_seconds: u64,
}

/// Answers for the member's plan, or for the one that `plan` names: keys of an account may have
/// different ones, which are counted together.
pub async fn answer(
    quotas: &Quotas,
    plans: &Plans,
    member: &Member,
    asked: &Asked<'_>,
) -> Result<Response, Problem> {
    if !asked.received.only_reads() {
        return Err(Problem::method_not_allowed());
    }
    let plan = match asked.query.get("plan")? {
        None => member.plan().clone(),
        Some(named) => named
            .parse()
            .ok()
            .filter(|plan| plans.has(plan))
            .ok_or_else(|| {
                Problem::invalid_parameter(
                    "plan",
                    "Name a plan that one of the account's keys has.",
                )
            })?,
    };
    let limits = plans.limits(&plan).ok_or_else(Problem::plan_insufficient)?;
    let standing = quotas.of(member.account(), limits).await?;
    Ok(json(StatusCode::OK, &Quota::of(plan, &standing)))
}

impl Quota {
    fn of(plan: PlanName, standing: &Decision) -> Self {
        let window = |left: &Left| Window {
            limit: left.limit,
            remaining: left.remaining,
            opens_in_seconds: left.opens_in_seconds(),
        };
        Self {
            as_of: standing.at,
            plan,
            minute: window(&standing.minute),
            day: window(&standing.day),
        }
    }
}

#[cfg(test)]
mod tests;
