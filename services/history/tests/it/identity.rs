//! Only the gate's signature decides whose history is read.

use water_database::writer::History;
use water_harness::Answer;

use crate::fixture::{Running, Signature, empty, load, rows};

const PATH: &str = "/api/v1/hydrorisk";

async fn with_rows() -> Running {
    let (service, mut writer) = empty().await;
    load(&mut writer, History::Analyses, &rows(2)).await;
    service
}

fn refused(answer: &Answer, why: &str) {
    assert_eq!(answer.status, 401, "{why}: {answer:?}");
    let text = answer.text().unwrap();
    assert!(
        text.contains("\"invalid_identity\"") && !text.contains("r0000"),
        "{why}: {answer:?}"
    );
}

#[tokio::test]
async fn a_request_without_an_identity_is_refused() {
    let service = with_rows().await;
    let bearer = [("Authorization", "Bearer acme")];
    for path in [PATH, "/api/v1/conformite", "/api/v1/none"] {
        refused(&service.raw("GET", path, &[]).await, path);
        refused(&service.raw("GET", path, &bearer).await, path);
    }
}

#[tokio::test]
async fn an_invented_or_altered_account_is_refused() {
    let service = with_rows().await;
    let theirs = Signature {
        account: "other",
        ..Signature::default()
    };
    let altered = theirs.value("GET", PATH);
    let altered = altered.replace("account=other", "account=acme");
    refused(&service.get_with(PATH, &altered).await, "altered");
    refused(&service.get_with(PATH, "v1;account=acme").await, "invented");
    let foreign = Signature {
        key: "4444444444444444444444444444444444444444444444444444444444444444",
        ..Signature::default()
    };
    let foreign = foreign.value("GET", PATH);
    refused(&service.get_with(PATH, &foreign).await, "foreign");
}
