//! The environment: where the database is.

use std::path::PathBuf;

use water_runtime::Secret;
use water_runtime::settings::{self, Config, Invalid, Settings};

use crate::failure::Failure;

/// Where the database is and who vouches for it.
pub struct Postgres {
    /// `WATER_POSTGRES_URL`.
    pub url: Secret<String>,
    /// `WATER_POSTGRES_CA_FILE`.
    pub ca_file: Option<PathBuf>,
}

impl Config for Postgres {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let url = settings.required(
            "WATER_POSTGRES_URL",
            "the PostgreSQL URL, such as postgresql://water_writer:password@host/water?sslmode=verify-full",
        );
        let ca_file = settings.optional(
            "WATER_POSTGRES_CA_FILE",
            "the PEM file of the authority that signed PostgreSQL's certificate",
        );
        Ok(Self {
            url: url?,
            ca_file: ca_file?,
        })
    }
}

impl Postgres {
    /// Reads the environment, or says all that is wrong with it.
    pub fn from_environment() -> Result<Self, Failure> {
        settings::from_settings(&mut Settings::from_environment()).map_err(Failure::Settings)
    }
}
