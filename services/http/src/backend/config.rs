//! Settings that every service behind the gate has.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use water_runtime::{Invalid, ProcessSettings, Secret, Settings};

use crate::IdentityKey;

/// Settings of a service.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses, and the settings of stopping.
    pub process: ProcessSettings,
    /// URL of the database, as `water_reader`.
    pub postgres_url: Secret<String>,
    /// Certificate authority of that server, if it is not a public one.
    pub postgres_ca_file: Option<PathBuf>,
    /// Largest number of connections for requests.
    pub postgres_connections: NonZeroUsize,
    /// Key with which the gate signs identities.
    pub(super) identity_current: IdentityKey,
    /// Key with which the gate will sign next, during a rotation.
    pub(super) identity_next: Option<IdentityKey>,
}

impl Config {
    /// Reads the variables; `connections` is the default of `WATER_POSTGRES_CONNECTIONS`.
    pub fn read(settings: &mut Settings, connections: &'static str) -> Result<Self, Invalid> {
        let process = ProcessSettings::read(settings);
        let postgres_url = settings.required(
            "WATER_POSTGRES_URL",
            "the URL of PostgreSQL, such as postgresql://water_reader:password@host:5432/water?sslmode=verify-full",
        );
        let postgres_ca_file = settings.optional(
            "WATER_POSTGRES_CA_FILE",
            "the file with the certificate authority of PostgreSQL, such as /etc/water/postgres/ca.crt",
        );
        let postgres_connections = settings.or(
            "WATER_POSTGRES_CONNECTIONS",
            connections,
            "the largest number of connections to PostgreSQL that answer requests, such as 8",
        );
        let identity_current = settings.required(
            "WATER_IDENTITY_CURRENT",
            "the key that signs identities, 64 hexadecimal digits",
        );
        let identity_next = settings.optional(
            "WATER_IDENTITY_NEXT",
            "the key that will sign identities after the current one, 64 hexadecimal digits",
        );
        Ok(Self {
            process: process?,
            postgres_url: postgres_url?,
            postgres_ca_file: postgres_ca_file?,
            postgres_connections: postgres_connections?,
            identity_current: identity_current?,
            identity_next: identity_next?,
        })
    }
}

#[cfg(test)]
mod tests {
    use water_runtime::settings::from_settings;

    use super::*;

    /// A service without further settings.
    struct Plain;

    impl water_runtime::Config for Plain {
        fn read(settings: &mut Settings) -> Result<Self, Invalid> {
            Config::read(settings, "2").map(|_| Self)
        }
    }

    #[test]
    fn all_missing_settings_are_named_at_once() {
        let problems = from_settings::<Plain>(&mut Settings::from_pairs([]));
        let problems = problems.err().unwrap();
        let named = |name: &str| problems.iter().any(|problem| problem.starts_with(name));
        assert!(
            named("WATER_POSTGRES_URL") && named("WATER_IDENTITY_CURRENT"),
            "{problems:?}"
        );
        assert_eq!(problems.len(), 2);
    }

    /// Returns the largest number of connections for this setting.
    fn connections(set: Option<&str>) -> Result<usize, Vec<String>> {
        struct TestConfig(Config);
        impl water_runtime::Config for TestConfig {
            fn read(settings: &mut Settings) -> Result<Self, Invalid> {
                Config::read(settings, "2").map(Self)
            }
        }
        let identity = "1".repeat(64);
        let mut pairs = vec![
            ("WATER_POSTGRES_URL", "postgresql://host/water"),
            ("WATER_IDENTITY_CURRENT", identity.as_str()),
        ];
        pairs.extend(set.map(|number| ("WATER_POSTGRES_CONNECTIONS", number)));
        from_settings::<TestConfig>(&mut Settings::from_pairs(pairs))
            .map(|read| read.0.postgres_connections.get())
    }

    #[test]
    fn connections_are_as_many_as_set_and_never_none() {
        assert_eq!(connections(None).unwrap(), 2);
        assert_eq!(connections(Some("5")).unwrap(), 5);
        for wrong in ["0", "-1", "many"] {
            let problems = connections(Some(wrong)).unwrap_err();
            assert!(
                problems[0].starts_with("WATER_POSTGRES_CONNECTIONS"),
                "{problems:?}"
            );
        }
    }
}
