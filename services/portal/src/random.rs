//! Random bytes of the system's secure source.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use water_http::Problem;

/// Returns as many bytes as asked for.
pub fn bytes<const LENGTH: usize>() -> Result<[u8; LENGTH], Problem> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(Problem::internal)?;
    Ok(bytes)
}

/// Returns 256 random bits as 43 characters of base64url.
pub fn text() -> Result<String, Problem> {
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes::<32>()?))
}
