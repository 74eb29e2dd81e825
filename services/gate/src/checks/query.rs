//! Keys in the query: addresses are kept in logs and histories, so such a key must be considered leaked.

use std::net::IpAddr;

use tokio::time::Instant;
use water_domain::{KeyPrefix, PlainKey};
use water_http::{Problem, Query};
use water_keystore::Replica;

use crate::guessing::Guessing;

/// State for recognising keys in the query of a request.
#[derive(Debug)]
pub struct KeyInQuery<'a> {
    /// Prefix of generated keys.
    pub prefix: &'a KeyPrefix,
    /// Key directory, which recognises provided keys by their hash: they have no recognisable form.
    pub directory: &'a Replica,
    /// Limit on how often an address may learn whether a text is a key.
    pub guessing: &'a Guessing,
    /// The client's address.
    pub client: IpAddr,
    /// Time of the request.
    pub at: Instant,
}

impl KeyInQuery<'_> {
    /// Refuses a query that holds a key, under any name, alone or within other text.
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

    /// Whether the text is a known key. Each text that could be one is a guess, right or wrong: an address without
    /// guesses left learns nothing, and its request is decided by its presented key.
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
