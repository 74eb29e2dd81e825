//! The portal on the cluster: its values in the chart, and the way of a browser on this machine to it.

use anyhow::Result;
use serde_json::{Value, json};

use crate::certificates;
use crate::cluster::{Cluster, HOST, NODE_ADDRESS};
use crate::credentials::Credentials;
use crate::identity::{self, Membership, PEOPLE, Person};

/// The Secret with the portal's password at the identity provider.
pub const CLIENT_SECRET: &str = "water-portal-client";

/// The ConfigMap with the authority that signed the provider's certificate.
pub const AUTHORITY: &str = "water-portal-authority";

/// Returns the portal's address.
pub fn url() -> String {
    format!("https://{HOST}")
}

/// Returns the chart's value `portal`.
pub fn values() -> Value {
    json!({
        "enabled": true,
        "url": url(),
        "oidc": {
            "issuer": identity::issuer(),
            "clientId": identity::CLIENT_ID,
            "existingSecret": CLIENT_SECRET,
            "caConfigMap": AUTHORITY,
            // This provider says who belongs to which account when it is asked for groups.
            "scopes": ["openid", "profile", "email", "groups"],
        },
    })
}

/// Returns Chromium's rule that finds the portal's host, which no name server knows.
pub fn host_rules() -> String {
    format!("MAP {HOST} {NODE_ADDRESS}")
}

/// Describes for a person the portal's address, how a browser reaches and trusts it, and who can sign in.
pub fn describe(cluster: &Cluster, credentials: &Credentials) -> Result<String> {
    let people: String = PEOPLE
        .iter()
        .map(|person| row(person, credentials))
        .collect();
    Ok(format!(
        "The account holders' portal: {url}
  Chromium, with a profile of its own that finds and trusts it:
    chromium --user-data-dir=\"$(mktemp -d)\" --host-resolver-rules='{rules}' \\
      --ignore-certificate-errors-spki-list={fingerprints} {url}
  Any other browser: add the line `{NODE_ADDRESS} {HOST}` to /etc/hosts, and let the browser
  trust the authority {authority}
  Who can sign in:
{people}",
        url = url(),
        rules = host_rules(),
        fingerprints = certificates::browser_fingerprints(cluster)?,
        authority = cluster.file("pki/ca.crt").display(),
    ))
}

fn row(person: &Person, credentials: &Credentials) -> String {
    let memberships: Vec<_> = person.memberships.iter().map(in_words).collect();
    format!(
        "    {:<22} {}  {}\n",
        person.email,
        person.password(credentials),
        memberships.join(", ")
    )
}

fn in_words(membership: &Membership) -> String {
    let role = if membership.is_viewer {
        "looks at"
    } else {
        "holds"
    };
    format!("{role} {} ({})", membership.account, membership.plan)
}
