//! A portal's surroundings: the identity provider of its people, its settings, and browsers.
//!
//! The portal itself is started by its tests, with [`Portal::settings`].

mod browser;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use serde_json::{Value, json};
use water_harness::{IdentityProvider, SigningKey};

pub use browser::{Browser, OWN, SignIn};

use crate::KeyStore;

/// The portal's origin. Nothing listens there: the ingress is not part of these tests.
pub const URL: &str = "https://portal.example.org";

/// A portal's provider, which signs every token that a test gives it, and the portal's settings.
pub struct Portal {
    /// The identity provider.
    pub provider: IdentityProvider,
    /// The provider's only key, at first.
    pub key: SigningKey,
    /// The portal's settings, by name.
    pub settings: Vec<(String, String)>,
}

impl Portal {
    /// Makes a portal with its own part of this store, and with further settings, or other values of some.
    pub async fn on(store: &KeyStore, more: &[(&str, &str)]) -> Self {
        let provider = IdentityProvider::start().await.unwrap();
        let key = SigningKey::elliptic("first").unwrap();
        provider.tell(&[&key]);
        let digits = "0f".repeat(32);
        let pairs = [
            ("WATER_LISTEN_ADDRESS", "127.0.0.1:0"),
            ("WATER_ADMIN_ADDRESS", "127.0.0.1:0"),
            ("WATER_REDIS_URL", store.url()),
            ("WATER_INSTANCE", store.instance.as_str()),
            ("WATER_DEPARTEMENTS_ADDRESS", "127.0.0.1:1"),
            ("WATER_HISTORY_ADDRESS", "127.0.0.1:1"),
            ("WATER_IDENTITY_CURRENT", &digits),
            ("WATER_PORTAL_URL", URL),
            ("WATER_OIDC_ISSUER", provider.issuer()),
            ("WATER_OIDC_CLIENT_ID", "water-portal"),
            ("WATER_OIDC_CLIENT_SECRET", "a secret: with +"),
            ("WATER_OIDC_CA", provider.authority()),
            ("WATER_PORTAL_SEAL_KEY", &digits),
            ("WATER_TRUSTED_PROXIES", "127.0.0.0/8"),
        ];
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = pairs.iter().chain(more).map(owned).collect();
        Self {
            provider,
            key,
            settings,
        }
    }

    /// Returns good claims of Anna: a manager of `acme`, a viewer of `globex`.
    pub fn claims(&self, nonce: &str) -> Value {
        let now = epoch_seconds();
        json!({
            "iss": self.provider.issuer(), "aud": "water-portal", "sub": "anna", "sid": "s-1",
            "name": "Anna", "nonce": nonce, "iat": now, "exp": now + 600,
            "groups": ["water:acme:Enterprise", "water:globex:Enterprise:viewer", "staff"],
        })
    }

    /// Returns good claims of a logout of Anna's, under this id.
    pub fn logout(&self, id: &str) -> Value {
        let now = epoch_seconds();
        json!({
            "iss": self.provider.issuer(), "aud": "water-portal", "sub": "anna", "sid": "s-1",
            "iat": now, "exp": now + 120, "jti": id,
            "events": { "http://schemas.openid.net/event/backchannel-logout": {} },
        })
    }

    /// Returns Anna, signed in by this browser.
    pub async fn anna(&self, mut browser: Browser) -> Browser {
        let answer = browser.sign_in(self, |_| {}).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        browser
    }

    /// Returns a new person, signed in by this browser from a new address: a person has ten sessions at most,
    /// and an address begins twenty sign-ins a minute.
    pub async fn somebody(&self, mut browser: Browser) -> Browser {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        browser.address = Some(format!("192.0.2.{}", number % 256));
        let person = |claims: &mut Value| {
            claims["sub"] = format!("somebody-{number}").into();
            claims["sid"] = format!("s-{number}").into();
        };
        let answer = browser.sign_in(self, person).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        browser
    }
}

/// Returns the time by the clock that the portal checks tokens with.
#[expect(
    clippy::disallowed_methods,
    reason = "the portal checks tokens by this clock"
)]
pub fn epoch_seconds() -> i64 {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(elapsed.unwrap().as_secs()).unwrap()
}
