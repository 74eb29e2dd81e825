//! A service in the test's process, called as the gate calls it.

use std::net::SocketAddr;

use serde_json::Value;
use water_harness::{Answer, HttpClient, wait_until};
use water_http::Backend;
use water_runtime::settings::{Settings, from_settings};
use water_runtime::{BoxError, Config, Process, program};

use crate::{CURRENT, NEXT, SOON, Signature};

/// A service that answers.
pub struct Running {
    address: SocketAddr,
    admin: SocketAddr,
    _process: Process,
}

impl Running {
    /// Starts it on a database that may be away; `start` is the service's own.
    pub fn start<C: Config>(
        postgres_url: &str,
        start: impl FnOnce(&C, u64, &mut Process) -> Result<Backend, BoxError>,
    ) -> Self {
        Self::start_with(postgres_url, &[], start)
    }

    /// Starts it with further settings.
    pub fn start_with<C: Config>(
        postgres_url: &str,
        more: &[(&str, &str)],
        start: impl FnOnce(&C, u64, &mut Process) -> Result<Backend, BoxError>,
    ) -> Self {
        let settings = [
            ("WATER_LISTEN_ADDRESS", "127.0.0.1:0"),
            ("WATER_ADMIN_ADDRESS", "127.0.0.1:0"),
            ("WATER_POSTGRES_URL", postgres_url),
            ("WATER_IDENTITY_CURRENT", CURRENT),
            ("WATER_IDENTITY_NEXT", NEXT),
        ];
        let mut settings = Settings::from_pairs(settings.iter().chain(more).copied());
        let config: C = from_settings(&mut settings).unwrap();
        let mut process = Process::start(program!()).unwrap();
        let service = start(&config, 7, &mut process).unwrap();
        let (address, admin) = (service.address().unwrap(), service.admin_address());
        tokio::spawn(service.serve());
        Self {
            address,
            admin,
            _process: process,
        }
    }

    /// Waits until it says that it is ready.
    pub async fn ready(self) -> Self {
        let ready = async || match self.admin("/ready").await {
            answer if answer.status == 200 => Ok(()),
            answer => anyhow::bail!("{answer:?}"),
        };
        wait_until("the service to be ready", SOON, ready)
            .await
            .unwrap();
        self
    }

    /// Sends `GET target` for the account `acme`.
    pub async fn get(&self, target: &str) -> Answer {
        self.request("GET", target, &[]).await
    }

    /// Sends `GET target` for any account.
    pub async fn get_as(&self, account: &str, target: &str) -> Answer {
        let signature = Signature {
            account,
            ..Signature::default()
        };
        self.get_with(target, &signature.value("GET", target)).await
    }

    /// Sends `GET target` with this identity header.
    pub async fn get_with(&self, target: &str, identity: &str) -> Answer {
        let fields = [("X-Water-Identity", identity)];
        self.raw("GET", target, &fields).await
    }

    /// Sends a request for `acme` that the gate vouches for.
    pub async fn request(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        let identity = Signature::default().value(method, target);
        let headers = [headers, &[("X-Water-Identity", identity.as_str())]].concat();
        self.raw(method, target, &headers).await
    }

    /// Sends a request with exactly these headers.
    pub async fn raw(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        let mut client = self.connect().await;
        client.request(method, target, headers).await.unwrap()
    }

    /// Returns the address on which it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens a connection to it, for one request after the other.
    pub async fn connect(&self) -> HttpClient {
        HttpClient::connect(self.address).await.unwrap()
    }

    /// Returns the value of one metric, as its line has it.
    pub async fn metric(&self, name: &str) -> String {
        let metrics = self.admin("/metrics").await;
        let mut lines = metrics.text().unwrap().lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value
            .unwrap_or_else(|| panic!("no {name} in {metrics:?}"))
            .to_owned()
    }

    /// Returns an answer of the admin port.
    pub async fn admin(&self, path: &str) -> Answer {
        let mut client = HttpClient::connect(self.admin).await.unwrap();
        client.request("GET", path, &[]).await.unwrap()
    }
}

/// Returns status, code and parameter of a problem, after the common rules of problems were checked.
pub fn problem(answer: &Answer) -> (u16, Value, Value) {
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{answer:?}"
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.header("content-language").is_some(), "{answer:?}");
    let vary = answer.header("vary").unwrap();
    assert!(vary.contains("Accept-Language"), "{vary}");
    let body = answer.json().unwrap();
    (
        answer.status,
        body["code"].clone(),
        body["parameter"].clone(),
    )
}
