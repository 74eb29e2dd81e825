//! `GET /account/v1/session`: who is signed in, and which accounts are theirs.

use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use water_domain::{AccountId, KeyPrefix, PlanName, Timestamp};

use crate::asked::Response;
use crate::claims::{Grant, Role};
use crate::json::json;
use crate::keys::Keys;
use crate::session::Session;

/// The reader of a browser. Signed out, there are `signedIn` and `keyPrefix` only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reader<'a> {
    /// Whether somebody is.
    signed_in: bool,
    /// What keys begin with.
    #[schema(value_type = String, example = "wdk")]
    key_prefix: &'a KeyPrefix,
    /// Who, and with which accounts.
    #[serde(flatten)]
    person: Option<Person<'a>>,
}

/// Somebody who is signed in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Person<'a> {
    /// A name to show; the subject where the identity provider tells none.
    name: &'a str,
    /// The identity provider's name for the person, for administrators.
    subject: &'a str,
    /// When the session ends, however busy it is.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// The person's accounts.
    accounts: Vec<Account<'a>>,
}

/// One account of the reader.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Account<'a> {
    /// The account.
    #[schema(value_type = String, example = "acme")]
    id: &'a AccountId,
    /// Its plan.
    #[schema(value_type = String, example = "Enterprise")]
    plan: &'a PlanName,
    /// Whether the plan has API access.
    access: bool,
    /// `manager` or `viewer`.
    #[schema(value_type = String, example = "manager")]
    role: Role,
    /// The most days that a key may live from now on; null: it may live without end.
    #[schema(required, example = 365)]
    max_key_days: Option<u32>,
}

/// Answers for a session, or for nobody.
pub fn answer(session: Option<&Session>, keys: &Keys) -> Response {
    let person = session.map(|session| Person {
        name: session.name().unwrap_or(session.subject()),
        subject: session.subject(),
        expires_at: session.ends(),
        accounts: session
            .grants()
            .iter()
            .map(|grant| account(grant, keys))
            .collect(),
    });
    let reader = Reader {
        signed_in: person.is_some(),
        key_prefix: &keys.prefix,
        person,
    };
    json(StatusCode::OK, &reader)
}

fn account<'a>(grant: &'a Grant, keys: &Keys) -> Account<'a> {
    Account {
        id: &grant.account,
        plan: &grant.plan,
        access: keys.plans.limits(&grant.plan).is_some(),
        role: grant.role,
        max_key_days: keys.rules.max_key_days,
    }
}
