//! Clients of PostgreSQL that are stopped at one of their messages.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::process::{Child, Command};
use water_harness::postgres_proxy::{Fault, Moment, Point, PostgresProxy};
use water_harness::{Database, Postgres, wait_until};

const INSERT: &str = "INSERT INTO seen VALUES (34)";

async fn database() -> Result<(&'static Postgres, Database, PostgresProxy)> {
    let postgres = Postgres::shared().await?;
    let database = postgres.create_database()?;
    postgres.sql(database.name(), "CREATE TABLE seen (dept int)")?;
    let proxy = PostgresProxy::before(database.address()).await?;
    Ok((postgres, database, proxy))
}

/// Starts a psql that inserts one row through the proxy: start-up, query, end.
fn insert(postgres: &Postgres, database: &Database, proxy: &PostgresProxy) -> Result<Child> {
    let url = database.url_through(proxy.address(), "postgres");
    let mut psql = postgres.command("psql");
    psql.args(["-X", "-q", "-c", INSERT, "-d"])
        .arg(format!("{url}?sslmode=disable&gssencmode=disable"))
        .stderr(Stdio::null());
    Ok(Command::from(psql).kill_on_drop(true).spawn()?)
}

fn rows(postgres: &Postgres, database: &Database) -> Result<String> {
    postgres.sql(database.name(), "SELECT count(*) FROM seen")
}

#[tokio::test]
async fn messages_pass_and_are_counted() -> Result<()> {
    let (postgres, database, proxy) = database().await?;
    let ended = insert(postgres, &database, &proxy)?.wait().await?;
    ensure!(ended.success());
    // The client does not wait for anybody to read its last one.
    let counted = async || match proxy.messages() {
        3 => Ok(()),
        other => anyhow::bail!("{other} messages"),
    };
    wait_until("three messages", Duration::from_secs(60), counted).await?;
    assert!(!proxy.is_reached());
    assert_eq!(rows(postgres, &database)?, "1");
    Ok(())
}

#[tokio::test]
async fn a_client_killed_before_a_message_never_said_it() -> Result<()> {
    let (postgres, database, proxy) = database().await?;
    proxy.stop_at(Point::Number(2), Moment::Before, Fault::Hold);
    let mut client = insert(postgres, &database, &proxy)?;
    proxy.reached().await;
    assert!(!proxy.is_working());
    client.kill().await?;
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    let ended = async || match postgres.sql(database.name(), sessions)?.as_str() {
        "1" => Ok(()), // this question
        more => anyhow::bail!("{more} sessions"),
    };
    wait_until("the session to end", Duration::from_secs(60), ended).await?;
    assert_eq!(rows(postgres, &database)?, "0");
    Ok(())
}

#[tokio::test]
async fn a_client_killed_after_a_message_hears_no_answer() -> Result<()> {
    let (postgres, database, proxy) = database().await?;
    proxy.stop_at(Point::Text("INSERT"), Moment::After, Fault::Hold);
    let mut client = insert(postgres, &database, &proxy)?;
    proxy.reached().await;
    let stored = async || {
        ensure!(rows(postgres, &database)? == "1", "no row");
        Ok(())
    };
    wait_until("the row", Duration::from_secs(60), stored).await?;
    assert_eq!(client.try_wait()?, None);
    proxy.go_on();
    ensure!(client.wait().await?.success());
    Ok(())
}

#[tokio::test]
async fn a_client_that_is_cut_off_is_told_by_its_connection() -> Result<()> {
    let (postgres, database, proxy) = database().await?;
    proxy.stop_at(Point::Number(2), Moment::Before, Fault::Cut);
    let ended = insert(postgres, &database, &proxy)?.wait().await?;
    assert!(!ended.success() && proxy.is_reached());
    assert_eq!(rows(postgres, &database)?, "0");
    Ok(())
}
