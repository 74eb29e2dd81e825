//! Names of all keys in Redis. They are a wire format between operator and gates of different versions, so they are
//! made here only and pinned by tests.
//!
//! The directory of one instance has one hash tag, so that its scripts work in a Redis Cluster; limiter keys carry the
//! account as hash tag, which spreads accounts over the cluster.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use water_domain::AccountId;
use water_domain::key::Shard;

use crate::usage::day::UtcDay;

/// WaterDataApi that a directory belongs to: `<namespace>.<name>`. Two instances share a Redis without touching each
/// other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Instance(Box<str>);

/// Text that names no instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "an instance is <namespace>.<name of the WaterDataApi>, lower-case letters, digits, '-' and '.', \
     such as water.water-data"
)]
pub struct InvalidInstance;

impl Instance {
    /// The instance of the WaterDataApi `name` in `namespace`.
    pub fn new(namespace: &str, name: &str) -> Result<Self, InvalidInstance> {
        format!("{namespace}.{name}").parse()
    }

    /// The WaterDataApi's namespace.
    pub fn namespace(&self) -> &str {
        self.0
            .split_once('.')
            .map_or("", |(namespace, _)| namespace)
    }

    /// The WaterDataApi's name.
    pub fn name(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, name)| name)
    }

    /// `<namespace>.<name>`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Prefix of every key of the directory.
    pub fn prefix(&self) -> String {
        format!("wd:{{{self}}}:")
    }

    /// Hash: digest of a key → its packed record.
    pub fn records(&self, shard: Shard) -> String {
        format!("wd:{{{self}}}:records:{shard}")
    }

    /// Hash: digest of a key → its owner. The operator's; no gate reads it.
    pub fn owners(&self, shard: Shard) -> String {
        format!("wd:{{{self}}}:owners:{shard}")
    }

    /// Hash: an owner's uid → what the directory holds of it. The operator's; no gate reads it.
    pub fn held(&self, shard: Shard) -> String {
        format!("wd:{{{self}}}:held:{shard}")
    }

    /// Hash: plan name → limits.
    pub fn plans(&self) -> String {
        format!("wd:{{{self}}}:plans")
    }

    /// Stream: every change, each with its `seq`.
    pub fn feed(&self) -> String {
        format!("wd:{{{self}}}:feed")
    }

    /// String: the directory's state, as JSON.
    pub fn meta(&self) -> String {
        format!("wd:{{{self}}}:meta")
    }

    /// Hash: pod → the gate's lease, as JSON.
    pub fn gates(&self) -> String {
        format!("wd:{{{self}}}:gates")
    }

    /// Hash: digest of a revoked key → times by account; uid of an owner that has declared for the last time → time.
    pub fn revoked(&self) -> String {
        format!("wd:{{{self}}}:revoked")
    }

    /// Sorted set: key id → last use in ms.
    pub fn used(&self) -> String {
        format!("wd:{{{self}}}:used")
    }

    /// List: an account's accepted times of the last minute, in µs, oldest first.
    pub fn minute(&self, account: &AccountId) -> String {
        self.counter(account, ":m")
    }

    /// String: an account's UTC day and how many requests it made in it.
    pub fn day(&self, account: &AccountId) -> String {
        self.counter(account, ":d")
    }

    /// Name of one of the two counters that are asked for with each request.
    fn counter(&self, account: &AccountId, window: &str) -> String {
        ["wd:rl:{", account.as_str(), "}:", self.as_str(), window].concat()
    }

    /// String: written and forgotten by a limiter that tries whether Redis takes writes again. No
    /// account's counters end with `p`.
    pub(crate) fn probe(&self) -> String {
        format!("wd:rl:{{probe}}:{self}:p")
    }

    /// Hash: what an account did on a day.
    pub fn usage(&self, account: &AccountId, day: UtcDay) -> String {
        format!("wd:use:{{{account}}}:{self}:{day}")
    }

    /// List: the times, in µs, at which an account took of an allowance of the portal.
    pub fn allowance(&self, account: &AccountId, word: &str) -> String {
        format!("wd:web:{{{account}}}:{self}:{word}")
    }

    /// The pattern that matches every day's usage of this instance and nothing else.
    pub(crate) fn usage_pattern(&self) -> String {
        format!("wd:use:{{*}}:{self}:????-??-??")
    }

    /// String: a browser session, sealed; by its [`WebName`], or as an index lists that.
    pub fn session(&self, session: impl fmt::Display) -> String {
        self.web(session, "s")
    }

    /// Sorted set: the sessions of one subject → when each began, in ms.
    pub(crate) fn sessions_of_subject(&self, subject: &WebName) -> String {
        self.web(subject, "u")
    }

    /// Sorted set: the sessions that derive from one session at the identity provider → when each began, in ms.
    pub(crate) fn sessions_of_provider(&self, session: &WebName) -> String {
        self.web(session, "i")
    }

    /// String: present once the portal has taken what it takes once.
    pub(crate) fn taken(&self, once: &WebName) -> String {
        self.web(once, "j")
    }

    fn web(&self, name: impl fmt::Display, kind: &str) -> String {
        format!("wd:web:{{{name}}}:{self}:{kind}")
    }

    /// The pattern that matches every session and allowance of this instance's portal and nothing else.
    pub(crate) fn web_pattern(&self) -> String {
        format!("wd:web:{{*}}:{self}:*")
    }

    /// The pattern that matches every limiter key of this instance and no other's.
    pub(crate) fn limiter_pattern(&self) -> String {
        format!("wd:rl:{{*}}:{self}:?")
    }
}

/// Name of something of a browser's: a SHA-256, so that names reveal nothing and are spread over a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WebName([u8; 32]);

impl WebName {
    /// The name made from these bytes.
    pub fn digest(said: &[u8]) -> Self {
        Self(Sha256::digest(said).into())
    }
}

impl fmt::Display for WebName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl FromStr for Instance {
    type Err = InvalidInstance;

    fn from_str(text: &str) -> Result<Self, InvalidInstance> {
        let (namespace, name) = text.split_once('.').ok_or(InvalidInstance)?;
        // The characters of Kubernetes names: none of them means anything to Redis, neither in a
        // hash tag nor in a pattern of its ACL.
        let clean = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
        };
        if clean(namespace) && clean(name) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidInstance)
        }
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance() -> Instance {
        Instance::new("water", "water-data").unwrap()
    }

    fn shard(index: usize) -> Shard {
        Shard::all().nth(index).unwrap()
    }

    #[test]
    fn an_instance_is_a_namespace_and_a_name() {
        assert_eq!(
            (instance().namespace(), instance().name()),
            ("water", "water-data")
        );
    }

    #[test]
    fn directory_keys_are_these() {
        let instance = instance();
        let names = [
            instance.records(shard(0xabc)),
            instance.owners(shard(0x00f)),
            instance.held(shard(0xfff)),
            instance.plans(),
            instance.feed(),
            instance.meta(),
            instance.gates(),
            instance.revoked(),
            instance.used(),
        ];
        let golden = [
            "wd:{water.water-data}:records:abc",
            "wd:{water.water-data}:owners:00f",
            "wd:{water.water-data}:held:fff",
            "wd:{water.water-data}:plans",
            "wd:{water.water-data}:feed",
            "wd:{water.water-data}:meta",
            "wd:{water.water-data}:gates",
            "wd:{water.water-data}:revoked",
            "wd:{water.water-data}:used",
        ];
        assert_eq!(names, golden);
        assert!(
            names
                .iter()
                .all(|name| name.starts_with(&instance.prefix()))
        );
    }

    #[test]
    fn limiter_keys_carry_the_account_as_hash_tag() {
        let account = "acme".parse().unwrap();
        assert_eq!(
            instance().minute(&account),
            "wd:rl:{acme}:water.water-data:m"
        );
        assert_eq!(instance().day(&account), "wd:rl:{acme}:water.water-data:d");
        assert_eq!(instance().probe(), "wd:rl:{probe}:water.water-data:p");
    }

    #[test]
    fn usage_and_allowances_carry_the_account_as_hash_tag() {
        let account = "acme".parse().unwrap();
        let day = UtcDay::from(water_domain::Timestamp::from_millis(0).unwrap());
        assert_eq!(
            instance().usage(&account, day),
            "wd:use:{acme}:water.water-data:1970-01-01"
        );
        assert_eq!(
            instance().allowance(&account, "changes"),
            "wd:web:{acme}:water.water-data:changes"
        );
    }

    #[test]
    fn keys_of_browsers_carry_a_digest_as_hash_tag() {
        let (instance, name) = (instance(), WebName::digest(b"acme"));
        // printf acme | sha256sum
        let digest = "822b33ad87c148a0a20a5ba7cd5ebcaa68d36a18e7aad165554903f52ca82757";
        let names = [
            instance.session(name),
            instance.sessions_of_subject(&name),
            instance.sessions_of_provider(&name),
            instance.taken(&name),
        ];
        let golden =
            ["s", "u", "i", "j"].map(|kind| format!("wd:web:{{{digest}}}:water.water-data:{kind}"));
        assert_eq!(names, golden);
        assert_eq!(instance.session(digest), names[0]);
    }

    #[test]
    fn an_instance_has_no_character_that_redis_would_interpret() {
        for bad in [
            "",
            "water",
            "water.",
            ".a",
            "water.a*",
            "water.{a}",
            "water.a:b",
            "W.a",
        ] {
            assert_eq!(bad.parse::<Instance>(), Err(InvalidInstance), "{bad}");
        }
    }
}
