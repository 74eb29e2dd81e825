//! The settings of `water-departements`.

use water_http::BackendConfig;
use water_runtime::{Config as Read, Invalid, Settings};

/// Settings of the service.
#[derive(Clone, Debug)]
pub struct Config {
    /// The settings of every service behind the gate.
    pub backend: BackendConfig,
}

/// Default number of connections: one checks for changes and another reads them; one more, outside the pool, listens.
const CONNECTIONS: &str = "2";

impl Read for Config {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let backend = BackendConfig::read(settings, CONNECTIONS)?;
        Ok(Self { backend })
    }
}
