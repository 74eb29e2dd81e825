//! The service that answers from memory beside nginx that serves the same bodies as files.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::database::Database;
use crate::load::{Expected, Load, Requests, Slice};
use crate::nginx::{Configuration, Nginx};
use crate::product::{self, Service};
use crate::report::{Report, Row, Target};
use crate::rounds::{self, Rounds, Variant};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Scale {
    rounds: usize,
    slice: Slice,
    connections: usize,
}

const FULL: Scale = Scale {
    rounds: 7,
    slice: Slice {
        warm_up: Duration::from_millis(400),
        counted: Duration::from_secs(2),
    },
    connections: 64,
};

const SMOKE: Scale = Scale {
    rounds: 1,
    slice: Slice {
        warm_up: Duration::from_millis(50),
        counted: Duration::from_millis(100),
    },
    connections: 4,
};

/// All départements, some 8 KiB, and one.
const LIST: &str = "/api/v1/stress";
const ONE: &str = "/api/v1/stress?dept=34";

/// How the variants are called in rows.
mod name {
    pub const LIST: &str = "stress, all départements";
    pub const ONE: &str = "stress, one département";
    pub const NGINX_LIST: &str = "nginx, the same list as a file";
    pub const NGINX_ONE: &str = "nginx, the same record as a file";
    pub const QUIET_LIST: &str = "stress, all départements, no log";
    pub const QUIET_ONE: &str = "stress, one département, no log";
    pub const QUIET_NGINX_LIST: &str = "nginx, the same list as a file, no log";
    pub const QUIET_NGINX_ONE: &str = "nginx, the same record as a file, no log";
}

/// Proves that every variant runs and answers right.
pub async fn smoke() -> Result<()> {
    let (rows, _) = compare(SMOKE).await?;
    let doubts: Vec<&str> = rows.iter().filter_map(Row::doubt).collect();
    ensure!(doubts.is_empty(), "{}", doubts.join("\n"));
    println!("the service and nginx run and answer the same");
    Ok(())
}

/// Measures everything.
pub async fn measure() -> Result<Report> {
    let (rows, postgres) = compare(FULL).await?;
    Ok(Report::new(rows)?.with_versions([("postgresql", postgres)].into()))
}

async fn compare(scale: Scale) -> Result<(Vec<Row>, String)> {
    let database = Database::start().await?;
    let demo = ["demo", "--accounts", "1", "--rows-per-account", "1"];
    database.ingest(&demo).await?;
    let url = database.url("water_reader");
    let start = async |settings: &[(&str, &str)]| {
        Service::start("water-departements", &url, settings).await
    };
    let service = start(&[]).await?;
    let quiet = start(&[("WATER_LOG", "info,access=off")]).await?;
    let mut bodies = Vec::new();
    for target in [LIST, ONE] {
        bodies.push(service.get("acme", target).await?.text()?.to_owned());
    }
    let files = |log: &str| {
        Configuration::new(include_str!("../nginx/static.conf"))
            .set("access_log", log)
            .file("list.json", bodies[0].as_str())
            .file("one.json", bodies[1].as_str())
    };
    let nginx = Nginx::start(files("access.log access buffer=64k flush=1s")).await?;
    let quiet_nginx = Nginx::start(files("off")).await?;
    let requests = |target: &str| product::requests("acme", &[target.to_owned()]);
    let variant = |name, address, process, requests: &Arc<Requests>, body: usize| Variant {
        name,
        load: Load {
            address,
            connections: scale.connections,
            requests: Arc::clone(requests),
            expected: Expected {
                status: 200,
                length: Some(bodies[body].len()),
            },
            pace: None,
        },
        process,
    };
    let (list, one) = (requests(LIST)?, requests(ONE)?);
    let (list_file, one_file) = (requests("/list.json")?, requests("/one.json")?);
    let of = |name, service: &Service, requests, body| {
        variant(name, service.address(), service.id(), requests, body)
    };
    let at = |name, nginx: &Nginx, requests, body| {
        variant(name, nginx.address(), nginx.id(), requests, body)
    };
    let variants = [
        at(name::NGINX_LIST, &nginx, &list_file, 0),
        of(name::LIST, &service, &list, 0),
        at(name::NGINX_ONE, &nginx, &one_file, 1),
        of(name::ONE, &service, &one, 1),
        at(name::QUIET_NGINX_LIST, &quiet_nginx, &list_file, 0),
        of(name::QUIET_LIST, &quiet, &list, 0),
        at(name::QUIET_NGINX_ONE, &quiet_nginx, &one_file, 1),
        of(name::QUIET_ONE, &quiet, &one, 1),
    ];
    let nothing = async || Ok(0);
    let rounds = rounds::run(&variants, scale.rounds, scale.slice, nothing).await;
    Ok((rows(&rounds), database.version()?))
}

/// The rows with targets, and those that explain them.
fn rows(rounds: &Rounds) -> Vec<Row> {
    let judged = |row, variant, reference| {
        let ratio = rounds.ratio(variant, reference);
        Row::judged(row, "×", ratio, Target::AtMost(1.5))
    };
    let said = |row, variant, reference| Row::said(row, "×", rounds.ratio(variant, reference));
    let cost = |row, variant| Row::said(row, "µs", rounds.cost(variant));
    vec![
        judged(
            "stress, all départements ÷ nginx",
            name::LIST,
            name::NGINX_LIST,
        ),
        judged(
            "stress, one département ÷ nginx",
            name::ONE,
            name::NGINX_ONE,
        ),
        said(
            "stress, all départements ÷ nginx, no access logs",
            name::QUIET_LIST,
            name::QUIET_NGINX_LIST,
        ),
        said(
            "stress, one département ÷ nginx, no access logs",
            name::QUIET_ONE,
            name::QUIET_NGINX_ONE,
        ),
        cost("stress, all départements, CPU of a request", name::LIST),
        cost("nginx, the same file, CPU of a request", name::NGINX_LIST),
        cost("stress, one département, CPU of a request", name::ONE),
        cost("nginx, the same record, CPU of a request", name::NGINX_ONE),
    ]
}
