//! The portal's pages and its answers about sessions beside nginx, which serves the same bytes as files.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::people::SESSION;
use super::scale::Scale;
use super::site::Site;
use crate::load::{Expected, Load, Requests};
use crate::nginx::{Configuration, Nginx};
use crate::report::{Row, Target};
use crate::rounds::{self, Rounds, Variant};

/// From one request of a connection about sessions to its next. A session may ask 240 times a minute: what 64
/// connections ask so in a turn, 1 000 sessions may ask until the next.
const PACE: Duration = Duration::from_millis(4);

/// How the variants are called in rows.
mod name {
    pub const PAGE: &str = "page";
    pub const NGINX_PAGE: &str = "nginx, the same page as a file";
    pub const SCRIPT: &str = "script of the first page";
    pub const NGINX_SCRIPT: &str = "nginx, the same script as a file";
    pub const READER: &str = "session, signed in";
    pub const NGINX_READER: &str = "nginx, the same session as a file";
    pub const NOBODY: &str = "session, signed out";
    pub const NGINX_NOBODY: &str = "nginx, the same answer to nobody as a file";
}

/// Compares them, and tells the rows.
pub async fn measure(site: &Site, cookies: &[String], scale: Scale) -> Result<Vec<Row>> {
    let page = site.body("/", &[]).await?;
    let script_path = script_of(&page)?;
    let script = site.body(script_path, &[]).await?;
    let reader = site.body(SESSION, &[("Cookie", &cookies[0])]).await?;
    let nobody = site.body(SESSION, &[]).await?;
    let files = Configuration::new(include_str!("../../nginx/static.conf"))
        .set("access_log", "access.log access buffer=64k flush=1s")
        .file("page", page.as_str())
        .file("script", script.as_str())
        .file("reader", reader.as_str())
        .file("nobody", nobody.as_str());
    let nginx = Nginx::start(files).await?;
    let variant = |name, body: &str, address, process, requests| Variant {
        name,
        load: Load {
            address,
            connections: scale.connections,
            requests: Arc::new(Requests::whole(requests)),
            expected: Expected {
                status: 200,
                length: Some(body.len()),
            },
            pace: None,
        },
        process,
    };
    // The same fields reach both: they are read, and no file depends on them.
    let at = |name, body, requests| variant(name, body, nginx.address(), nginx.id(), requests);
    let of = |name, body, requests| variant(name, body, site.address(), site.id(), requests);
    let variants = [
        at(name::NGINX_PAGE, &page, vec![request("/page", "")]),
        of(name::PAGE, &page, vec![request("/", "")]),
        at(name::NGINX_SCRIPT, &script, vec![request("/script", "")]),
        of(name::SCRIPT, &script, vec![request(script_path, "")]),
        paced(at(name::NGINX_READER, &reader, each("/reader", cookies))),
        paced(of(name::READER, &reader, each(SESSION, cookies))),
        paced(at(
            name::NGINX_NOBODY,
            &nobody,
            vec![request("/nobody", "")],
        )),
        paced(of(name::NOBODY, &nobody, vec![request(SESSION, "")])),
    ];
    let nothing = async || Ok(0);
    Ok(rows(
        &rounds::run(&variants, scale.rounds, scale.slice, nothing).await,
    ))
}

/// The path of the script that a page names.
fn script_of(page: &str) -> Result<&str> {
    let named = page.split('"').find(|text| text.ends_with(".js"));
    named.context("the page names its script")
}

/// As often as all sessions may ask, and no oftener.
fn paced(mut variant: Variant) -> Variant {
    variant.load.pace = Some(PACE);
    variant
}

/// A request of each session in turn.
fn each(target: &str, cookies: &[String]) -> Vec<String> {
    let with = |cookie| request(target, &format!("Cookie: {cookie}\r\n"));
    cookies.iter().map(with).collect()
}

fn request(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: water.example\r\n{fields}\r\n")
}

/// The row with a target, and those that explain it. Rows of sessions have no target, since nginx
/// looks no session up.
fn rows(rounds: &Rounds) -> Vec<Row> {
    let judged = |row, variant, reference| {
        let ratio = rounds.ratio(variant, reference);
        Row::judged(row, "×", ratio, Target::AtMost(1.5))
    };
    let said = |row, variant, reference| Row::said(row, "×", rounds.ratio(variant, reference));
    let cost = |name: &'static str| {
        Row::said(format!("{name}, CPU of a request"), "µs", rounds.cost(name))
    };
    vec![
        judged("page ÷ nginx", name::PAGE, name::NGINX_PAGE),
        judged("script ÷ nginx", name::SCRIPT, name::NGINX_SCRIPT),
        said(
            "session, signed in ÷ nginx",
            name::READER,
            name::NGINX_READER,
        ),
        said(
            "session, signed out ÷ nginx",
            name::NOBODY,
            name::NGINX_NOBODY,
        ),
        cost(name::PAGE),
        cost(name::NGINX_PAGE),
        cost(name::SCRIPT),
        cost(name::NGINX_SCRIPT),
        cost(name::READER),
        cost(name::NGINX_READER),
        cost(name::NOBODY),
        cost(name::NGINX_NOBODY),
    ]
}
