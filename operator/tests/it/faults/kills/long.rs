//! The other changes.

use anyhow::Result;

use super::killed_at_every_request;
use crate::faults::scenario::Scenario;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_01_a_creation_killed_at_any_request_ends_with_one_key_in_one_secret() -> Result<()> {
    killed_at_every_request(Scenario::Create).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_02_a_rotation_killed_at_any_request_leaves_no_moment_without_a_key() -> Result<()> {
    killed_at_every_request(Scenario::Rotate).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_02_a_reissue_killed_at_any_request_leaves_no_moment_without_a_key() -> Result<()> {
    killed_at_every_request(Scenario::Reissue).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_03_a_deletion_killed_at_any_request_frees_no_key_that_a_gate_accepts() -> Result<()>
{
    killed_at_every_request(Scenario::Delete).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_01_a_brought_key_killed_at_any_request_ends_in_force() -> Result<()> {
    killed_at_every_request(Scenario::Bring).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_02_a_replaced_hash_is_dead_though_the_replacement_was_killed_at_any_request()
-> Result<()> {
    killed_at_every_request(Scenario::Replace).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_03_a_deletion_of_a_brought_key_killed_at_any_request_frees_none_that_a_gate_accepts()
-> Result<()> {
    killed_at_every_request(Scenario::DeleteBrought).await
}
