//! A signed-in person as a member of one account. Every function that touches an account's keys or data
//! takes one, and there is one way to get it: a session that has the account.

use water_domain::{AccountId, PlanName};

pub use crate::claims::Role;
use crate::plans::Plans;
use crate::session::Session;

/// Rights of one person in one account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    account: AccountId,
    plan: PlanName,
    access: bool,
    role: Role,
    subject: String,
}

impl Member {
    /// Returns the session's rights in `account`, a segment of the path; none if it is no account of the
    /// session.
    pub fn find(session: &Session, account: &str, plans: &Plans) -> Option<Self> {
        let mut grants = session.grants().iter();
        let grant = grants.find(|grant| grant.account.as_str() == account)?;
        Some(Self {
            account: grant.account.clone(),
            access: plans.limits(&grant.plan).is_some(),
            plan: grant.plan.clone(),
            role: grant.role,
            subject: session.subject().to_owned(),
        })
    }

    /// Returns the account.
    pub fn account(&self) -> &AccountId {
        &self.account
    }

    /// Returns the account's plan, by the identity provider.
    pub fn plan(&self) -> &PlanName {
        &self.plan
    }

    /// Whether that plan has API access.
    pub fn access(&self) -> bool {
        self.access
    }

    /// Returns the person's role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the person's name at the identity provider: 1 to 255 characters.
    pub fn subject(&self) -> &str {
        &self.subject
    }
}
