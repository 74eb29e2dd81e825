//! What a contestant and the process that started it say to each other: numbers, a line each.

use std::error::Error;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

use crate::load::Slice;
use crate::rounds::Turn;

/// The order to work for one slice.
pub fn order(Slice { warm_up, counted }: Slice) -> String {
    format!("{} {}\n", warm_up.as_millis(), counted.as_millis())
}

/// The child's side: says that it is ready, then takes its turns until standard input ends.
pub async fn take_turns(mut turn: impl AsyncFnMut(Slice) -> Result<Turn>) -> Result<()> {
    println!("ready");
    let mut orders = BufReader::new(stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        let (warm_up, counted) = two(&order)?;
        let slice = Slice {
            warm_up: Duration::from_millis(warm_up),
            counted: Duration::from_millis(counted),
        };
        let Turn { cost, counted } = turn(slice).await?;
        println!("{cost} {counted}");
    }
    Ok(())
}

/// The child's side of a server: says where it listens, and serves until standard input ends.
pub async fn serve(address: SocketAddr, serving: impl Future) -> Result<()> {
    println!("{address}");
    let mut orders = BufReader::new(stdin()).lines();
    tokio::select! {
        _ = serving => bail!("the server ended by itself"),
        end = orders.next_line() => end.map(drop).map_err(Into::into),
    }
}

/// The two numbers of a line.
pub fn two<T: FromStr<Err: Error + Send + Sync + 'static>>(line: &str) -> Result<(T, T)> {
    let (one, other) = line.split_once(' ').context("two numbers are expected")?;
    Ok((one.parse()?, other.parse()?))
}
