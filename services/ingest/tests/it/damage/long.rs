//! The other datasets.

use super::damage;

#[tokio::test]
async fn damaged_stress_files_change_nothing_or_are_stored_as_they_say() {
    damage("stress").await;
}

#[tokio::test]
async fn damaged_answers_of_the_register_change_nothing_or_are_stored_as_they_say() {
    damage("vigieau").await;
}

#[tokio::test]
async fn damaged_analyses_change_nothing_or_are_stored_as_they_say() {
    damage("analyses").await;
}

#[tokio::test]
async fn damaged_audits_change_nothing_or_are_stored_as_they_say() {
    damage("audits").await;
}
