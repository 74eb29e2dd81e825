//! A key in the query: addresses are kept in logs and histories, so such a key is as good as lost.

use std::net::IpAddr;

use tokio::time::Instant;
use water_domain::{KeyPrefix, PlainKey};
use water_http::{Problem, Query};
use water_keystore::Replica;

use crate::guessing::Guessing;

/// What a key is recognised by.
#[derive(Debug)]
pub struct KeyInQuery<'a> {
    /// What generated keys begin with.
    pub prefix: &'a KeyPrefix,
    /// Knows the keys that were brought along by their hash, whose form says nothing.
    pub directory: &'a Replica,
    /// Says how often an address may learn whether some text is a key.
    pub guessing: &'a Guessing,
    /// The client's address.
    pub client: IpAddr,
    /// When the request came.
    pub at: Instant,
}

impl KeyInQuery<'_> {
    /// Refuses a query that has a key in it, under any name, alone or within other text.
    pub fn refuse(&self, query: &Query<'_>) -> Result<(), Problem> {
        let texts = query.pairs().flat_map(|(name, value)| [name, value]);
        match texts
            .into_iter()
            .any(|text| self.prefix.is_in(text) || self.is_known(text))
        {
            true => Err(Problem::key_in_query()),
            false => Ok(()),
        }
    }

    /// Each text that could be a key is a guess, whether it is one or not: an address that has none
    /// left learns nothing, and its request is judged by the key that it presents.
    fn is_known(&self, text: &str) -> bool {
        let Ok(key) = PlainKey::parse(text.as_bytes(), self.prefix) else {
            return false;
        };
        if !self.guessing.allows(self.client, self.at) {
            return false;
        }
        let view = self.directory.view();
        view.is_some_and(|view| view.record(&key.hash()).is_some())
    }
}
