//! Processes end with their owner, and an error shows what they said.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, bail, ensure};
use water_harness::{Port, Program, wait_until};

type Result = anyhow::Result<()>;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_dropped_process_is_gone() -> Result {
    let process = Program::new("sleep").arg("600").start()?;
    let entry = format!("/proc/{}", process.id());
    assert!(Path::new(&entry).exists());
    drop(process);
    assert!(!Path::new(&entry).exists());
    Ok(())
}

/// The shell stands for a test process: it starts `sleep` as the harness does and is killed.
#[tokio::test]
async fn a_process_dies_with_a_killed_owner() -> Result {
    let owner = Program::new("sh")
        .args([
            "-c",
            "setpriv --pdeathsig KILL -- sleep 600 & echo $!; wait",
        ])
        .start()?;
    let child = owner
        .ready(SOON, async || {
            let child = owner.log().trim().parse::<u32>().context("no id yet")?;
            // Before that the child may not have asked yet to die with its owner.
            let name = fs::read_to_string(format!("/proc/{child}/comm"))?;
            ensure!(name == "sleep\n", "the child is still {name}");
            Ok(child)
        })
        .await?;
    owner.kill()?;
    wait_until("the child's end", SOON, async || {
        match fs::read_to_string(format!("/proc/{child}/stat")) {
            Ok(state) if !state.contains(") Z ") => bail!("{state}"),
            _ => Ok(()),
        }
    })
    .await
}

#[tokio::test]
async fn a_program_that_ends_early_is_shown_with_its_last_words() -> Result {
    let process = Program::new("sh")
        .args(["-c", "echo no such setting >&2; exit 64"])
        .start()?;
    let error = process
        .ready(SOON, async || -> Result { bail!("not yet") })
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "sh ended with exit status: 64:\nno such setting"
    );
    Ok(())
}

#[tokio::test]
async fn a_missing_program_is_named() -> Result {
    let process = Program::new("water-no-such-program").start()?;
    let error = process
        .ready(SOON, async || -> Result { bail!("not yet") })
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("water-no-such-program"),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn a_wait_in_vain_says_what_was_seen_last() {
    let waited = wait_until(
        "the key to be Ready",
        Duration::from_millis(60),
        async || -> Result { bail!("Ready=False/Issuing") },
    );
    let error = format!("{:#}", waited.await.unwrap_err());
    assert_eq!(
        error,
        "waited 60ms for the key to be Ready: Ready=False/Issuing"
    );
}

#[test]
fn two_reserved_ports_differ() -> Result {
    let (one, other) = (Port::reserve()?, Port::reserve()?);
    assert_ne!(one.number(), other.number());
    Ok(())
}
