//! Keys as tests publish them.

use std::sync::atomic::{AtomicU32, Ordering};

use water_domain::{KeyHash, KeyPrefix, PlainKey, Timestamp};
use water_keystore::{Entry, KeyState, Origin, Owner, Record};

/// A key and its record, to be published as it is or changed before.
#[derive(Clone)]
pub struct Key {
    /// The text that a client sends.
    pub text: String,
    /// The record of the directory.
    pub record: Record,
}

impl Default for Key {
    fn default() -> Self {
        Self::new()
    }
}

impl Key {
    /// Returns a key of a new account.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut random = [0x5a; 48];
        random[..4].copy_from_slice(&number.to_be_bytes());
        random[44..].copy_from_slice(&number.to_be_bytes());
        let key = PlainKey::generate(&KeyPrefix::default(), &random);
        let record = Record {
            key_id: key.key_id(),
            account: format!("account-{number}").parse().unwrap(),
            plan: "Enterprise".parse().unwrap(),
            state: KeyState::Active,
            not_before: None,
            expires: None,
            retires: None,
            revision: 1,
        };
        let text = key.expose().to_owned();
        Self { text, record }
    }

    /// Returns a key that was brought along by its hash: any text of at least 32 characters.
    pub fn brought(text: &str) -> Self {
        let mut key = Self {
            text: text.into(),
            ..Self::new()
        };
        key.record.key_id = key.plain().key_id();
        key
    }

    /// Puts the key on another plan.
    pub fn on_plan(mut self, plan: &str) -> Self {
        self.record.plan = plan.parse().unwrap();
        self
    }

    /// Gives the key the account of another key.
    pub fn of_account(mut self, other: &Self) -> Self {
        self.record.account = other.record.account.clone();
        self
    }

    /// Suspends the key.
    pub fn suspended(mut self) -> Self {
        self.record.state = KeyState::Suspended;
        self
    }

    /// Gives the key an end.
    pub fn expires(mut self, at: Timestamp) -> Self {
        self.record.expires = Some(at);
        self
    }

    /// Gives the key a beginning.
    pub fn not_before(mut self, at: Timestamp) -> Self {
        self.record.not_before = Some(at);
        self
    }

    /// Replaces the key by another one from this moment on.
    pub fn retires(mut self, at: Timestamp) -> Self {
        self.record.retires = Some(at);
        self
    }

    /// Returns the value of `Authorization`.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.text)
    }

    /// Returns the key as a rebuild of the directory writes it.
    pub fn entry(&self) -> Entry {
        Entry {
            hash: self.hash(),
            record: self.record.clone(),
            owner: self.owner(),
            origin: Origin::Generated,
        }
    }

    /// Returns the ApiKey that declares it, and nothing else.
    pub fn owner(&self) -> Owner {
        let name = self.hash().key_id();
        Owner {
            uid: format!("uid-of-{name}").into(),
            namespace: "water".into(),
            name: name.as_str().into(),
        }
    }

    /// Returns the hash of its text.
    pub fn hash(&self) -> KeyHash {
        self.plain().hash()
    }

    fn plain(&self) -> PlainKey<'_> {
        PlainKey::parse(self.text.as_bytes(), &KeyPrefix::default()).unwrap()
    }
}
