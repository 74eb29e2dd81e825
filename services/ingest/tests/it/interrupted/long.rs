//! Loads of many messages.

use super::{base, interrupt_everywhere};

#[tokio::test]
async fn a_stress_load_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::STRESS).await;
}

#[tokio::test]
async fn a_load_of_levels_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::VIGIEAU).await;
}

#[tokio::test]
async fn a_load_of_analyses_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::ANALYSES).await;
}

#[tokio::test]
async fn a_load_of_audits_interrupted_at_any_message_is_stored_whole_or_not() {
    interrupt_everywhere(base::AUDITS).await;
}
