//! One portal, its Redis, and the identity provider that its people come from.

mod browser;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::ensure;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use water_harness::{HttpClient, IdentityProvider, Redis, SigningKey, wait_until};
use water_portal::{Config, Pages, Service};
use water_runtime::settings::from_settings;
use water_runtime::{Process, Settings, program};

pub use browser::{Begun, Browser};

/// Longer than anything that is waited for takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(20);
/// The portal's origin. Nothing listens there: the ingress is not part of these tests.
pub const URL: &str = "https://portal.example.org";

pub struct Site {
    pub provider: IdentityProvider,
    pub key: SigningKey,
    address: SocketAddr,
    admin: SocketAddr,
    process: Process,
    serving: JoinHandle<()>,
}

impl Site {
    /// A ready portal on the Redis that all tests share.
    pub async fn start() -> Self {
        Self::start_with(&Redis::shared().await.unwrap().url(), &[]).await
    }

    /// The same on the Redis of this URL, with more settings.
    pub async fn start_with(redis: &str, settings: &[(&str, &str)]) -> Self {
        let site = Self::start_unready(redis, settings).await;
        let ready = async || {
            let missing = site.process.readiness.missing();
            ensure!(site.is_ready(), "missing: {missing:?}");
            Ok(())
        };
        wait_until("a ready portal", SOON, ready).await.unwrap();
        site
    }

    async fn start_unready(redis: &str, more: &[(&str, &str)]) -> Self {
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
        let config: Config = from_settings(&mut Settings::from_pairs(pairs)).unwrap();
        let mut process = Process::start(program!()).unwrap();
        let service = Service::start(config, pages(), nobody(), 1, &mut process).unwrap();
        let address = service.address().unwrap();
        let admin = service.admin_address();
        let serving = tokio::spawn(async move {
            match service.serve().await {
                Ok(_) => {}
                Err(never) => match never {},
            }
        });
        Self {
            provider,
            key,
            address,
            admin,
            process,
            serving,
        }
    }

    /// A browser that was never here.
    pub fn browser(&self) -> Browser {
        Browser::new(self.address)
    }

    /// Whether the portal calls itself ready, but for the API server, which these tests are without.
    pub fn is_ready(&self) -> bool {
        self.process.readiness.missing() == ["bounds of its rights"]
    }

    /// How many sign-ins came to each end.
    pub async fn sign_ins(&self) -> BTreeMap<String, u64> {
        let mut client = HttpClient::connect(self.admin).await.unwrap();
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

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn pages() -> Pages {
    let index = ("index.html".to_owned(), b"<!doctype html>".to_vec());
    Pages::new([index]).unwrap()
}

/// A client of an API server that is away.
fn nobody() -> Client {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    Client::try_from(config).unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the portal checks tokens by this clock"
)]
pub fn epoch_seconds() -> i64 {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(elapsed.unwrap().as_secs()).unwrap()
}
