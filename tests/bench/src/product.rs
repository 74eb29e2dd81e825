//! The product's services, with the settings that they have in a cluster.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use water_domain::Timestamp;
use water_harness::{Answer, HttpClient, Port, Process, Program};
use water_http::{Identity, IdentityKey, Signer};

use crate::binary::beside;
use crate::load::Requests;
use crate::machine;

/// Longer than a start takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// What identities are signed with: it protects nothing here.
const IDENTITY: &str = "6265206e6f742061667261696420746f206d65617375726520697420616c6c21";

/// A ready service.
#[derive(Debug)]
pub struct Service {
    process: Process,
    http: Port,
}

impl Service {
    /// Starts `binary` on the database of this URL and waits until it is ready.
    pub async fn start(
        binary: &str,
        postgres_url: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let (http, admin) = (Port::reserve()?, Port::reserve()?);
        let mut program = Program::new(beside(binary)?)
            .env("WATER_LISTEN_ADDRESS", http.address().to_string())
            .env("WATER_ADMIN_ADDRESS", admin.address().to_string())
            .env("WATER_POSTGRES_URL", postgres_url)
            .env("WATER_IDENTITY_CURRENT", IDENTITY);
        for (name, value) in settings {
            program = program.env(name, value);
        }
        let process = program.start()?;
        let ready = async || -> Result<()> {
            let mut client = HttpClient::connect(admin.address()).await?;
            let answer = client.request("GET", "/ready", &[]).await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        };
        process.ready(SOON, ready).await?;
        Ok(Self { process, http })
    }

    /// Where the gate asks.
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
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
