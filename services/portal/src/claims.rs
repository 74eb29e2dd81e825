//! A person's accounts, from the claims of the identity provider.
//!
//! Values of one claim are matched by a pattern with the groups `account`, `plan` and `role`. A value that
//! does not match belongs to other programs; one that matches and cannot be read gives nothing.

use std::collections::BTreeMap;
use std::str::FromStr;

use regex::{Captures, Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use water_domain::{AccountId, PlanName};

/// The most accounts of a person.
const MAX_ACCOUNTS: usize = 50;
/// The longest value that is matched, in bytes.
const MAX_VALUE: usize = 256;
/// The largest compiled pattern, in bytes.
const MAX_PATTERN: usize = 1 << 20;

/// Rights of a person in an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads, creates, rotates and revokes.
    Manager,
    /// Reads.
    Viewer,
}

/// An account that a person has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Id of the account.
    pub account: AccountId,
    /// The plan that it is on, by the identity provider.
    pub plan: PlanName,
    /// Rights of the person in it.
    pub role: Role,
}

/// Name of the claim, or from `/` on a JSON pointer to it (RFC 6901).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimName(Box<str>);

/// Text that names no claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a claim's name has no spaces at its ends and is not empty")]
pub struct InvalidClaimName;

/// Regular expression that matches a value from its first to its last character.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// A pattern that cannot be used. Repeats no part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidPattern {
    /// No regular expression of the `regex` crate, or one that is too large.
    #[error("it is no regular expression: look-around and back-references do not exist here")]
    Syntax,
    /// No group gives the account.
    #[error("it has no group (?<account>…)")]
    Account,
}

/// Accounts that a person's claims give.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Accounts {
    /// The accounts, by id.
    pub grants: Vec<Grant>,
    /// Reasons for which matching values were left out.
    pub left_out: Vec<LeftOut>,
}

/// Reason for which a matching value gives no account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LeftOut {
    /// Longer than 256 bytes.
    #[error("the value has more than 256 bytes")]
    Long,
    /// The group `account` is no account id.
    #[error("its account is no account id")]
    Account,
    /// The group `plan` is no plan's name.
    #[error("its plan is no plan's name")]
    Plan,
    /// No plan, neither in the value nor in the settings.
    #[error("it names no plan, and WATER_ACCOUNTS_DEFAULT_PLAN is not set")]
    NoPlan,
}

/// Reason for which claims let nobody in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClaimsError {
    /// An account on two plans.
    #[error("the account {account} is on two plans, {one} and {other}")]
    Ambiguous {
        /// Id of the account.
        account: AccountId,
        /// First plan.
        one: PlanName,
        /// Second plan.
        other: PlanName,
    },
    /// A role that does not exist.
    #[error("the account {0} has a role other than viewer")]
    Role(AccountId),
    /// More than 50 accounts.
    #[error("the claims name more than 50 accounts")]
    TooMany,
}

impl ClaimsError {
    /// A stable word for logs and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ambiguous { .. } => "claims_ambiguous",
            Self::Role(_) => "claims_role",
            Self::TooMany => "claims_too_many",
        }
    }
}

impl Pattern {
    /// `water:<account>:<plan>`, with `:viewer` for those who only read.
    pub const DEFAULT: &'static str = "water:(?<account>[^:]+):(?<plan>[^:]+)(:(?<role>viewer))?";

    /// Returns the accounts in the claim, which is a text or a list of texts. Without a group `plan`, or
    /// where it matched nothing, `default_plan` counts.
    pub fn accounts(
        &self,
        claims: &Value,
        claim: &ClaimName,
        default_plan: Option<&PlanName>,
    ) -> Result<Accounts, ClaimsError> {
        let mut found = BTreeMap::<AccountId, Grant>::new();
        let mut left_out = Vec::new();
        let matching = claim
            .values(claims)
            .filter_map(|value| self.0.captures(value));
        for captures in matching {
            let grant = match read(&captures, default_plan) {
                Ok((account, plan)) => Grant {
                    role: role(&captures, &account)?,
                    account,
                    plan,
                },
                Err(reason) => {
                    left_out.push(reason);
                    continue;
                }
            };
            match found.get_mut(&grant.account) {
                Some(known) => known.merge(grant)?,
                None => {
                    found.insert(grant.account.clone(), grant);
                }
            }
            if found.len() > MAX_ACCOUNTS {
                return Err(ClaimsError::TooMany);
            }
        }
        Ok(Accounts {
            grants: found.into_values().collect(),
            left_out,
        })
    }

    /// Whether the pattern can name a plan.
    pub fn names_plans(&self) -> bool {
        self.0.capture_names().flatten().any(|name| name == "plan")
    }
}

impl Grant {
    /// Merges two values for one account: they name one plan, and the lesser role counts.
    fn merge(&mut self, other: Self) -> Result<(), ClaimsError> {
        if self.plan != other.plan {
            return Err(ClaimsError::Ambiguous {
                account: other.account,
                one: self.plan.clone(),
                other: other.plan,
            });
        }
        if other.role == Role::Viewer {
            self.role = Role::Viewer;
        }
        Ok(())
    }
}

fn read(
    captures: &Captures<'_>,
    default_plan: Option<&PlanName>,
) -> Result<(AccountId, PlanName), LeftOut> {
    if captures.get_match().len() > MAX_VALUE {
        return Err(LeftOut::Long);
    }
    let account = captures.name("account").map_or("", |group| group.as_str());
    let account = account.parse().map_err(|_| LeftOut::Account)?;
    let plan = match captures.name("plan") {
        Some(plan) => plan.as_str().parse().map_err(|_| LeftOut::Plan)?,
        None => default_plan.cloned().ok_or(LeftOut::NoPlan)?,
    };
    Ok((account, plan))
}

fn role(captures: &Captures<'_>, account: &AccountId) -> Result<Role, ClaimsError> {
    match captures.name("role").map(|group| group.as_str()) {
        None => Ok(Role::Manager),
        Some("viewer") => Ok(Role::Viewer),
        Some(_) => Err(ClaimsError::Role(account.clone())),
    }
}

impl ClaimName {
    fn values<'a>(&self, claims: &'a Value) -> impl Iterator<Item = &'a str> {
        let value = if self.0.starts_with('/') {
            claims.pointer(&self.0)
        } else {
            claims.get(&*self.0)
        };
        let values = match value {
            Some(Value::Array(values)) => values.as_slice(),
            Some(value) => std::slice::from_ref(value),
            None => &[],
        };
        values.iter().filter_map(Value::as_str)
    }
}

impl FromStr for ClaimName {
    type Err = InvalidClaimName;

    fn from_str(text: &str) -> Result<Self, InvalidClaimName> {
        if text.is_empty() || text.trim() != text {
            Err(InvalidClaimName)
        } else {
            Ok(Self(text.into()))
        }
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        // Alone first: `a)|(b` becomes an expression by the brackets around it.
        Regex::new(text).map_err(|_| InvalidPattern::Syntax)?;
        let anchored = RegexBuilder::new(&format!(r"\A(?:{text})\z"))
            .size_limit(MAX_PATTERN)
            .build()
            .map_err(|_| InvalidPattern::Syntax)?;
        match anchored
            .capture_names()
            .flatten()
            .any(|name| name == "account")
        {
            true => Ok(Self(anchored)),
            false => Err(InvalidPattern::Account),
        }
    }
}

#[cfg(test)]
mod tests;
