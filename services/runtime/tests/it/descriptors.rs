//! Running out of file descriptors, in a process for that alone.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use water_harness::HttpClient;

use crate::server::{patient, start};

/// Set in the process that is short of descriptors: this test binary, started once more.
const SHORT_OF_DESCRIPTORS: &str = "WATER_TEST_SHORT_OF_DESCRIPTORS";
const TEST: &str =
    "descriptors::fault_41_a_good_client_is_served_although_descriptors_have_run_out";
const MARK: &str = "listening on ";

#[tokio::test]
async fn fault_41_a_good_client_is_served_although_descriptors_have_run_out() -> Result<()> {
    if std::env::var_os(SHORT_OF_DESCRIPTORS).is_some() {
        let server = start(patient(), std::time::Duration::ZERO);
        println!("\n{MARK}{}", server.address);
        server.ended.await?;
        return Ok(());
    }
    let mut child = Killed(
        Command::new("sh")
            .args(["-c", "ulimit -n 64; exec \"$@\"", "sh"])
            .arg(std::env::current_exe()?)
            .args(["--exact", TEST, "--nocapture"])
            .env(SHORT_OF_DESCRIPTORS, "1")
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let output = BufReader::new(child.0.stdout.take().context("the output is piped")?);
    let mut lines = output.lines().map_while(Result::ok);
    let line = lines.find_map(|line| Some(line.strip_prefix(MARK)?.to_owned()));
    let address: SocketAddr = line.context("the server says where it listens")?.parse()?;

    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(HttpClient::connect(address).await?);
    }
    let mut good = HttpClient::connect(address).await?;
    assert_eq!(good.request("GET", "/", &[]).await?.status, 200);
    Ok(())
}

/// A process that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed then.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
