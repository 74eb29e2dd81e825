//! Answers about départements, which the service has in memory, compared with nginx that serves the same bytes from a
//! file.

use anyhow::Result;

use crate::database::Database;
use crate::load::{Load, Slice};
use crate::nginx::{Configuration, Nginx};
use crate::programs::Server;
use crate::report::{Report, Row};
use crate::rounds::{self, Variant};
use crate::signed;

/// Sizes of a measurement.
struct Scale {
    rounds: usize,
    slice: Slice,
    /// Requests under way.
    connections: usize,
}

const FULL: Scale = Scale {
    rounds: 7,
    slice: Slice::millis(500, 3_000),
    connections: 64,
};

const SMOKE: Scale = Scale {
    rounds: 1,
    slice: Slice::millis(100, 300),
    connections: 4,
};

const ACCOUNT: &str = "account-0";

/// Target of a request, and the names of both variants in rows.
const ONE: [&str; 3] = [
    "/api/v1/stress?dept=34",
    "one département",
    "nginx, the file of one",
];
const ALL: [&str; 3] = [
    "/api/v1/stress",
    "all départements",
    "nginx, the file of all",
];

/// Compares everything.
pub async fn measure(smoke: bool) -> Result<Report> {
    let scale = if smoke { SMOKE } else { FULL };
    let database = Database::start().await?;
    database.load_stress()?;
    let service = Server::departements(&database.url("water_reader")).await?;
    let one = signed::get(service.address(), ACCOUNT, ONE[0]).await?;
    let all = signed::get(service.address(), ACCOUNT, ALL[0]).await?;
    let nginx = Nginx::start(Configuration {
        server: include_str!("../nginx/files.conf"),
        files: vec![
            ("one", one.text()?.to_owned()),
            ("all", all.text()?.to_owned()),
        ],
        ..Configuration::default()
    })
    .await?;
    let mut variants = Vec::new();
    for ([target, served, file], answer) in [(ONE, one), (ALL, all)] {
        let requests = signed::requests(ACCOUNT, [target.to_owned()].into_iter())?;
        for (name, address, process) in [
            (served, service.address(), service.id()),
            (file, nginx.address(), nginx.id()),
        ] {
            let load = Load {
                address,
                connections: scale.connections,
                requests: requests.clone(),
                status: 200,
                length: Some(answer.body.len()),
                pace: None,
            };
            variants.push(Variant {
                name,
                load,
                process,
            });
        }
    }
    let nothing = async || Ok(0);
    let rounds = rounds::run(&variants, scale.rounds, scale.slice, nothing).await;
    let rows = [ONE, ALL].into_iter().flat_map(|[_, served, file]| {
        let row = format!("{served}, CPU of a request ÷ nginx serving the same file");
        let cost = |name| Row::new(format!("{name}, CPU of a request"), "µs", rounds.cost(name));
        let ratio = Row::new(row, "×", rounds.ratio(served, file)).at_most(1.5);
        [ratio, cost(served), cost(file)]
    });
    let versions = [("postgresql", database.version()?)];
    Report::new(rows.collect(), &versions)
}
