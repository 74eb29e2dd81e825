//! The identity that the gate signs for each request.

use std::time::SystemTime;

use http::Method;
use water_domain::Timestamp;
use water_http::{Identity, IdentityKey, Signer};

/// The key that services believe.
pub const CURRENT: &str = "11111111111111111111111111111111111111111111111111111111111111aa";
/// The key that they will believe next.
pub const NEXT: &str = "22222222222222222222222222222222222222222222222222222222222222bb";

/// Account, key and end of an identity that the gate signs.
pub struct Signature<'a> {
    /// The account that asks.
    pub account: &'a str,
    /// The key that signs, 64 hex digits.
    pub key: &'a str,
    /// Milliseconds from this moment.
    pub expires_in: i64,
}

impl Default for Signature<'_> {
    /// Returns the account `acme`, as the gate signs.
    fn default() -> Self {
        Self {
            account: "acme",
            key: CURRENT,
            expires_in: 30_000,
        }
    }
}

impl Signature<'_> {
    /// Returns the header's value for one request.
    pub fn value(&self, method: &str, target: &str) -> String {
        let identity = Identity {
            account: self.account.parse().unwrap(),
            key: "abcdefghijkl".parse().unwrap(),
            plan: "Enterprise".parse().unwrap(),
        };
        let signer = Signer::new(&self.key.parse::<IdentityKey>().unwrap());
        let expires = Timestamp::from_millis(now() + self.expires_in).unwrap();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let value = signer.sign(&identity, expires, &method, target);
        value.to_str().unwrap().to_owned()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the service compares with this clock"
)]
fn now() -> i64 {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    since_epoch.as_millis().try_into().unwrap()
}
