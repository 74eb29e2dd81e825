//! What is known of somebody who is signed in.

use serde::{Deserialize, Serialize};
use water_domain::Timestamp;

use crate::claims::Grant;

/// A sign-in, from the identity provider's claims until it ends. It is kept sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The `sub` of the ID token.
    subject: String,
    /// A name to show.
    name: Option<String>,
    /// The identity provider's own session.
    sid: Option<String>,
    grants: Vec<Grant>,
    /// For signing out at the identity provider.
    id_token: String,
    /// Milliseconds since the epoch.
    ends: i64,
}

impl Session {
    /// Who it is, as the identity provider says.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The person's name, if the identity provider tells it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The accounts.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// When it ends, however busy it is.
    pub fn ends(&self) -> Option<Timestamp> {
        Timestamp::from_millis(self.ends)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Session")
    }
}
