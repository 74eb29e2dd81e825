//! Settings of the connection to Redis, shared by the gate and the portal.

use std::path::PathBuf;

use water_keystore::ConnectionSettings;
use water_runtime::{Invalid, Secret, Settings};

/// Reads `WATER_REDIS_URL` and `WATER_REDIS_CA_FILE`; `url` describes the first one.
pub fn redis(settings: &mut Settings, url: &'static str) -> Result<ConnectionSettings, Invalid> {
    const URL: &str = "WATER_REDIS_URL";
    const CA_FILE: &str = "WATER_REDIS_CA_FILE";
    let url = settings.required::<Secret<String>>(URL, url);
    let ca_file = settings.optional::<PathBuf>(
        CA_FILE,
        "the file with the certificate authority of Redis, such as /etc/water/redis/ca.crt",
    );
    let (url, ca_file) = (url?, ca_file?);
    let ca = match ca_file.map(std::fs::read).transpose() {
        Ok(ca) => ca,
        Err(error) => {
            let problem = format!("cannot be read: {error}. Set it to a readable PEM file.");
            return Err(settings.refuse(CA_FILE, problem));
        }
    };
    ConnectionSettings::new(url.expose(), ca.as_deref())
        .map_err(|problem| settings.refuse(URL, format!("is not usable: {problem}.")))
}
