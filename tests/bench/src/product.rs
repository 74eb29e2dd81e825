//! The product's services, with the settings that they have in a cluster.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, ensure};
use http::Method;
use water_domain::Timestamp;
use water_harness::{Answer, HttpClient};
use water_http::{Identity, IdentityKey, Signer};

use crate::load::Requests;
use crate::machine;
use crate::server::{IDENTITY, Server, with_settings};

/// A ready service.
#[derive(Debug)]
pub struct Service(Server);

impl Service {
    /// Starts `binary` on the database of this URL and waits until it is ready.
    pub async fn start(
        binary: &str,
        postgres_url: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let server = Server::start(binary, |program, _| {
            let program = program
                .env("WATER_POSTGRES_URL", postgres_url)
                .env("WATER_IDENTITY_CURRENT", IDENTITY);
            with_settings(program, settings)
        });
        server.await.map(Self)
    }

    /// Where the gate asks.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// One answer for `account`.
    pub async fn get(&self, account: &str, target: &str) -> Result<Answer> {
        let mut client = HttpClient::connect(self.address()).await?;
        let identity = identity(account, target)?;
        let headers = [("X-Water-Identity", identity.as_str())];
        let answer = client.request("GET", target, &headers).await?;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(answer)
    }
}

/// Requests for these targets in turn, as the gate passes them on for `account`.
pub fn requests(account: &str, targets: &[String]) -> Result<Arc<Requests>> {
    let request = |target: &String| {
        let identity = identity(account, target)?;
        Ok(format!(
            "GET {target} HTTP/1.1\r\n\
             Host: water.example\r\n\
             Accept: application/json\r\n\
             X-Water-Identity: {identity}\r\n\
             X-Request-Id: 0123456789abcdef0123456789abcdef\r\n\
             \r\n"
        ))
    };
    let texts = targets.iter().map(request).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Requests::whole(texts)))
}

/// Signed for the length of a run: a service allows hours between two clocks.
fn identity(account: &str, target: &str) -> Result<String> {
    let identity = Identity {
        account: account.parse()?,
        key: "abcdefghijkl".parse()?,
        plan: "Enterprise".parse()?,
    };
    let expires = Timestamp::parse(&machine::date())?;
    let signer = Signer::new(&IDENTITY.parse::<IdentityKey>()?);
    let value = signer.sign(&identity, expires, &Method::GET, target);
    Ok(value.to_str()?.to_owned())
}
