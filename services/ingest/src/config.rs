//! The environment: access to the database, and to a file behind `https://`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use water_database::Authority;
use water_runtime::Secret;
use water_runtime::settings::{self, Config, Invalid, Settings};

/// Location of the database, and the authority that signed its certificate.
pub struct Postgres {
    /// `WATER_POSTGRES_URL`.
    pub url: Secret<String>,
    ca_file: Option<PathBuf>,
    ca: Option<String>,
}

impl Postgres {
    /// `WATER_POSTGRES_CA_FILE` or `WATER_POSTGRES_CA`.
    pub fn authority(&self) -> Option<Authority<'_>> {
        let file = self.ca_file.as_deref().map(Authority::File);
        file.or_else(|| self.ca.as_deref().map(Authority::Pem))
    }
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
        let ca = settings.optional(
            "WATER_POSTGRES_CA",
            "the certificate of that authority itself, PEM, where it is no file",
        );
        let (url, ca_file, ca) = (url?, ca_file?, ca?);
        if ca_file.is_some() && ca.is_some() {
            let problem = "is set, and WATER_POSTGRES_CA_FILE too. Set one of the two.";
            return Err(settings.refuse("WATER_POSTGRES_CA", problem));
        }
        Ok(Self { url, ca_file, ca })
    }
}

/// Settings of fetching a file behind `https://`.
pub struct Remote {
    /// `WATER_SOURCE_USERNAME` and `WATER_SOURCE_PASSWORD`.
    pub credentials: Option<(String, Secret<String>)>,
    /// `WATER_SOURCE_CA_FILE`.
    pub ca_file: Option<PathBuf>,
    /// `WATER_SOURCE_PROXY`.
    pub proxy: Option<Proxy>,
    /// `WATER_SOURCE_DEADLINE_SECONDS`: time within which the whole file must arrive, all attempts included.
    pub deadline: Duration,
}

/// A proxy, whose URL may hold a password.
pub struct Proxy(pub ureq::Proxy);

impl FromStr for Proxy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match ["http://", "https://"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
        {
            true => ureq::Proxy::new(text).map(Self).map_err(|_| "it is no URL"),
            false => Err("it begins neither with http:// nor with https://"),
        }
    }
}

impl Config for Remote {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let username: Result<Option<String>, _> = settings.optional(
            "WATER_SOURCE_USERNAME",
            "the name that the file's server asks for",
        );
        let password: Result<Option<Secret<String>>, _> = settings.optional(
            "WATER_SOURCE_PASSWORD",
            "the password that the file's server asks for",
        );
        let ca_file = settings.optional(
            "WATER_SOURCE_CA_FILE",
            "the PEM file of the authority that signed the certificate of the file's server",
        );
        let proxy = settings.optional(
            "WATER_SOURCE_PROXY",
            "the proxy between, such as http://proxy.example:3128",
        );
        let deadline = settings.seconds(
            "WATER_SOURCE_DEADLINE_SECONDS",
            "600",
            "the seconds within which the whole file must come, such as 600",
        );
        let credentials = match (username?, password?) {
            (None, None) => None,
            (Some(username), _) if username.contains(':') => {
                let problem = "has a colon, which HTTP does not allow in a name. Use another name.";
                return Err(settings.refuse("WATER_SOURCE_USERNAME", problem));
            }
            (Some(username), Some(password)) => Some((username, password)),
            (Some(_), None) => {
                let problem = "is not set, and WATER_SOURCE_USERNAME is. Set both or none.";
                return Err(settings.refuse("WATER_SOURCE_PASSWORD", problem));
            }
            (None, Some(_)) => {
                let problem = "is not set, and WATER_SOURCE_PASSWORD is. Set both or none.";
                return Err(settings.refuse("WATER_SOURCE_USERNAME", problem));
            }
        };
        Ok(Self {
            credentials,
            ca_file: ca_file?,
            proxy: proxy?,
            deadline: deadline?,
        })
    }
}

/// Reads settings from the environment, or returns all problems with them, a sentence each.
pub fn from_environment<C: Config>() -> Result<C, Vec<String>> {
    settings::from_settings(&mut Settings::from_environment())
}
