//! The cluster's identity provider, and the people who can sign in with it.
//!
//! It has one address, that of the node, for browsers on this machine and for pods: an issuer is
//! compared as text.

use anyhow::Result;
use serde_json::{Value, json};
use water_harness::certificates::write_private;

use crate::certificates::IDENTITY;
use crate::cluster::{FILES, HOST, NODE_ADDRESS, inside, program_inside};
use crate::credentials::Credentials;
use crate::supervisor::Service;

/// Name of the portal towards the provider.
pub const CLIENT_ID: &str = "water-portal";

const PORT: u16 = 5556;

/// Somebody who can sign in.
pub struct Person {
    /// Address that they type, by which the provider names them in tokens.
    pub email: &'static str,
    /// Name on pages.
    pub name: &'static str,
    /// The accounts that they act for.
    pub memberships: &'static [Membership],
    password: fn(&Credentials) -> &str,
}

/// An account of a person's.
pub struct Membership {
    /// The account's id.
    pub account: &'static str,
    /// The account's plan.
    pub plan: &'static str,
    /// Reads, but changes nothing.
    pub is_viewer: bool,
}

/// Everybody: one who acts for two accounts, one in the shoes of the second, and one whose plan has no
/// access.
pub const PEOPLE: [Person; 3] = [
    Person {
        email: "anna@acme.example",
        name: "Anna Martin",
        memberships: &[
            Membership::manager("acme", "Enterprise"),
            Membership {
                account: "globex",
                plan: "Enterprise",
                is_viewer: true,
            },
        ],
        password: |credentials| &credentials.acme_holder,
    },
    Person {
        email: "bruno@globex.example",
        name: "Bruno Petit",
        memberships: &[Membership::manager("globex", "Enterprise")],
        password: |credentials| &credentials.globex_holder,
    },
    Person {
        email: "chloe@initech.example",
        name: "Chloé Durand",
        memberships: &[Membership::manager("initech", "Free")],
        password: |credentials| &credentials.initech_holder,
    },
];

impl Membership {
    const fn manager(account: &'static str, plan: &'static str) -> Self {
        Self {
            account,
            plan,
            is_viewer: false,
        }
    }

    /// Returns the group that says this, in the pattern that the portal expects by default.
    fn group(&self) -> String {
        let role = if self.is_viewer { ":viewer" } else { "" };
        format!("water:{}:{}{role}", self.account, self.plan)
    }

    fn json(&self) -> Value {
        let role = if self.is_viewer { "viewer" } else { "manager" };
        json!({"id": self.account, "plan": self.plan, "role": role})
    }
}

impl Person {
    /// Returns the password that they type with their address.
    pub fn password<'a>(&self, credentials: &'a Credentials) -> &'a str {
        (self.password)(credentials)
    }
}

/// Returns the provider's URL, for browsers and pods alike.
pub fn issuer() -> String {
    format!("https://{NODE_ADDRESS}:{PORT}/dex")
}

/// Returns everybody, for the browser tests: `[{email, name, password, accounts: [{id, plan, role}]}]`.
pub fn people_json(credentials: &Credentials) -> Value {
    let person = |person: &Person| {
        let accounts: Vec<_> = person.memberships.iter().map(Membership::json).collect();
        json!({
            "email": person.email,
            "name": person.name,
            "password": person.password(credentials),
            "accounts": accounts,
        })
    };
    PEOPLE.iter().map(person).collect()
}

/// Writes the provider's settings, inside the cluster, and returns its service.
pub fn service() -> Result<Service> {
    let credentials = Credentials::read(FILES.as_ref())?;
    let file = inside("identity.json");
    write_private(file.as_ref(), &settings(&credentials).to_string())?;
    Ok(Service::new(
        "identity",
        program_inside("identity"),
        vec![file],
    ))
}

fn settings(credentials: &Credentials) -> Value {
    let portal = format!("https://{HOST}");
    let person = |person: &Person| {
        let groups: Vec<_> = person.memberships.iter().map(Membership::group).collect();
        json!({
            "email": person.email,
            "name": person.name,
            "password": person.password(credentials),
            "groups": groups,
        })
    };
    json!({
        "issuer": issuer(),
        "listen": format!("{NODE_ADDRESS}:{PORT}"),
        "certificate": inside(&format!("pki/{IDENTITY}.crt")),
        "key": inside(&format!("pki/{IDENTITY}.key")),
        "authority": inside("pki/ca.crt"),
        "hosts": {HOST: NODE_ADDRESS},
        "clients": [{
            "id": CLIENT_ID,
            "secret": credentials.portal_client,
            "name": "Water Data",
            "redirectURIs": [format!("{portal}/auth/callback")],
            "postLogoutRedirectURIs": [format!("{portal}/")],
            "backchannelLogoutURI": format!("{portal}/auth/back-channel"),
        }],
        "people": PEOPLE.iter().map(person).collect::<Vec<_>>(),
    })
}
