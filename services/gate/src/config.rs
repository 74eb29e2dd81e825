//! The gate's settings, from environment variables.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use http::HeaderValue;
use ipnet::IpNet;
use water_domain::KeyPrefix;
use water_http::{IdentityKey, TrustedProxies};
use water_keystore::{ConnectionSettings, GateIdentity, Instance};
use water_runtime::{Config as Read, Invalid, ProcessSettings, Settings};

use crate::cors::Cors;
use crate::redis::redis;
use crate::upstream::ServiceAddress;

/// Settings of one gate process.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses, and the settings of stopping.
    pub process: ProcessSettings,
    pub(crate) workers: NonZeroUsize,
    pub(crate) redis: ConnectionSettings,
    pub(crate) instance: Instance,
    pub(crate) gate: GateIdentity,
    pub(crate) departements: ServiceAddress,
    pub(crate) history: ServiceAddress,
    pub(crate) identity: IdentityKey,
    pub(crate) key_prefix: KeyPrefix,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) cors: Cors,
}

impl Read for Config {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let process = ProcessSettings::read(settings);
        let redis = redis(
            settings,
            "the URL of Redis as the gate's own user, such as redis://gate:password@redis:6379",
        );
        let instance = settings.required(
            "WATER_INSTANCE",
            "the namespace and name of the WaterDataApi, such as water.water-data",
        );
        let gate = gate(settings);
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
        let cors = settings.list::<HeaderValue>(
            "WATER_CORS_ORIGINS",
            "the origins whose pages may read answers, such as https://app.example.org",
        );
        let workers = workers(settings);
        Ok(Self {
            process: process?,
            workers: workers?,
            redis: redis?,
            instance: instance?,
            gate: gate?,
            departements: departements?,
            history: history?,
            identity: identity?,
            key_prefix: key_prefix?,
            trusted_proxies: TrustedProxies::new(trusted_proxies?),
            cors: Cors::new(cors?),
        })
    }
}

fn gate(settings: &mut Settings) -> Result<GateIdentity, Invalid> {
    let pod = settings.required(
        "WATER_POD_NAME",
        "this pod's name, such as water-data-gate-0",
    );
    let uid = settings.required("WATER_POD_UID", "this pod's uid, as Kubernetes gives it");
    let grace = settings.seconds(
        "WATER_GRACE_SECONDS",
        "120",
        "the seconds to serve from memory while Redis is away, such as 120",
    );
    Ok(GateIdentity {
        pod: pod?,
        uid: uid?,
        grace: grace?,
    })
}

fn workers(settings: &mut Settings) -> Result<NonZeroUsize, Invalid> {
    let workers = settings.optional(
        "WATER_WORKERS",
        "the number of threads that answer requests; by default one per core",
    );
    Ok(workers?
        .or_else(|| available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN))
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
            "WATER_POD_NAME",
            "WATER_POD_UID",
            "WATER_DEPARTEMENTS_ADDRESS",
            "WATER_HISTORY_ADDRESS",
            "WATER_IDENTITY_CURRENT",
        ] {
            assert!(
                missing.iter().any(|problem| problem.starts_with(name)),
                "{name}"
            );
        }
        assert_eq!(missing.len(), 7);
    }

    #[test]
    fn a_bad_url_of_redis_is_named_and_never_repeated() {
        let problems = problems([("WATER_REDIS_URL", "http://gate:very-secret@redis")]);
        assert!(
            problems
                .iter()
                .any(|problem| problem.starts_with("WATER_REDIS_URL is not usable"))
        );
        assert!(!problems.concat().contains("very-secret"));
    }
}
