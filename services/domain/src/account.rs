//! Account whose data a request reads.

use crate::text::validated_text;

validated_text!(
    /// An account of the host product. Without braces, colons and spaces, so that it can be a Redis key's
    /// hash tag; at most 63 characters, so that it can be a label.
    AccountId,
    InvalidAccountId,
    "account id",
    is_account_id,
    "an account id is 1 to 63 letters, digits, '.', '_' or '-', and begins and ends with a letter or digit",
    "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
    63
);

fn is_account_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= AccountId::MAX_LENGTH
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_id_is_short_and_has_clean_edges() {
        for good in ["a", "acme", "acme.fr", "A-1_b", &"x".repeat(63)] {
            assert!(good.parse::<AccountId>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "a:b", "{a}", "é", &"x".repeat(64)] {
            assert_eq!(bad.parse::<AccountId>(), Err(InvalidAccountId), "{bad}");
        }
    }
}
