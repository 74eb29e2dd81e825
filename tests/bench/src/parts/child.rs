//! A contestant in a process of its own, which is told by a line when its turn is and how long, and
//! answers with a line what it measured ([`super::orders`]).

use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};

use super::orders::{order, two};
use crate::load::Slice;
use crate::rounds::Turn;

/// A running contestant. It ends when this is dropped, and when this process ends.
pub struct Child {
    process: tokio::process::Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// What it said when it was ready.
    pub greeting: String,
}

impl Child {
    /// Starts it and waits until it is ready.
    pub async fn start(contestant: &str, with: &[String]) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["parts", "--contestant", contestant])
            .args(with)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let orders = process.stdin.take().expect("it is piped");
        let answers = process.stdout.take().expect("it is piped");
        let mut answers = BufReader::new(answers).lines();
        let greeting = line(&mut answers)
            .await
            .with_context(|| format!("start {contestant}"))?;
        Ok(Self {
            process,
            orders,
            answers,
            greeting,
        })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id().expect("it was not waited for")
    }

    /// Has it work for one slice.
    pub async fn turn(&mut self, slice: Slice) -> Result<Turn> {
        self.orders.write_all(order(slice).as_bytes()).await?;
        let answer = line(&mut self.answers).await?;
        let (cost, counted) = two(&answer)?;
        Ok(Turn { cost, counted })
    }
}

async fn line(answers: &mut Lines<BufReader<ChildStdout>>) -> Result<String> {
    let line = answers.next_line().await?;
    line.context("it ended; what it says of that stands above")
}
