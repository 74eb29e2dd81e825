//! `GET /account/v1/session`: the signed-in person and the person's accounts.

use http::StatusCode;
use serde::Serialize;
use water_domain::{AccountId, KeyPrefix, PlanName, Timestamp};

use crate::account_request::Response;
use crate::claims::{Grant, Role};
use crate::json::json;
use crate::keys::Keys;
use crate::session::Session;

/// The reader of a browser. Signed out, there are `signedIn` and `keyPrefix` only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reader<'a> {
    /// Whether somebody is signed in.
    signed_in: bool,
    /// Prefix of keys.
    key_prefix: &'a KeyPrefix,
    /// The signed-in person, with the accounts.
    #[serde(flatten)]
    person: Option<Person<'a>>,
}

/// A signed-in person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Person<'a> {
    /// A name to show; the subject where the identity provider has none.
    name: &'a str,
    /// The identity provider's name for the person, for administrators.
    subject: &'a str,
    /// Time at which the session ends, however busy it is.
    expires_at: Timestamp,
    /// The person's accounts.
    accounts: Vec<Account<'a>>,
}

/// An account of the reader.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account<'a> {
    /// The account.
    id: &'a AccountId,
    /// Plan of the account.
    plan: &'a PlanName,
    /// Whether the plan has API access.
    access: bool,
    /// `manager` or `viewer`.
    role: Role,
    /// The most days that a key may live from now on; null: it may live without end.
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
