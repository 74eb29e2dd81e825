//! The gate's exchange with a service, 64 under way: build the request, send it, read the answer to
//! its end, keep of its fields what the client gets.

mod client;
mod connection;
mod ours;
mod terms;

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Response;
use tokio::task::JoinSet;

use super::orders::take_turns;
use super::stop::Stop;
use crate::gate::{BODY, TARGET};
use crate::load::Slice;
use crate::nginx::{Configuration, Nginx};
use crate::rounds::Turn;
use terms::{Client, UNDER_WAY};

/// The service behind the gate's benchmark.
pub struct Service(Nginx);

impl Service {
    /// Starts it.
    pub async fn start() -> Result<Self> {
        let service = Configuration::new(include_str!("../../nginx/service.conf"));
        Ok(Self(Nginx::start(service.set("body", BODY)).await?))
    }

    /// Its host and port.
    pub fn address(&self) -> String {
        self.0.address().to_string()
    }
}

/// The gate's own.
pub async fn ours(with: &[String]) -> Result<()> {
    compete(ours::Ours::new(address(with)?)?).await
}

/// hyper-util's client.
pub async fn client(with: &[String]) -> Result<()> {
    compete(client::Pooling::new(address(with)?)).await
}

/// hyper's connection with a small pool.
pub async fn connection(with: &[String]) -> Result<()> {
    compete(connection::Small::new(address(with)?)).await
}

fn address(with: &[String]) -> Result<&str> {
    let address = with.first().context("the service's address is missing")?;
    Ok(address)
}

async fn compete(client: impl Client) -> Result<()> {
    let client = Arc::new(client);
    take_turns(async |slice| turn(&client, slice).await).await
}

async fn turn(client: &Arc<impl Client>, slice: Slice) -> Result<Turn> {
    let stop = Arc::new(Stop::default());
    let mut asking = JoinSet::new();
    for _ in 0..UNDER_WAY {
        let (client, stop) = (Arc::clone(client), Arc::clone(&stop));
        asking.spawn(async move {
            while !stop.has_come() {
                check(&client.get(TARGET).await?)?;
                stop.count(1);
            }
            anyhow::Ok(())
        });
    }
    let cost = stop.after(slice, &mut asking).await?;
    Ok(Turn {
        cost: cost.as_secs_f64() * 1e6,
        counted: 0.0,
    })
}

/// The answer as a client of the gate would get it, its framing left out.
fn check(answer: &Response<Bytes>) -> Result<()> {
    let whole = answer.status() == 200 && answer.body() == BODY;
    ensure!(whole && answer.headers().len() == 3, "{answer:?}");
    Ok(())
}
