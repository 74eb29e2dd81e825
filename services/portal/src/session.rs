//! Session of a signed-in person.

use std::fmt;

use serde::{Deserialize, Serialize};
use water_domain::Timestamp;

use crate::claims::Grant;

/// A sign-in, from the identity provider's claims until it ends. It is kept sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The `sub` of the ID token.
    pub(crate) subject: String,
    /// A name to show.
    pub(crate) name: Option<String>,
    /// The identity provider's own session.
    pub(crate) sid: Option<String>,
    /// Accounts that the claims gave.
    pub(crate) grants: Vec<Grant>,
    /// ID token for signing out at the identity provider.
    pub(crate) id_token: String,
    /// Time at which it ends, however busy it is.
    pub(crate) ends: Timestamp,
}

impl Session {
    /// Returns the person's name at the identity provider.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the person's name to show, if the identity provider has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the accounts.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Returns the time at which it ends, however busy it is.
    pub fn ends(&self) -> Timestamp {
        self.ends
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Session")
    }
}
