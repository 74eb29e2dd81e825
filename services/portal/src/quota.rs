//! `GET /account/v1/accounts/{account}/quota`: the rest of the account's plan. The request is not counted
//! against it.

use http::StatusCode;
use serde::Serialize;
use water_domain::{PlanName, Timestamp};
use water_http::Problem;
use water_http::problem::texts;
use water_keystore::{Decision, Quotas, Window as Left};

use crate::account_request::{AccountRequest, Response};
use crate::json::json;
use crate::member::Member;
use crate::plans::Plans;

/// State of both limits of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// Time of the reading, by the clock that the limits are counted by.
    as_of: Timestamp,
    /// Plan whose limits these are.
    plan: PlanName,
    /// Limit of any 60 seconds.
    minute: Window,
    /// Limit of the UTC calendar day.
    day: Window,
}

/// State of one limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Requests that the plan allows in it.
    limit: u32,
    /// Requests that it would still accept.
    remaining: u32,
    /// Seconds until its next slot opens.
    opens_in_seconds: u64,
}

/// Answers for the member's plan, or for the one that `plan` names: keys of an account may have
/// different ones, which are counted together.
pub async fn answer(
    quotas: &Quotas,
    plans: &Plans,
    member: &Member,
    asked: &AccountRequest<'_>,
) -> Result<Response, Problem> {
    if !asked.received.only_reads() {
        return Err(Problem::method_not_allowed());
    }
    asked.query.only(&["plan"])?;
    let plan = match asked.query.get("plan")? {
        None => member.plan().clone(),
        Some(named) => named
            .parse()
            .ok()
            .filter(|plan| plans.has(plan))
            .ok_or_else(|| Problem::invalid_parameter("plan", texts::plan_of_a_key()))?,
    };
    let limits = plans.limits(&plan).ok_or_else(Problem::plan_insufficient)?;
    let standing = quotas.read(member.account(), limits).await?;
    Ok(json(StatusCode::OK, &Quota::new(plan, &standing)))
}

impl Quota {
    fn new(plan: PlanName, standing: &Decision) -> Self {
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
