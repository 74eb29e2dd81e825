//! The portal's list of one account's keys beside the API server's own list of the same objects, while many
//! keys of other accounts exist.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::asker::Asker;
use super::cluster::ACCOUNT;
use super::scale::Scale;
use super::site::Site;
use crate::operator::api;
use crate::report::{Row, Target};
use crate::rounds::{Rounds, Turn, take_turns};

/// How the variants are called in rows.
mod name {
    pub const PORTAL: &str = "keys of one account, p99";
    pub const API_SERVER: &str = "the API server's own list, p99";
}

/// Compares them, and tells the rows.
pub async fn measure(site: &Site, cookies: &[String], scale: Scale) -> Result<Vec<Row>> {
    let (portal, api_server) = (of_portal(site, cookies)?, of_api_server(site)?);
    check(&portal, &api_server, scale.keys).await?;
    let names = [name::API_SERVER, name::PORTAL];
    let rounds = take_turns(&names, scale.rounds, async |index| {
        let asker = [&api_server, &portal][index];
        let cost = asker.p99(scale.askers, scale.listing).await?;
        Ok(Turn { cost, counted: 0.0 })
    })
    .await;
    Ok(rows(&rounds, scale))
}

/// A list for each session in turn: one may ask 240 times a minute.
fn of_portal(site: &Site, cookies: &[String]) -> Result<Asker> {
    let address = site.address();
    let url = format!("http://{address}/account/v1/accounts/{ACCOUNT}/keys");
    Asker::new(&url, "Cookie", cookies, "")
}

/// The same question as the portal's, with the portal's rights: a quorum read by field selector.
fn of_api_server(site: &Site) -> Result<Asker> {
    let server = &site.cluster.control_plane;
    let (address, keys) = (server.address(), api::keys());
    let url = format!("https://{address}{keys}?fieldSelector=spec.accountId%3D{ACCOUNT}");
    let token = format!("Bearer {}", site.cluster.token()?);
    Asker::new(&url, "Authorization", &[token], server.authority_pem())
}

/// Both have to list all keys of the account, and the portal has to find them in force.
async fn check(portal: &Asker, api_server: &Asker, keys: usize) -> Result<()> {
    let listed: Value = serde_json::from_slice(&portal.ask().await?)?;
    let active = array(&listed["data"])
        .iter()
        .filter(|key| key["state"] == "active");
    ensure!(
        active.count() == keys && listed["count"] == keys,
        "{listed}"
    );
    let objects: Value = serde_json::from_slice(&api_server.ask().await?)?;
    let found = array(&objects["items"]).len();
    ensure!(found == keys, "the API server lists {found} keys");
    Ok(())
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The row with a target, and those that explain it.
fn rows(rounds: &Rounds, scale: Scale) -> Vec<Row> {
    let Scale { keys, others, .. } = scale;
    vec![
        Row::judged(
            format!(
                "list of {keys} keys among {others} of others, p99 ÷ the API server's own list"
            ),
            "×",
            rounds.ratio(name::PORTAL, name::API_SERVER),
            Target::AtMost(1.5),
        ),
        Row::said(name::PORTAL, "ms", rounds.cost(name::PORTAL)),
        Row::said(name::API_SERVER, "ms", rounds.cost(name::API_SERVER)),
    ]
}
