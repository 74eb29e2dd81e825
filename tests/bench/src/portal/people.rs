//! People who sign in with the identity provider, each from an address of its own: one address may begin
//! twenty sign-ins a minute.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::DateTime;
use serde_json::{Value, json};
use water_harness::{Answer, SigningKey, wait_until};

use super::cluster::{ACCOUNT, PLAN};
use super::site::{CLIENT, Site};
use crate::machine;

/// Longer than the portal takes to read the plans.
const SOON: Duration = Duration::from_secs(60);
/// Who is signed in, and with which accounts.
pub const SESSION: &str = "/account/v1/session";

/// Signs in so many people, all of one account and each of another, and answers their `Cookie` fields.
pub async fn sign_in(site: &Site, count: usize) -> Result<Vec<String>> {
    let key = SigningKey::elliptic("bench")?;
    site.provider.tell(&[&key]);
    let mut cookies = Vec::new();
    for number in 0..count {
        cookies.push(one(site, &key, number).await?);
    }
    has_access(site, &cookies[0]).await?;
    Ok(cookies)
}

async fn one(site: &Site, key: &SigningKey, number: usize) -> Result<String> {
    let address = format!("10.0.{}.{}", number / 250, number % 250);
    let from = ("X-Forwarded-For", address.as_str());
    let begun = site.ask("/auth/sign-in", &[from]).await?;
    let location = begun.header("location");
    let location = location.with_context(|| format!("no way to the provider: {begun:?}"))?;
    let (state, nonce) = (parameter(location, "state")?, parameter(location, "nonce")?);
    let code = format!("code-{number}");
    let claims = claims(site, number, nonce)?;
    site.provider.give(&code, &key.sign(&claims)?);
    let target = format!("/auth/callback?state={state}&code={code}");
    let pending = cookie(&begun, "__Host-water_signin_")?;
    let answer = site.ask(&target, &[from, ("Cookie", pending)]).await?;
    ensure!(answer.status == 303, "{answer:?}");
    Ok(cookie(&answer, "__Host-water_session=")?.to_owned())
}

fn parameter<'a>(location: &'a str, name: &str) -> Result<&'a str> {
    let (_, query) = location.split_once('?').context("a query")?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(other, _)| *other == name).context("a value")?;
    Ok(value)
}

/// The pair of the cookie whose line begins so.
fn cookie<'a>(answer: &'a Answer, begin: &str) -> Result<&'a str> {
    let mut set = answer.headers_named("set-cookie");
    let line = set
        .find(|line| line.starts_with(begin))
        .context("a cookie")?;
    Ok(line.split(';').next().unwrap_or_default())
}

/// All of one length, and so are the answers that name them.
fn claims(site: &Site, number: usize, nonce: &str) -> Result<Value> {
    let now = DateTime::parse_from_rfc3339(&machine::date())?.timestamp();
    let accounts = [
        format!("water:{ACCOUNT}:{PLAN}"),
        format!("water:person-{number:04}:{PLAN}"),
    ];
    Ok(json!({
        "iss": site.provider.issuer(), "aud": CLIENT, "sub": format!("person-{number:04}"),
        "sid": format!("session-{number:04}"), "name": format!("Person {number:04}"),
        "nonce": nonce, "iat": now, "exp": now + 600, "groups": accounts,
    }))
}

/// Waits until the portal has read which plans have access.
async fn has_access(site: &Site, cookie: &str) -> Result<()> {
    wait_until("a plan with access", SOON, async || {
        let session = site.body(SESSION, &[("Cookie", cookie)]).await?;
        let session: Value = serde_json::from_str(&session)?;
        ensure!(session["accounts"][0]["access"] == true, "{session}");
        Ok(())
    })
    .await
}
