//! Answers of `/hydrorisk` and `/conformite`: shapes, field order, rows of the account only, refusals.

use serde_json::{Value, json};
use water_database::writer::History;
use water_kit::{problem, row, rows};

use crate::{ANALYSES, AUDITS, empty, link};

#[tokio::test]
async fn each_history_has_its_fields_in_order_and_its_own_rows() {
    let (service, mut loader) = empty().await;
    let company = "L'Œuvre \"d'eau\" 🚰";
    let analysis = row("a-1", 5).company(company);
    loader.history(History::Analyses, &[analysis]).await;
    let audit = row("c-1", 1000).score(3.0);
    loader.history(History::Audits, &[audit]).await;
    for (path, text) in [
        (
            ANALYSES,
            concat!(
                r#"{"total":1,"limit":20,"offset":0,"data":[{"id":"a-1","#,
                r#""companyName":"L'Œuvre \"d'eau\" 🚰","sectorCode":"36.00Z","deptCode":"34","#,
                r#""globalScore":61.5,"rating":"B+","createdAt":"2026-01-01T00:00:00.005Z"}]}"#
            ),
        ),
        (
            AUDITS,
            concat!(
                r#"{"total":1,"limit":20,"offset":0,"data":[{"id":"c-1","#,
                r#""companyName":"Eaux de l'Hérault","sectorCode":"36.00Z","deptCode":"34","#,
                r#""score":3,"globalRating":"B+","createdAt":"2026-01-01T00:00:01.000Z"}]}"#
            ),
        ),
    ] {
        assert_eq!(service.get(path).await.text().unwrap(), text);
    }
}

#[tokio::test]
async fn an_account_sees_its_own_rows_only_whatever_its_query_says() {
    let (service, mut loader) = empty().await;
    let both = [row("ours", 0), row("theirs", 0).account("other")];
    loader.history(History::Analyses, &both).await;
    for (account, target, id) in [
        ("acme", ANALYSES, json!("ours")),
        ("other", ANALYSES, json!("theirs")),
        ("ACME", ANALYSES, Value::Null),
    ] {
        let body = service.get_as(account, target).await.json().unwrap();
        assert_eq!(body["data"][0]["id"], id, "{account} {target}");
        assert_eq!(body["total"], u8::from(!id.is_null()));
    }
    for name in ["account", "accountId", "account_id"] {
        let target = format!("{ANALYSES}?{name}=other");
        let refused = problem(&service.get(&target).await);
        assert_eq!(refused, (400, "invalid_parameter".into(), name.into()));
    }
}

#[tokio::test]
async fn without_rows_or_beyond_them_a_page_is_empty() {
    let (service, mut loader) = empty().await;
    loader.history(History::Analyses, &rows(3)).await;
    for (target, total, offset) in [
        (AUDITS, 0, 0),
        ("/api/v1/hydrorisk?offset=3", 3, 3),
        (
            "/api/v1/hydrorisk?offset=9007199254740991",
            3,
            9_007_199_254_740_991_u64,
        ),
    ] {
        let page = service.get(target).await;
        let text = format!(r#"{{"total":{total},"limit":20,"offset":{offset},"data":[]}}"#);
        assert_eq!(page.text().unwrap(), text);
        let sources = link(&page, "describedby");
        assert_eq!(sources.as_deref(), Some("/api/v1/sources"));
    }
}

#[tokio::test]
async fn malformed_pages_are_refused_by_parameter_and_without_their_value() {
    let (service, _) = empty().await;
    for path in [ANALYSES, AUDITS] {
        for (query, parameter) in [
            ("limit=0", "limit"),
            ("limit=zzz9", "limit"),
            ("limit=5&limit=5", "limit"),
            ("offset=zzz9", "offset"),
            ("offset=9007199254740992", "offset"),
        ] {
            let answer = service.get(&format!("{path}?{query}")).await;
            let expected = (400, json!("invalid_parameter"), json!(parameter));
            assert_eq!(problem(&answer), expected, "{query}");
            assert!(!answer.text().unwrap().contains("zzz9"));
        }
    }
}

#[tokio::test]
async fn all_routes_answer_in_the_frame() {
    let (service, mut loader) = empty().await;
    for (history, target) in [
        (History::Analyses, "/api/v1/hydrorisk?limit=50"),
        (History::Audits, "/api/v1/conformite?limit=50"),
    ] {
        loader.history(history, &rows(120)).await;
        let kept = "private, no-cache";
        service.answers_in_the_frame(target, kept).await;
        let tag = service.get(target).await.header("etag").unwrap().to_owned();
        loader.history(history, &[row("another", 99_000)]).await;
        let known = [("If-None-Match", &*tag)];
        assert_eq!(service.request("GET", target, &known).await.status, 200);
    }
    let unsigned = service.raw("GET", "/api/v1/sources", &[]).await;
    assert_eq!(unsigned.status, 401);
}
