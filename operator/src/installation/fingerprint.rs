//! Short hashes that distinguish values and versions.

use sha2::{Digest, Sha256};

/// A value's fingerprint: distinguishes values, and is no way to them without the salt. 16 hexadecimal digits.
pub fn fingerprint(salt: &[u8], value: &[u8]) -> String {
    let digest = Sha256::new()
        .chain_update(salt)
        .chain_update([0])
        .chain_update(value)
        .finalize();
    hex::encode(&digest[..8])
}

/// Ten hexadecimal digits: enough to distinguish versions of one object.
pub fn short_hash(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
        digest.update([0]);
    }
    hex::encode(&digest.finalize()[..5])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_values_and_salts_apart() {
        assert_ne!(fingerprint(b"salt", b"one"), fingerprint(b"salt", b"two"));
        assert_ne!(fingerprint(b"salt", b"one"), fingerprint(b"other", b"one"));
    }
}
