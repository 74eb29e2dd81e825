//! The settings of `water-history`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use water_http::IdentityKey;
use water_runtime::{Config as Read, Invalid, ProcessSettings, Secret, Settings};

/// Everything that is set from outside.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses and the manner of stopping.
    pub process: ProcessSettings,
    /// Where the histories are, as `water_reader`.
    pub postgres_url: Secret<String>,
    /// Who signs that server's certificate, where it is no public authority.
    pub postgres_ca_file: Option<PathBuf>,
    /// How many connections the server is asked for at most.
    pub postgres_connections: NonZeroUsize,
    /// What the gate signs identities with.
    pub identity_current: IdentityKey,
    /// What it will sign with next, while the key is being rotated.
    pub identity_next: Option<IdentityKey>,
}

impl Read for Config {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
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
            "8",
            "the largest number of connections to PostgreSQL",
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

    #[test]
    fn all_missing_settings_are_named_at_once() {
        let problems = from_settings::<Config>(&mut Settings::from_pairs([])).unwrap_err();
        let named = |name: &str| problems.iter().any(|problem| problem.starts_with(name));
        assert!(
            named("WATER_POSTGRES_URL") && named("WATER_IDENTITY_CURRENT"),
            "{problems:?}"
        );
        assert_eq!(problems.len(), 2);
    }
}
