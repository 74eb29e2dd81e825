//! The settings of `water-history`.

use water_http::BackendConfig;
use water_runtime::{Config as Read, Invalid, Settings};

/// Settings of the service.
#[derive(Clone, Debug)]
pub struct Config {
    /// The settings of every service behind the gate.
    pub backend: BackendConfig,
}

/// Default number of connections; each request takes one for some milliseconds.
const CONNECTIONS: &str = "8";

impl Read for Config {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let backend = BackendConfig::read(settings, CONNECTIONS)?;
        Ok(Self { backend })
    }
}
