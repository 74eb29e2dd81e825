//! Name of a key's ApiKey: the same account and hash always give the same name, so that a request that is
//! sent again finds what the first one made.

use water_domain::{AccountId, KeyHash};

/// Bytes of the account that fit into a name of 52 characters with the hash.
const ACCOUNT: usize = 40;
/// Digits of the hash: 40 bits distinguish the keys of one account.
const DIGITS: usize = 10;

/// Returns the account as a DNS label with the first digits of the hash.
pub fn name(account: &AccountId, hash: &KeyHash) -> String {
    let label = account.as_str().bytes().map(|byte| match byte {
        b'.' | b'_' => '-',
        byte => char::from(byte.to_ascii_lowercase()),
    });
    let label: String = label.take(ACCOUNT).collect();
    let label = label.trim_end_matches('-');
    let hash = hash.to_string();
    format!("{label}-{}", &hash[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_for(account: &str) -> String {
        let hash = "0123456789abcdef".repeat(4).parse().unwrap();
        name(&account.parse().unwrap(), &hash)
    }

    #[test]
    fn a_name_is_the_account_as_a_label_and_the_hash() {
        assert_eq!(name_for("acme"), "acme-0123456789");
        assert_eq!(name_for("Acme.Water_FR"), "acme-water-fr-0123456789");
    }

    #[test]
    fn a_name_fits_the_api_server_whatever_the_account() {
        let long = format!("{}.{}", "a".repeat(39), "b".repeat(23));
        assert_eq!(name_for(&long), format!("{}-0123456789", "a".repeat(39)));
        assert_eq!(name_for(&"x".repeat(63)).len(), 51);
    }
}
