//! More foreign metadata than an operator has memory, whose peak is the same whatever runs beside it.

use anyhow::{Result, ensure};
use water_kit::operator::foreign;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_48_300_megabytes_of_foreign_annotations_take_no_memory() -> Result<()> {
    let grown = foreign::growth("much-foreign", 1000, 200).await?;
    println!("300 MB of foreign annotations: {grown:?}, in KiB");
    let all = [grown.leader, grown.standby, grown.cold_start];
    ensure!(all.iter().all(|grown| *grown <= 10_000), "{grown:?} KiB");
    Ok(())
}
