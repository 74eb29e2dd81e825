//! Requests to a service, as the gate passes them on.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, ensure};
use http::Method;
use water_domain::Timestamp;
use water_harness::{Answer, HttpClient};
use water_http::{Identity, IdentityKey, Signer};

use crate::load::Requests;
use crate::programs::IDENTITY;
use crate::report::date;

/// Requests for these targets in turn, for `account`.
pub fn requests(account: &str, targets: impl Iterator<Item = String>) -> Result<Arc<Requests>> {
    let request = |target: String| {
        let identity = identity(account, &target)?;
        Ok(format!(
            "GET {target} HTTP/1.1\r\n\
             Host: water.example\r\n\
             Accept: application/json\r\n\
             X-Water-Identity: {identity}\r\n\
             X-Request-Id: 0123456789abcdef0123456789abcdef\r\n\
             \r\n"
        ))
    };
    Ok(Requests::whole(
        targets.map(request).collect::<Result<_>>()?,
    ))
}

/// Asks once for `account`.
pub async fn get(service: SocketAddr, account: &str, target: &str) -> Result<Answer> {
    let mut client = HttpClient::connect(service).await?;
    let identity = identity(account, target)?;
    let headers = [("X-Water-Identity", identity.as_str())];
    let answer = client.request("GET", target, &headers).await?;
    ensure!(answer.status == 200, "{answer:?}");
    Ok(answer)
}

/// Identity that is good for the length of a run: a service allows hours between two clocks.
fn identity(account: &str, target: &str) -> Result<String> {
    let identity = Identity {
        account: account.parse()?,
        key: "abcdefghijkl".parse()?,
        plan: "Enterprise".parse()?,
    };
    let expires = Timestamp::parse(&date())?;
    let signer = Signer::new(&IDENTITY.parse::<IdentityKey>()?);
    let value = signer.sign(&identity, expires, &Method::GET, target);
    Ok(value.to_str()?.to_owned())
}
