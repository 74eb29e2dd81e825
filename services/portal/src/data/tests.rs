//! Data as the services answer them: behind the portal runs what every service has before its routes.

use http::header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG, RETRY_AFTER, VARY};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use warp::Filter;
use water_domain::Format;
use water_gate::upstream::{Bounds, Resolver, Upstream};
use water_http::representation::CACHE_HISTORY;
use water_http::route::HYDRORISK;
use water_http::{ClockSkew, IdentityKey, Language, Query, Representation, RequestIds, Verifier};
use water_keystore::Quotas;

use super::*;
use crate::claims::Role;
use crate::sample::{limits, manager, member, received, store, viewer};

/// Key that signs identities.
pub(crate) const KEY: &str = "4e6f7420612073656372657420617420616c6c3a206120746573742773206b6579";

fn key(digits: &str) -> IdentityKey {
    digits[..64].parse().unwrap()
}

/// Starts a service that answers with the identity and the query of the request, if its page is valid.
pub(crate) async fn service() -> String {
    let routes = water_http::get(&HYDRORISK)
        .and(water_http::identity())
        .and(water_http::format())
        .then(
            |query: Result<Query<'static>, Problem>, identity: Identity, format: Format| async move {
                let query = query?;
                let told = json!({
                    "account": identity.account, "key": identity.key, "plan": identity.plan,
                    "query": query.pairs().collect::<Vec<_>>(),
                });
                query.page()?;
                let body = Representation::new(told.to_string(), CACHE_HISTORY);
                Ok::<_, Problem>(body.in_format(format))
            },
        );
    let service = water_http::service(
        Verifier::new(&key(KEY), None),
        ClockSkew::default(),
        RequestIds::new(2),
        Spans::new(None),
        routes,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let connection =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone());
            tokio::spawn(connection);
        }
    });
    address.to_string()
}

/// A portal before services at this address.
struct Site {
    data: Data,
    quotas: Quotas,
}

impl Site {
    async fn new() -> Self {
        Self::before(&service().await, KEY).await
    }

    async fn before(address: &str, signing: &str) -> Self {
        let (connection, instance) = store().await;
        let service = || {
            let resolver = Resolver::new(address.parse().unwrap());
            Upstream::new(Arc::new(resolver), Bounds::default())
        };
        let data = Data {
            upstreams: Arc::new(Upstreams {
                departements: service(),
                history: service(),
            }),
            signer: Signer::new(&key(signing)),
            budget: BodyBudget::of_kib(1024),
            allowances: Allowances::new(connection.clone(), instance.clone()),
            spans: Spans::new(None),
        };
        Self {
            data,
            quotas: Quotas::new(connection, instance),
        }
    }

    async fn asks(
        &self,
        member: &Member,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
    ) -> Response {
        let received = received(method, target, fields);
        let query = Query::parse(received.uri.query()).unwrap();
        let asked = AccountRequest {
            received: &received,
            path: &["hydrorisk"],
            query: &query,
            body: &Default::default(),
        };
        let route = route(asked.path).unwrap();
        let outcome = answer(&self.data, route, member, &asked, crate::clock::now()).await;
        outcome.unwrap_or_else(|problem| problem.into_response(&received.id, Language::English))
    }
}

fn code(answer: &Response) -> (u16, String) {
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    let code = body["code"].as_str().unwrap_or_default();
    (answer.status().as_u16(), code.to_owned())
}

fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn the_service_answers_the_members_account_and_nobody_elses() {
    let site = Site::new().await;
    for account in ["acme", "globex"] {
        let target = "/?limit=5&utm_account=initech&offset=1";
        let forged = [
            ("x-water-identity", "v1;account=initech"),
            ("accept", "application/json"),
        ];
        for reader in [manager(account), viewer(account)] {
            let answer = site.asks(&reader, "GET", target, &forged).await;
            let told: Value = serde_json::from_slice(answer.body()).unwrap();
            let expected = json!({
                "account": account, "key": "portal000000", "plan": "Enterprise",
                "query": [["limit", "5"], ["offset", "1"]],
            });
            assert_eq!(told, expected);
        }
    }
}

#[tokio::test]
async fn fault_45_the_answer_is_the_services_own_and_no_cache_keeps_it() {
    let site = Site::new().await;
    let acme = manager("acme");
    let answer = site.asks(&acme, "GET", "/", &[]).await;
    assert_eq!(answer.headers()[CACHE_CONTROL], "no-store");
    assert_eq!(answer.headers()[CONTENT_TYPE], "application/json");
    let tag = answer.headers()[ETAG].to_str().unwrap().to_owned();
    let again = site
        .asks(&acme, "GET", "/", &[("if-none-match", &tag)])
        .await;
    assert_eq!((again.status().as_u16(), again.body().len()), (304, 0));
    assert_eq!(again.headers()[CACHE_CONTROL], "no-store");
    let table = site
        .asks(&acme, "GET", "/", &[("accept", "text/csv")])
        .await;
    assert_eq!(table.headers()[CONTENT_TYPE], Format::Csv.content_type());
}

#[tokio::test]
async fn a_services_problem_is_in_the_readers_language_and_its_answers_vary_by_none() {
    let site = Site::new().await;
    let acme = manager("acme");
    let french = [("accept-language", "fr")];
    let refused = site.asks(&acme, "GET", "/?limit=0", &french).await;
    assert_eq!(code(&refused), is(400, "invalid_parameter"));
    let body: Value = serde_json::from_slice(refused.body()).unwrap();
    assert_eq!(body["title"], "Un paramètre n’est pas valable");
    assert_eq!(refused.headers()[CONTENT_LANGUAGE], "fr");
    let vary = refused.headers()[VARY].to_str().unwrap();
    assert!(vary.ends_with(", Accept-Language"), "{vary}");
    let answered = site.asks(&acme, "GET", "/", &french).await;
    let vary = answered.headers().get(VARY);
    assert_eq!((answered.status().as_u16(), vary), (200, None));
}

#[tokio::test]
async fn looking_costs_nothing_of_the_plan_and_the_sixty_first_look_waits() {
    let site = Site::new().await;
    let acme = manager("acme");
    for _ in 0..60 {
        assert_eq!(site.asks(&acme, "GET", "/", &[]).await.status(), 200);
    }
    let refused = site.asks(&acme, "GET", "/", &[]).await;
    assert_eq!(code(&refused), is(429, "rate_limited"));
    let wait: u64 = refused.headers()[RETRY_AFTER]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(
        site.asks(&manager("globex"), "GET", "/", &[])
            .await
            .status(),
        200
    );
    let quota = site.quotas.read(acme.account(), limits()).await.unwrap();
    assert_eq!((quota.minute.remaining, quota.day.remaining), (120, 50_000));
}

#[tokio::test]
async fn a_plan_without_access_and_other_methods_are_refused() {
    let site = Site::new().await;
    let free = member("acme", "Free", Role::Manager);
    assert_eq!(
        code(&site.asks(&free, "GET", "/", &[]).await),
        is(403, "plan_insufficient")
    );
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = site.asks(&manager("acme"), method, "/", &[]).await;
        assert_eq!(code(&answer), is(405, "method_not_allowed"), "{method}");
    }
}

#[tokio::test]
async fn a_service_that_is_away_or_does_not_believe_the_portal_is_nobodys_fault() {
    let away = Site::before("127.0.0.1:1", KEY).await;
    let answer = away.asks(&manager("acme"), "GET", "/", &[]).await;
    assert_eq!(code(&answer), is(503, "upstream_unavailable"));
    let stranger = Site::before(&service().await, &"0".repeat(64)).await;
    let answer = stranger.asks(&manager("acme"), "GET", "/", &[]).await;
    assert_eq!(code(&answer), is(500, "internal"));
}

#[test]
fn every_route_of_the_api_is_a_path_of_an_account() {
    for name in ["stress", "risque", "hydrorisk", "conformite", "sources"] {
        assert_eq!(route(&[name]).unwrap().path, format!("/api/v1/{name}"));
    }
    assert!(route(&["stress", "x"]).is_none() && route(&["openapi.json"]).is_none());
}
