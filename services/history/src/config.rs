//! The settings of `water-history`.

use water_http::BackendConfig;
use water_runtime::{Config as Read, Invalid, Settings};

/// What the service is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The settings of every service behind the gate.
    pub backend: BackendConfig,
}

/// Each request takes one for some milliseconds.
const CONNECTIONS: &str = "8";

impl Read for Config {
    fn read(settings: &mut Settings) -> Result<Self, Invalid> {
        let backend = BackendConfig::read(settings, CONNECTIONS)?;
        Ok(Self { backend })
    }
}
