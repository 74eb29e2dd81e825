//! The sessions of all browsers: a cookie of 256 random bits here, sealed claims in Redis.
//!
//! Redis holds a session under the cookie's SHA-256, sealed with a key derived from the cookie: a reader of
//! Redis can neither open a session nor use one.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue};
use tracing::warn;
use water_domain::Timestamp;
use water_http::Problem;
use water_keystore::{SessionKeys, SessionStart, WebName};

use crate::cookie;
use crate::provider::{EndedSessions, LogoutToken};
use crate::random;
use crate::seal::SealKey;
use crate::session::Session;

/// The session's cookie.
const COOKIE: &str = "__Host-water_session";
/// Purpose of a session's derived key.
const PURPOSE: &str = "water-portal session";
/// The longest that a used logout token is remembered.
const REMEMBERED: Duration = Duration::from_hours(24);

/// Bytes of a cookie.
type Cookie = [u8; 32];

/// Store in which sessions begin, are found and end.
#[derive(Clone, Debug)]
pub struct Sessions {
    store: water_keystore::Sessions,
    /// Part of subjects' names: two issuers' subjects are two people.
    issuer: String,
    length: Duration,
}

/// A session that a request's cookie has opened.
#[derive(Clone, Debug)]
pub struct OpenSession {
    /// Name by which its requests are counted.
    pub name: WebName,
    /// The session.
    pub session: Session,
}

/// Effect of a request on an idle session: a use puts off its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Request of a person.
    Active,
    /// Request that a page makes by itself.
    Poll,
}

impl Sessions {
    /// Makes sessions of people of this issuer, each of this length at most.
    pub fn new(store: water_keystore::Sessions, issuer: &str, length: Duration) -> Self {
        Self {
            store,
            issuer: issuer.to_owned(),
            length,
        }
    }

    /// Returns the latest end of a session that begins now.
    pub fn end_of(&self, now: Timestamp) -> Timestamp {
        now.plus(self.length)
    }

    /// Stores a session and returns the field that sets its cookie. None: the provider has ended it since
    /// its reader was sent there.
    pub async fn begin(
        &self,
        session: &Session,
        began: SessionStart,
    ) -> Result<Option<HeaderValue>, Problem> {
        let cookie: Cookie = random::bytes()?;
        let keys = self.keys(&cookie, session);
        let text = serde_json::to_vec(session).map_err(Problem::internal)?;
        let key = SealKey::derived(&cookie, PURPOSE);
        let sealed = key.seal(&keys.session.to_string(), &text, random::bytes()?);
        let begun = self.store.begin(&keys, &sealed, began, self.length).await?;
        let value = BASE64_URL_SAFE_NO_PAD.encode(cookie);
        Ok(begun.then(|| cookie::set(COOKIE, &value, None)))
    }

    /// Returns the session of a request; none without one that lives.
    pub async fn find(
        &self,
        headers: &HeaderMap,
        now: Timestamp,
        used: Use,
    ) -> Result<Option<OpenSession>, Problem> {
        let Some(cookie) = presented(headers) else {
            return Ok(None);
        };
        let name = WebName::digest(&cookie);
        let sealed = match used {
            Use::Active => self.store.use_and_read(&name).await?,
            Use::Poll => self.store.read(&name).await?,
        };
        let Some(sealed) = sealed else {
            return Ok(None);
        };
        let key = SealKey::derived(&cookie, PURPOSE);
        let text = key.open(&name.to_string(), &sealed);
        let session = text.and_then(|text| serde_json::from_slice::<Session>(&text).ok());
        let Some(session) = session else {
            warn!("a session in Redis cannot be opened; its reader has to sign in again");
            return Ok(None);
        };
        let lives = now < session.ends();
        Ok(lives.then_some(OpenSession { name, session }))
    }

    /// Ends the session of a request and returns it, if there is one.
    pub async fn end(
        &self,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<Option<Session>, Problem> {
        let (Some(cookie), Some(opened)) = (
            presented(headers),
            self.find(headers, now, Use::Poll).await?,
        ) else {
            return Ok(None);
        };
        self.store.end(&self.keys(&cookie, &opened.session)).await?;
        Ok(Some(opened.session))
    }

    /// Ends the sessions of a logout token, once, and returns their number. None: the token was used
    /// before.
    pub async fn end_by(
        &self,
        token: &LogoutToken,
        now: Timestamp,
    ) -> Result<Option<usize>, Problem> {
        let left = token.expires.as_millis().saturating_sub(now.as_millis());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        let remembered = (left + Duration::from_mins(2)).min(REMEMBERED);
        let used = self.name("jti", &token.id);
        if self.store.was_taken(&used).await? {
            return Ok(None);
        }
        let ended = match &token.ends {
            EndedSessions::Provider(sid) => {
                let sid = self.name("sid", sid);
                self.store.end_of_provider(&sid, now, self.length).await?
            }
            EndedSessions::Subject(sub) => {
                let sub = self.name("sub", sub);
                self.store.end_of_subject(&sub, now, self.length).await?
            }
        };
        // Only now: after a failure the provider may send its token again.
        self.store.take(&used, remembered).await?;
        Ok(Some(ended))
    }

    /// Takes what may be used once within `lifetime`; false if it was used before.
    pub async fn once(&self, kind: &str, text: &str, lifetime: Duration) -> Result<bool, Problem> {
        Ok(self.store.take(&self.name(kind, text), lifetime).await?)
    }

    /// Returns the field that removes the cookie.
    pub fn clear() -> HeaderValue {
        cookie::clear(COOKIE)
    }

    fn keys(&self, cookie: &Cookie, session: &Session) -> SessionKeys {
        let sid = session.sid.as_ref();
        SessionKeys {
            session: WebName::digest(cookie),
            subject: self.name("sub", session.subject()),
            provider: sid.map(|sid| self.name("sid", sid)),
        }
    }

    /// Names a person or session of this issuer. None of the parts has a NUL.
    fn name(&self, kind: &str, text: &str) -> WebName {
        WebName::digest([kind, &self.issuer, text].join("\0").as_bytes())
    }
}

/// Returns the cookie, if it was sent once and has the form.
fn presented(headers: &HeaderMap) -> Option<Cookie> {
    let text = cookie::once(headers, COOKIE)?;
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE as HEADER;

    use super::*;
    use crate::claims::Role;
    use crate::sample;

    fn after(began: Timestamp, minutes: u64) -> Timestamp {
        began.plus(Duration::from_mins(minutes))
    }

    #[tokio::test]
    async fn a_session_that_is_used_all_the_time_ends_after_its_length() {
        let (connection, instance) = sample::store().await;
        let store = water_keystore::Sessions::new(connection, instance);
        let sessions = Sessions::new(store, "https://id.example", Duration::from_hours(8));
        let began = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
        let session = Session {
            ends: sessions.end_of(began),
            ..sample::session("acme", "Enterprise", Role::Manager)
        };
        let set = sessions.begin(&session, sample::at_once(began)).await;
        let set = set.unwrap().unwrap();
        let cookie = set.to_str().unwrap().split(';').next().unwrap();
        let headers = HeaderMap::from_iter([(HEADER, cookie.parse().unwrap())]);
        let lives = async |minutes| {
            let now = after(began, minutes);
            let opened = sessions.find(&headers, now, Use::Active).await.unwrap();
            opened.is_some()
        };
        for minutes in (0..480).step_by(20).chain([479]) {
            assert!(lives(minutes).await, "after {minutes} minutes");
        }
        for minutes in [480, 481, 1_000] {
            assert!(!lives(minutes).await, "after {minutes} minutes");
        }
    }

    #[test]
    fn a_cookie_of_another_form_is_none() {
        let good = BASE64_URL_SAFE_NO_PAD.encode([7; 32]);
        let presents = |value: &str| {
            let line = format!("{COOKIE}={value}");
            presented(&HeaderMap::from_iter([(HEADER, line.parse().unwrap())]))
        };
        assert_eq!(presents(&good), Some([7; 32]));
        let short = BASE64_URL_SAFE_NO_PAD.encode([7; 31]);
        for bad in [
            "",
            "x",
            &short,
            &format!("{good}A"),
            &format!("{good}="),
            &good.to_lowercase(),
        ] {
            // Another text of the right length is another cookie, which names no session.
            assert_ne!(presents(bad), Some([7; 32]), "{bad}");
        }
    }
}
