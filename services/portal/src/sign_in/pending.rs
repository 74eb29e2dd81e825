//! A sign-in under way, sealed in a cookie of ten minutes whose name is part of its state. A browser
//! has four of them at most: several tabs may sign in at once.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use water_domain::Timestamp;
use water_http::Problem;

use crate::cookie;
use crate::random;
use crate::seal::{SealKey, SealRandomness};

/// Time from the click to the way back.
pub const LIFETIME: Duration = Duration::from_mins(10);
/// Beginning of the cookies' names; the first characters of the state follow.
const PREFIX: &str = "__Host-water_signin_";
/// Characters of the state in a name.
const MARK: usize = 8;
/// The most at once.
const AT_ONCE: usize = 4;

/// State of a sign-in under way.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// State, which comes back with the reader.
    pub state: String,
    /// Nonce, which comes back in the ID token.
    pub nonce: String,
    /// Verifier for the token endpoint (RFC 7636 §4.1).
    pub verifier: String,
    /// Page that the reader asked for.
    pub to: String,
    /// Time at which the reader was sent to the provider.
    pub at: Timestamp,
}

impl Pending {
    /// Begins a sign-in now.
    pub fn new(to: &str, now: Timestamp) -> Result<Self, Problem> {
        Ok(Self {
            state: random::text()?,
            nonce: random::text()?,
            verifier: random::text()?,
            to: to.to_owned(),
            at: now,
        })
    }

    /// Returns the sign-in that came back with `state`, if this browser began it in the last ten minutes.
    pub fn read(headers: &HeaderMap, state: &str, key: &SealKey, now: Timestamp) -> Option<Self> {
        let name = name_of(state)?;
        let pending = open(&name, cookie::once(headers, &name)?, key)?;
        let fresh = pending.at <= now && now < pending.at.plus(LIFETIME);
        (pending.state == state && fresh).then_some(pending)
    }

    /// Returns the field that keeps it in the browser.
    pub fn cookie(&self, key: &SealKey, random: SealRandomness) -> HeaderValue {
        let text = serde_json::to_vec(self).expect("texts are always JSON");
        let name = self.name();
        let sealed = BASE64_URL_SAFE_NO_PAD.encode(key.seal(&name, &text, random));
        cookie::set(&name, &sealed, Some(LIFETIME))
    }

    /// Returns the field that removes it from the browser.
    pub fn clear(&self) -> HeaderValue {
        cookie::clear(&self.name())
    }

    fn name(&self) -> String {
        name_of(&self.state).expect("a state of ours has the form")
    }
}

/// Returns the fields that remove the oldest sign-ins, so that one more makes four.
pub fn surplus(headers: &HeaderMap, key: &SealKey) -> Vec<HeaderValue> {
    let ours = cookie::all(headers).filter(|(name, _)| name.starts_with(PREFIX));
    let ours = ours.filter(|(name, _)| name_of(&name[PREFIX.len()..]).as_deref() == Some(*name));
    let mut known: Vec<_> = ours
        .map(|(name, value)| (open(name, value, key).map(|pending| pending.at), name))
        .collect();
    // Those that cannot be opened come first.
    known.sort();
    let surplus = (known.len() + 1).saturating_sub(AT_ONCE);
    let names = known.iter().take(surplus);
    names.map(|(_, name)| cookie::clear(name)).collect()
}

/// Returns the cookie's name by a state; none if the state is no text of ours.
fn name_of(state: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let mark = state.get(..MARK)?;
    state.bytes().all(plain).then(|| format!("{PREFIX}{mark}"))
}

fn open(name: &str, value: &str, key: &SealKey) -> Option<Pending> {
    let sealed = BASE64_URL_SAFE_NO_PAD.decode(value).ok()?;
    serde_json::from_slice(&key.open(name, &sealed)?).ok()
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    fn key() -> SealKey {
        "0f".repeat(32).parse().unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + seconds * 1000).unwrap()
    }

    fn pending(seconds: i64) -> Pending {
        Pending::new("/docs", at(seconds)).unwrap()
    }

    /// Returns the headers of a browser with the cookies of these sign-ins.
    fn browser(pending: &[Pending]) -> HeaderMap {
        let lines = pending.iter().map(|pending| {
            let set = pending.cookie(&key(), random::bytes().unwrap());
            let pair = set.to_str().unwrap().split(';').next().unwrap().to_owned();
            (COOKIE, pair.parse().unwrap())
        });
        lines.collect()
    }

    #[test]
    fn a_sign_in_comes_back_to_the_browser_that_began_it_within_ten_minutes() {
        let (mine, other) = (pending(0), pending(0));
        let headers = browser(std::slice::from_ref(&mine));
        let back = |state: &str, seconds| Pending::read(&headers, state, &key(), at(seconds));
        assert!(back(&mine.state, 599) == Some(mine.clone()));
        assert!(back(&mine.state, 600).is_none());
        assert!(back(&mine.state, -1).is_none());
        assert!(back(&other.state, 1).is_none());
        let alike = format!("{}{}", &mine.state[..8], &other.state[8..]);
        for state in [
            "",
            "short",
            &alike,
            &mine.state[..42],
            &format!("{}é", mine.state),
        ] {
            assert!(back(state, 1).is_none(), "{state}");
        }
    }

    #[test]
    fn a_cookie_that_is_forged_or_moved_or_twice_is_none() {
        let (mine, other) = (pending(0), pending(0));
        let another_key = "1f".repeat(32).parse().unwrap();
        let headers = browser(std::slice::from_ref(&mine));
        assert!(Pending::read(&headers, &mine.state, &another_key, at(1)).is_none());
        let twice = browser(&[mine.clone(), mine.clone()]);
        assert!(Pending::read(&twice, &mine.state, &key(), at(1)).is_none());
        let set = mine.cookie(&key(), random::bytes().unwrap());
        let value = set
            .to_str()
            .unwrap()
            .split(['=', ';'])
            .nth(1)
            .unwrap()
            .to_owned();
        let moved = format!("{}={value}", other.name()).parse().unwrap();
        let moved = HeaderMap::from_iter([(COOKIE, moved)]);
        assert!(Pending::read(&moved, &other.state, &key(), at(1)).is_none());
    }

    #[test]
    fn the_fifth_sign_in_takes_the_oldest_away() {
        let four = [pending(3), pending(1), pending(2), pending(4)];
        assert!(surplus(&browser(&four[..3]), &key()).is_empty());
        assert_eq!(surplus(&browser(&four), &key()), [four[1].clear()]);
    }
}
