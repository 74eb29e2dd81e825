//! Only the gate's signature decides whose history is read.

use water_database::writer::History;
use water_harness::Answer;

use crate::fixture::{Running, Signature, load, rows};

const PATH: &str = "/api/v1/hydrorisk";

async fn with(service: &Running, value: &str) -> Answer {
    service
        .raw("GET", PATH, &[("X-Water-Identity", value)])
        .await
}

async fn with_rows() -> Running {
    let (service, mut writer) = Running::empty().await;
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
    for path in [PATH, "/api/v1/conformite", "/api/v1/none"] {
        refused(&service.raw("GET", path, &[]).await, path);
        refused(
            &service
                .raw("GET", path, &[("Authorization", "Bearer acme")])
                .await,
            path,
        );
    }
}

#[tokio::test]
async fn an_invented_or_altered_account_is_refused() {
    let service = with_rows().await;
    let theirs = Signature {
        account: "other",
        ..Signature::default()
    }
    .value("GET", PATH);
    refused(
        &with(&service, &theirs.replace("account=other", "account=acme")).await,
        "altered",
    );
    refused(&with(&service, "v1;account=acme").await, "invented");
    let foreign = "4444444444444444444444444444444444444444444444444444444444444444";
    refused(
        &with(
            &service,
            &Signature {
                key: foreign,
                ..Signature::default()
            }
            .value("GET", PATH),
        )
        .await,
        "foreign",
    );
}

#[tokio::test]
async fn an_identity_for_another_request_is_refused() {
    let service = with_rows().await;
    for (method, target) in [
        ("GET", "/api/v1/conformite"),
        ("GET", "/api/v1/hydrorisk?limit=1"),
        ("HEAD", PATH),
    ] {
        refused(
            &with(&service, &Signature::default().value(method, target)).await,
            target,
        );
    }
}

#[tokio::test]
async fn an_identity_of_hours_ago_or_ahead_is_refused() {
    let service = with_rows().await;
    // More than two hours and five minutes from the moment of signing, either way.
    for expires_in in [-7_475_000, 7_535_000] {
        let signature = Signature {
            expires_in,
            ..Signature::default()
        };
        refused(
            &with(&service, &signature.value("GET", PATH)).await,
            "out of its window",
        );
    }
    assert_eq!(
        with(&service, &Signature::default().value("GET", PATH))
            .await
            .status,
        200
    );
}
