//! Memory that operators need for other people's annotations.

use anyhow::ensure;
use water_kit::operator::foreign;

use crate::Result;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_48_foreign_annotations_of_apikeys_and_labelled_secrets_take_no_memory() -> Result {
    let grown = foreign::growth("foreign", 100, 20).await?;
    println!("30 MB of foreign annotations: {grown:?}, in KiB");
    let all = [grown.leader, grown.standby, grown.cold_start];
    ensure!(all.iter().all(|grown| *grown <= 10_000), "{grown:?} KiB");
    Ok(())
}
