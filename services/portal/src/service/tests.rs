//! The whole portal over its port: readers with sessions in Redis, keys at an API server, data of a service.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use water_harness::{Answer, HttpClient, Redis, wait_until};
use water_http::representation::Conditions;
use water_runtime::settings::from_settings;
use water_runtime::{Settings, program};

use super::*;
use crate::claims::Role;
use crate::clock;
use crate::data::tests::{KEY, service};
use crate::keys::tests::world::{Made, World};
use crate::sample::{at_once, manager, session};

const ID: &str = "0123456789abcdef";
const SOON: Duration = Duration::from_secs(60);

/// A portal on its port.
struct Site {
    world: World,
    address: SocketAddr,
    portal: Arc<Portal>,
    // What runs beside the requests ends with it.
    process: Process,
}

/// Somebody's browser.
struct Reader {
    account: &'static str,
    role: Role,
    cookie: String,
}

/// A request behind an account in the path.
struct Request {
    method: &'static str,
    rest: String,
    body: Value,
}

impl Site {
    /// A ready portal.
    async fn start(name: &str) -> Self {
        let world = World::new(name).await;
        world.applies(&world.installation());
        let site = Self::within(world).await;
        site.lacks(&[]).await;
        site
    }

    /// A portal that has just been started.
    async fn within(world: World) -> Self {
        let (redis, data) = (Redis::shared().await.unwrap().url(), service().await);
        let instance = format!("{}.water-data", world.namespace);
        let settings = [
            ("WATER_LISTEN_ADDRESS", "127.0.0.1:0"),
            ("WATER_ADMIN_ADDRESS", "127.0.0.1:0"),
            ("WATER_REDIS_URL", &redis),
            ("WATER_INSTANCE", &instance),
            ("WATER_DEPARTEMENTS_ADDRESS", &data),
            ("WATER_HISTORY_ADDRESS", &data),
            ("WATER_IDENTITY_CURRENT", &KEY[..64]),
            ("WATER_PORTAL_URL", "https://water.example"),
            ("WATER_OIDC_ISSUER", "https://id.example"),
            ("WATER_OIDC_CLIENT_ID", "water-portal"),
            ("WATER_OIDC_CLIENT_SECRET", "secret"),
            ("WATER_PORTAL_SEAL_KEY", &KEY[..64]),
        ];
        let config: Config = from_settings(&mut Settings::from_pairs(settings)).unwrap();
        let pages = Pages::new([("index.html".to_owned(), Vec::new())]).unwrap();
        let mut process = Process::start(program!()).unwrap();
        let client = world.client.clone();
        let service = Service::start(config, pages, client, 1, &mut process).unwrap();
        let (address, portal) = (service.address().unwrap(), Arc::clone(&service.portal));
        tokio::spawn(service.serve());
        Self {
            world,
            address,
            portal,
            process,
        }
    }

    /// Waits until exactly this is missing to be ready.
    async fn lacks(&self, what: &[&str]) {
        let lacking = async || {
            let missing = self.process.readiness.missing();
            anyhow::ensure!(missing == what, "missing: {missing:?}");
            Ok(())
        };
        wait_until("the portal's readiness", SOON, lacking)
            .await
            .unwrap();
    }

    async fn reader(&self, account: &'static str, role: Role) -> Reader {
        let session = session(account, "Enterprise", role);
        let set = self
            .portal
            .sessions
            .begin(&session, at_once(clock::now()))
            .await
            .unwrap()
            .unwrap();
        let cookie = set.to_str().unwrap().split(';').next().unwrap().to_owned();
        Reader {
            account,
            role,
            cookie,
        }
    }

    async fn asks(&self, reader: &Reader, account: &str, request: &Request) -> Answer {
        let Request { method, rest, body } = request;
        let body = match body.is_null() {
            true => String::new(),
            false => body.to_string(),
        };
        let (cookie, length) = (&reader.cookie, body.len());
        let head = format!(
            "{method} /account/v1/accounts/{account}/{rest} HTTP/1.1\r\nHost: water.example\r\n\
             X-Request-Id: {ID}\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n"
        );
        let length = match *method {
            "GET" => String::new(),
            _ => format!("Content-Length: {length}\r\n"),
        };
        let mut client = HttpClient::connect(self.address).await.unwrap();
        client
            .send(format!("{head}{length}\r\n{body}"))
            .await
            .unwrap();
        client.answer().await.unwrap()
    }
}

fn request(method: &'static str, rest: &str, body: Value) -> Request {
    Request {
        method,
        rest: rest.to_owned(),
        body,
    }
}

/// Every route about the key `name`.
fn about(name: &str) -> Vec<Request> {
    vec![
        request("PATCH", &format!("keys/{name}"), json!({ "title": "Mine" })),
        request(
            "POST",
            &format!("keys/{name}/rotation"),
            Made::new(9).rotation(&Made::new(1)),
        ),
        request("DELETE", &format!("keys/{name}/previous"), Value::Null),
        request("DELETE", &format!("keys/{name}"), Value::Null),
    ]
}

/// Every route of an account that has the key `name`.
fn all(name: &str) -> Vec<Request> {
    let mut requests = about(name);
    requests.push(request("POST", "keys", Made::new(8).body()));
    let reads = [
        "keys",
        "quota",
        "usage",
        "stress",
        "risque",
        "hydrorisk",
        "conformite",
        "sources",
    ];
    requests.extend(reads.map(|rest| request("GET", rest, Value::Null)));
    requests
}

/// Everything of an answer but its date. The request ids are told by the test, for their length is
/// part of an answer.
fn whole(answer: &Answer) -> (u16, Vec<(String, String)>, Value) {
    assert_eq!(answer.header("x-request-id"), Some(ID));
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
    (answer.status, headers, answer.json().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_not_the_readers_is_404_alike_but_for_the_request_id() {
    let site = Site::start("portal-isolation").await;
    let accounts = ["acme", "globex"];
    let mut names = Vec::new();
    for (number, account) in accounts.iter().enumerate() {
        names.push(
            site.world
                .created(&manager(account), &Made::new(number as u8 + 1))
                .await,
        );
    }
    let nobody = request("GET", "keys", Value::Null);
    let mut seen = Vec::new();
    for (own, account) in accounts.into_iter().enumerate() {
        let (other, foreign) = (accounts[1 - own], &names[1 - own]);
        for role in [Role::Manager, Role::Viewer] {
            let reader = site.reader(account, role).await;
            for asked in all(foreign) {
                seen.push(whole(&site.asks(&reader, other, &asked).await));
                seen.push(whole(&site.asks(&reader, "no-such-account", &asked).await));
            }
            // Another account's key in the reader's own account.
            for asked in about(foreign).into_iter().chain(about("no-such-key")) {
                let answer = whole(&site.asks(&reader, account, &asked).await);
                match reader.role {
                    Role::Manager => seen.push(answer),
                    Role::Viewer => assert_eq!(answer.2["code"], "read_only"),
                }
            }
            for rest in ["keys", "quota", "usage", "hydrorisk"] {
                let answer = site
                    .asks(&reader, reader.account, &request("GET", rest, Value::Null))
                    .await;
                assert_eq!(answer.status, 200, "{answer:?}");
                let text = answer.text().unwrap();
                assert!(
                    !text.contains(other) && !text.contains(foreign.as_str()),
                    "{text}"
                );
            }
            seen.push(whole(&site.asks(&reader, "", &nobody).await));
        }
    }
    assert_eq!(seen[0].0, 404);
    for answer in &seen {
        assert_eq!(answer, &seen[0]);
    }
    assert_eq!(
        site.world.lists(&manager("acme")).await[0]["title"],
        "Nightly import"
    );
}

#[test]
fn the_isolation_test_asks_everything_that_is_described() {
    let answer = openapi::representation().answer(&Conditions::default());
    let document: Value = serde_json::from_slice(answer.body()).unwrap();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        if let Some(rest) = path.strip_prefix("/account/v1/accounts/{account}/") {
            let methods = item.as_object().unwrap().keys();
            described.extend(methods.map(|method| format!("{} {rest}", method.to_uppercase())));
        }
    }
    let asked = all("{name}").into_iter();
    let asked: BTreeSet<String> = asked
        .map(|request| format!("{} {}", request.method, request.rest))
        .collect();
    assert_eq!(asked, described);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_portal_is_not_ready_before_it_knows_the_plans() {
    let site = Site::within(World::new("portal-plans").await).await;
    site.lacks(&["plans"]).await;
    site.world.applies(&site.world.installation());
    site.lacks(&[]).await;
    let reader = site.reader("acme", Role::Manager).await;
    let quota = request("GET", "quota", Value::Null);
    assert_eq!(site.asks(&reader, "acme", &quota).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quota_and_data_go_on_under_the_plans_that_were_read_before_the_api_server_stopped() {
    let world = World::alone("portal-outage").await;
    world.applies(&world.installation());
    let site = Site::within(world).await;
    site.lacks(&[]).await;
    let reader = site.reader("acme", Role::Manager).await;
    site.world.stops_the_api_server().await;
    let read = site.portal.keys.cluster.read_plans(&site.portal.plans);
    assert!(read.await.is_err(), "the API server still answers");
    for (rest, status) in [("keys", 503), ("quota", 200), ("hydrorisk", 200)] {
        let answer = site
            .asks(&reader, "acme", &request("GET", rest, Value::Null))
            .await;
        assert_eq!(answer.status, status, "{rest}: {answer:?}");
    }
    site.lacks(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_made_rotated_and_revoked_over_the_port() {
    let site = Site::start("portal-keys").await;
    let reader = site.reader("acme", Role::Manager).await;
    let (first, second) = (Made::new(1), Made::new(2));
    let created = site
        .asks(&reader, "acme", &request("POST", "keys", first.body()))
        .await;
    assert_eq!(created.status, 201, "{created:?}");
    let name = created.json().unwrap()["name"].as_str().unwrap().to_owned();
    site.world.publishes(&name, None);
    let listed = site
        .asks(&reader, "acme", &request("GET", "keys", Value::Null))
        .await;
    assert_eq!(listed.json().unwrap()["data"][0]["state"], "active");
    let rotation = request(
        "POST",
        &format!("keys/{name}/rotation"),
        second.rotation(&first),
    );
    assert_eq!(site.asks(&reader, "acme", &rotation).await.status, 200);
    let gone = request("DELETE", &format!("keys/{name}"), Value::Null);
    assert_eq!(site.asks(&reader, "acme", &gone).await.status, 202);
    assert_eq!(site.asks(&reader, "acme", &gone).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_another_sites_page_sends_is_refused() {
    let site = Site::start("portal-origin").await;
    let reader = site.reader("acme", Role::Manager).await;
    let body = Made::new(1).body().to_string();
    for origin in [
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Origin: https://evil.example",
        "X-No: origin",
    ] {
        let (cookie, length) = (&reader.cookie, body.len());
        let head = format!(
            "POST /account/v1/accounts/acme/keys HTTP/1.1\r\nHost: water.example\r\nCookie: {cookie}\r\n{origin}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        let mut client = HttpClient::connect(site.address).await.unwrap();
        client.send(format!("{head}{body}")).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(
            (answer.status, &answer.json().unwrap()["code"]),
            (403, &json!("cross_origin")),
            "{origin}"
        );
    }
    assert!(site.world.lists(&manager("acme")).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_description_needs_no_session() {
    let site = Site::start("portal-openapi").await;
    let mut client = HttpClient::connect(site.address).await.unwrap();
    let answer = client
        .request("GET", "/account/v1/openapi.json", &[])
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.json().unwrap()["paths"].is_object());
}
