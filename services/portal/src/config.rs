//! The portal's settings, from environment variables.

use std::num::NonZeroU32;
use std::time::Duration;

use ipnet::IpNet;
use water_domain::{KeyPrefix, PlanName};
use water_gate::redis::redis;
use water_gate::upstream::ServiceAddress;
use water_http::{IdentityKey, TrustedProxies};
use water_keystore::{ConnectionSettings, Instance};
use water_runtime::{Config as Read, Invalid, ProcessSettings, Settings};

use crate::claims::{ClaimName, Pattern};
use crate::origin::PortalUrl;
use crate::provider::{Client, Issuer};
use crate::seal::SealKey;

/// Settings of one portal process.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses and the manner of stopping.
    pub process: ProcessSettings,
    /// Redis of the sessions and counters, as the portal's own user.
    pub redis: ConnectionSettings,
    /// The WaterDataApi that this portal belongs to.
    pub instance: Instance,
    /// The service behind stress and risque.
    pub departements: ServiceAddress,
    /// The service behind hydrorisk, conformite and sources.
    pub history: ServiceAddress,
    /// Key that signs identities towards the services.
    pub identity: IdentityKey,
    /// Prefix of generated keys.
    pub key_prefix: KeyPrefix,
    /// Proxies whose word on the client's address counts.
    pub trusted_proxies: TrustedProxies,
    /// The portal's own address in browsers.
    pub url: PortalUrl,
    /// The portal's registration at the identity provider.
    pub client: Client,
    /// The claim with the accounts.
    pub accounts_claim: ClaimName,
    /// Pattern of that claim's values.
    pub accounts_pattern: Pattern,
    /// The plan of accounts whose value names none.
    pub accounts_default_plan: Option<PlanName>,
    /// Key that seals the cookies of sign-ins under way.
    pub seal_key: SealKey,
    /// Time from sign-in until a session ends, however busy it is.
    pub session_length: Duration,
    /// Most keys of an account.
    pub max_keys: NonZeroU32,
    /// Most days of a key's life; none: without end.
    pub max_key_days: Option<NonZeroU32>,
}

impl Read for Config {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let process = ProcessSettings::read(settings);
        let redis = redis(
            settings,
            "the URL of Redis as the portal's own user, such as redis://water-portal:password@redis:6379",
        );
        let instance = settings.required(
            "WATER_INSTANCE",
            "the namespace and name of the WaterDataApi, such as water.water-data",
        );
        let departements = settings.required(
            "WATER_DEPARTEMENTS_ADDRESS",
            "the host and port of the service behind stress and risque, such as water-data-departements:80",
        );
        let history = settings.required(
            "WATER_HISTORY_ADDRESS",
            "the host and port of the service behind hydrorisk and conformite, such as water-data-history:80",
        );
        let identity = settings.required(
            "WATER_IDENTITY_CURRENT",
            "the key that signs identities, 64 hexadecimal digits",
        );
        let key_prefix = settings.or(
            "WATER_KEY_PREFIX",
            "wdk",
            "what generated keys begin with, such as wdk",
        );
        let trusted_proxies = settings.list::<IpNet>(
            "WATER_TRUSTED_PROXIES",
            "the networks of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8,fd00::/8",
        );
        let url = settings.required(
            "WATER_PORTAL_URL",
            "the portal's own origin in browsers, such as https://water.example.org",
        );
        let client = client(settings);
        let accounts_claim = settings.or(
            "WATER_ACCOUNTS_CLAIM",
            "groups",
            "the claim with a person's accounts, a name or, from / on, a JSON pointer, such as groups",
        );
        let pattern = pattern(settings);
        let seal_key = settings.required(
            "WATER_PORTAL_SEAL_KEY",
            "the key that seals the cookies of sign-ins, 64 hexadecimal digits",
        );
        let session_length = session_length(settings);
        let max_keys = settings.or(
            "WATER_MAX_KEYS",
            "20",
            "the largest number of keys of an account, such as 20",
        );
        let max_key_days = settings.optional(
            "WATER_MAX_KEY_DAYS",
            "the largest number of days that a key may live; without it, keys may live for ever",
        );
        let (accounts_pattern, accounts_default_plan) = pattern?;
        Ok(Self {
            process: process?,
            redis: redis?,
            instance: instance?,
            departements: departements?,
            history: history?,
            identity: identity?,
            key_prefix: key_prefix?,
            trusted_proxies: TrustedProxies::new(trusted_proxies?),
            url: url?,
            client: client?,
            accounts_claim: accounts_claim?,
            accounts_pattern,
            accounts_default_plan,
            seal_key: seal_key?,
            session_length: session_length?,
            max_keys: max_keys?,
            max_key_days: max_key_days?,
        })
    }
}

fn client(settings: &mut Settings) -> Result<Client, Invalid> {
    let issuer = settings.required::<Issuer>(
        "WATER_OIDC_ISSUER",
        "the identity provider's issuer, such as https://login.example.org/realms/water",
    );
    let id = settings.required(
        "WATER_OIDC_CLIENT_ID",
        "the id that the identity provider knows the portal by, such as water-portal",
    );
    let secret = settings.required(
        "WATER_OIDC_CLIENT_SECRET",
        "the secret that goes with the client id",
    );
    let ca = settings.optional(
        "WATER_OIDC_CA",
        "the PEM text of the authority that signs the identity provider's certificate, where it is no public one",
    );
    let scopes = settings.or(
        "WATER_OIDC_SCOPES",
        "openid profile email",
        "the scopes that a sign-in asks for, such as openid profile email groups",
    );
    Ok(Client {
        issuer: issuer?,
        id: id?,
        secret: secret?,
        ca: ca?,
        scopes: scopes?,
    })
}

/// A plan has to come from somewhere.
fn pattern(settings: &mut Settings) -> Result<(Pattern, Option<PlanName>), Invalid> {
    const DEFAULT_PLAN: &str = "WATER_ACCOUNTS_DEFAULT_PLAN";
    let pattern = settings.or::<Pattern>(
        "WATER_ACCOUNTS_PATTERN",
        Pattern::DEFAULT,
        "the regular expression of its values, with the groups account, plan and role",
    );
    let default_plan = settings.optional::<PlanName>(
        DEFAULT_PLAN,
        "the plan of accounts whose value names none, such as Enterprise",
    );
    let (pattern, default_plan) = (pattern?, default_plan?);
    if default_plan.is_some() || pattern.names_plans() {
        Ok((pattern, default_plan))
    } else {
        let problem = "is not set, and WATER_ACCOUNTS_PATTERN has no group (?<plan>…): no \
                           account would have a plan. Set it to a plan, or add the group.";
        Err(settings.refuse(DEFAULT_PLAN, problem))
    }
}

fn session_length(settings: &mut Settings) -> Result<Duration, Invalid> {
    const HOURS: &str = "WATER_SESSION_HOURS";
    let hours = settings.or::<u64>(
        HOURS,
        "8",
        "the hours from sign-in until a session ends, 1 to 24, such as 8",
    )?;
    if (1..=24).contains(&hours) {
        Ok(Duration::from_secs(hours * 3600))
    } else {
        Err(settings.refuse(HOURS, "is out of range. Set it to a number from 1 to 24."))
    }
}

#[cfg(test)]
mod tests {
    use water_runtime::settings::from_settings;

    use super::*;

    fn problems<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
        from_settings::<Config>(&mut Settings::from_pairs(pairs)).unwrap_err()
    }

    #[test]
    fn all_missing_settings_are_named_at_once() {
        let missing = problems([]);
        for name in [
            "WATER_REDIS_URL",
            "WATER_INSTANCE",
            "WATER_DEPARTEMENTS_ADDRESS",
            "WATER_HISTORY_ADDRESS",
            "WATER_IDENTITY_CURRENT",
            "WATER_PORTAL_URL",
            "WATER_OIDC_ISSUER",
            "WATER_OIDC_CLIENT_ID",
            "WATER_OIDC_CLIENT_SECRET",
            "WATER_PORTAL_SEAL_KEY",
        ] {
            let named = |problem: &String| problem.starts_with(name);
            assert!(missing.iter().any(named), "{name}");
        }
        assert_eq!(missing.len(), 10);
    }

    #[test]
    fn accounts_without_any_plan_are_refused() {
        let plan = "WATER_ACCOUNTS_DEFAULT_PLAN";
        let pattern = ("WATER_ACCOUNTS_PATTERN", "water-(?<account>.+)");
        let complains = |pairs: &[(&str, &str)]| {
            let problems = problems(pairs.iter().copied());
            problems.iter().any(|problem| problem.starts_with(plan))
        };
        assert!(complains(&[pattern]));
        assert!(!complains(&[pattern, (plan, "Enterprise")]));
        assert!(!complains(&[]));
    }

    #[test]
    fn each_bad_setting_is_named_with_its_remedy_and_never_repeated() {
        for (name, bad) in [
            ("WATER_PORTAL_URL", "http://water.example.org"),
            ("WATER_PORTAL_URL", "https://water.example.org/portal"),
            ("WATER_OIDC_ISSUER", "http://login.example.org"),
            ("WATER_OIDC_ISSUER", "https://login.example.org/?tenant=1"),
            ("WATER_OIDC_CA", "hunter2"),
            ("WATER_OIDC_SCOPES", "hunter2"),
            ("WATER_ACCOUNTS_CLAIM", " "),
            ("WATER_ACCOUNTS_PATTERN", "(?<account>"),
            ("WATER_ACCOUNTS_PATTERN", "water:(?<konto>.+)"),
            ("WATER_PORTAL_SEAL_KEY", "hunter2"),
            ("WATER_SESSION_HOURS", "25"),
            ("WATER_SESSION_HOURS", "0"),
            ("WATER_MAX_KEYS", "0"),
        ] {
            let problems = problems([(name, bad)]);
            let named = problems.iter().find(|problem| problem.starts_with(name));
            let named = named.unwrap_or_else(|| panic!("{name}={bad} is accepted"));
            assert!(named.contains("Set it to"), "{named}");
            assert!(bad.len() < 3 || !named.contains(bad), "{named}");
        }
    }
}
