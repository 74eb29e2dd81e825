//! Servers and programs do not fail silently, and end with their owner.

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use water_harness::{Postgres, Program, Redis};

type Result = anyhow::Result<()>;

#[tokio::test]
async fn a_dropped_process_is_gone() -> Result {
    let process = Program::new("sleep").arg("600").start()?;
    let entry = format!("/proc/{}", process.id());
    assert!(Path::new(&entry).exists());
    drop(process);
    assert!(!Path::new(&entry).exists());
    Ok(())
}

#[tokio::test]
async fn a_program_that_ends_early_is_shown_with_its_last_words() -> Result {
    let process = Program::new("sh")
        .args(["-c", "echo no such setting >&2; exit 64"])
        .start()?;
    let never = async || -> Result { bail!("not yet") };
    let error = process.ready(Duration::from_secs(60), never).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "sh ended with exit status: 64:\nno such setting"
    );
    Ok(())
}

#[tokio::test]
async fn wrong_sql_and_refused_commands_are_errors() -> Result {
    let error = Postgres::shared().await?.sql("postgres", "SELECT nothing");
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("SELECT nothing: ERROR:"), "{error}");
    let error = Redis::shared().await?.command(&["NOPE"]).await;
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("NOPE: ERR unknown command"), "{error}");
    Ok(())
}

#[tokio::test]
async fn servers_begin_with_copies_of_the_same_data_and_share_nothing_after() -> Result {
    let [one, other] = [Postgres::start().await?, Postgres::start().await?];
    let identifier = "SELECT system_identifier FROM pg_control_system()";
    let [of_one, of_other] = [&one, &other].map(|server| server.sql("postgres", identifier));
    assert_eq!(of_one?, of_other?);
    one.sql("postgres", "CREATE TABLE mine ()")?;
    let is_there = "SELECT to_regclass('mine') IS NOT NULL";
    assert_eq!(one.sql("postgres", is_there)?, "t");
    assert_eq!(other.sql("postgres", is_there)?, "f");
    Ok(())
}

#[tokio::test]
async fn a_paused_server_answers_when_it_goes_on() -> Result {
    let redis = Redis::start().await?;
    let other = Redis::shared().await?;
    redis.pause()?;
    let mut ping = std::pin::pin!(redis.command(&["PING"]));
    // An answer would have come while another server gives many.
    let others = async {
        for _ in 0..10 {
            other.command(&["PING"]).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        biased;
        early = &mut ping => bail!("it answered while it was paused: {early:?}"),
        answered = others => answered?,
    }
    redis.resume()?;
    assert_eq!(ping.await?, "+PONG\r\n");
    Ok(())
}
