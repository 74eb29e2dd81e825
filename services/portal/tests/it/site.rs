//! One portal, its Redis, and the identity provider that its people come from.

mod browser;
mod replica;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use water_harness::{HttpClient, IdentityProvider, Redis, SigningKey};
use water_portal::Pages;

pub use browser::{Begun, Browser};
pub use replica::Replica;

/// Longer than anything that is waited for takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);
/// The portal's origin. Nothing listens there: the ingress is not part of these tests.
pub const URL: &str = "https://portal.example.org";

pub struct Site {
    pub provider: IdentityProvider,
    pub key: SigningKey,
    settings: Vec<(String, String)>,
    replica: Replica,
}

impl Site {
    /// A ready portal on the Redis that all tests share.
    pub async fn start() -> Self {
        Self::start_with(&Redis::shared().await.unwrap().url(), &[]).await
    }

    /// The same on the Redis of this URL, with more settings.
    pub async fn start_with(redis: &str, more: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let instance = format!("water.portal-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let provider = IdentityProvider::start().await.unwrap();
        let key = SigningKey::elliptic("first").unwrap();
        provider.tell(&[&key]);
        let digits = "0f".repeat(32);
        let mut pairs = vec![
            ("WATER_LISTEN_ADDRESS", "127.0.0.1:0"),
            ("WATER_ADMIN_ADDRESS", "127.0.0.1:0"),
            ("WATER_REDIS_URL", redis),
            ("WATER_INSTANCE", &instance),
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
        pairs.extend(more);
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let settings: Vec<_> = pairs.into_iter().map(owned).collect();
        let replica = Replica::start(&settings, pages()).await;
        Self {
            provider,
            key,
            settings,
            replica,
        }
    }

    /// Another replica of the same portal, with these pages.
    pub async fn another(&self, pages: Pages) -> Replica {
        Replica::start(&self.settings, pages).await
    }

    /// A browser that was never here.
    pub fn browser(&self) -> Browser {
        Browser::new(self.replica.address)
    }

    /// Whether the portal calls itself ready, but for the API server, which these tests are without.
    pub fn is_ready(&self) -> bool {
        self.replica.is_ready()
    }

    /// How many sign-ins came to each end.
    pub async fn sign_ins(&self) -> BTreeMap<String, u64> {
        let mut client = HttpClient::connect(self.replica.admin).await.unwrap();
        let answer = client.request("GET", "/metrics", &[]).await.unwrap();
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let lines = text.lines();
        let line = |line: &str| {
            let rest = line.strip_prefix("water_portal_sign_ins_total{outcome=\"")?;
            let (outcome, count) = rest.split_once("\"} ")?;
            Some((outcome.to_owned(), count.parse().unwrap()))
        };
        lines.filter_map(line).collect()
    }

    /// What the operator hears of the provider.
    pub async fn standing(&self) -> Value {
        let mut client = HttpClient::connect(self.replica.admin).await.unwrap();
        let answer = client.request("GET", "/provider", &[]).await.unwrap();
        answer.json().unwrap()
    }

    /// Good claims of Anna: a manager of `acme`, a viewer of `globex`.
    pub fn claims(&self, nonce: &str) -> Value {
        let now = epoch_seconds();
        json!({
            "iss": self.provider.issuer(), "aud": "water-portal", "sub": "anna", "sid": "s-1",
            "name": "Anna", "nonce": nonce, "iat": now, "exp": now + 600,
            "groups": ["water:acme:Enterprise", "water:globex:Enterprise:viewer", "staff"],
        })
    }

    /// Good claims of a logout of Anna's, under this id.
    pub fn logout(&self, id: &str) -> Value {
        let now = epoch_seconds();
        json!({
            "iss": self.provider.issuer(), "aud": "water-portal", "sub": "anna", "sid": "s-1",
            "iat": now, "exp": now + 120, "jti": id,
            "events": { "http://schemas.openid.net/event/backchannel-logout": {} },
        })
    }

    /// A new person, signed in.
    pub async fn somebody(&self) -> Browser {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut browser = self.browser();
        // An address begins twenty sign-ins a minute.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        browser.address = Some(format!("192.0.2.{}", number % 256));
        let begun = browser.begin("/docs").await;
        let mut claims = self.claims(&begun.nonce);
        claims["sub"] = format!("somebody-{number}").into();
        claims["sid"] = format!("s-{number}").into();
        let token = self.key.sign(&claims).unwrap();
        let answer = browser.finish(self, &begun, &token).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        browser
    }

    /// Anna, signed in by a browser of her own.
    pub async fn anna(&self) -> Browser {
        let mut browser = self.browser();
        let begun = browser.begin("/docs").await;
        let token = self.key.sign(&self.claims(&begun.nonce)).unwrap();
        let answer = browser.finish(self, &begun, &token).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        browser
    }
}

fn pages() -> Pages {
    let index = ("index.html".to_owned(), b"<!doctype html>".to_vec());
    Pages::new([index]).unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the portal checks tokens by this clock"
)]
pub fn epoch_seconds() -> i64 {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(elapsed.unwrap().as_secs()).unwrap()
}
