//! The whole portal over its port: readers with sessions in Redis, keys at an API server, data of a service.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use water_harness::{Answer, HttpClient, wait_until};
use water_kit::{KeyStore, SOON};
use water_runtime::settings::from_settings;
use water_runtime::{Settings, program};

use super::*;
use crate::claims::Role;
use crate::clock;
use crate::data::tests::{KEY, service};
use crate::keys::tests::world::{Made, World};
use crate::route::ACCOUNT_PATHS;
use crate::sample::{at_once, manager, session};

const ID: &str = "0123456789abcdef";

/// A portal on its port.
struct Site {
    world: World,
    address: SocketAddr,
    portal: Arc<Portal>,
    // Background tasks, which end with it.
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
    /// Starts a portal and waits until it is ready.
    async fn start(name: &str) -> Self {
        let world = World::new(name).await;
        world.applies(&world.installation());
        let site = Self::within(world).await;
        site.lacks(&[]).await;
        site
    }

    /// Starts a portal, which may not be ready yet.
    async fn within(world: World) -> Self {
        let data = service().await;
        Self::before(&data, world).await
    }

    /// A portal that has just been started, with both services at this address.
    async fn before(data: &str, world: World) -> Self {
        let store = KeyStore::new().await;
        let instance = format!("{}.water-data", world.namespace);
        let own = [
            ("WATER_INSTANCE", instance.as_str()),
            ("WATER_DEPARTEMENTS_ADDRESS", data),
            ("WATER_HISTORY_ADDRESS", data),
            ("WATER_IDENTITY_CURRENT", &KEY[..64]),
        ];
        let settings = water_kit::Portal::on(&store, &own).await.settings;
        let pairs = settings.iter().map(|(name, value)| (&**name, &**value));
        let config: Config = from_settings(&mut Settings::from_pairs(pairs)).unwrap();
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
        let target = format!("/account/v1/accounts/{account}/{}", request.rest);
        self.sends(reader, &target, request).await
    }

    /// Sends a request to this target, whatever its own path is.
    async fn sends(&self, reader: &Reader, target: &str, request: &Request) -> Answer {
        let Request { method, body, .. } = request;
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (cookie, length) = (&reader.cookie, body.len());
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: water.example\r\n\
             X-Request-Id: {ID}\r\nCookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n"
        );
        let length = match *method {
            "GET" | "HEAD" => String::new(),
            _ => format!("Content-Length: {length}\r\n"),
        };
        let mut client = HttpClient::connect(self.address).await.unwrap();
        client
            .send(format!("{head}{length}\r\n{body}"))
            .await
            .unwrap();
        let answer = match *method {
            "HEAD" => client.answer_to_head().await,
            _ => client.answer().await,
        };
        answer.unwrap()
    }
}

fn request(method: &'static str, rest: &str, body: Value) -> Request {
    Request {
        method,
        rest: rest.to_owned(),
        body,
    }
}

/// Returns a request of every route about the key `name`.
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

/// Returns a request of every route of an account that has the key `name`.
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

/// Returns an answer without its date. The test sets the request ids, for their length is part of an
/// answer.
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
            // Another account's key in the reader's own account, and names of no key.
            let unknown = ["no-such-key", "..", "%2e%2e", "Upper"].into_iter();
            for asked in unknown.chain([foreign.as_str()]).flat_map(about) {
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
                assert_eq!(answer.header("accept-ranges"), Some("none"), "{rest}");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parameter_that_a_path_of_an_account_does_not_have_is_refused() {
    let site = Site::start("portal-parameters").await;
    let reader = site.reader("acme", Role::Manager).await;
    let mut targets: Vec<(String, Request)> = all("no-such-key")
        .into_iter()
        .map(|asked| {
            let path = format!("/account/v1/accounts/acme/{}", asked.rest);
            (path, asked)
        })
        .collect();
    let session = request("GET", "", Value::Null);
    targets.push(("/account/v1/session".to_owned(), session));
    for (path, asked) in targets {
        for (query, named) in [("limit%0A=1", Value::Null), ("colour=red", json!("colour"))] {
            let target = format!("{path}?{query}");
            let answer = site.sends(&reader, &target, &asked).await;
            let body = answer.json().unwrap();
            assert_eq!(
                (answer.status, &body["code"], &body["parameter"]),
                (400, &json!("invalid_parameter"), &named),
                "{} {target} {answer:?}",
                asked.method
            );
            if asked.method == "GET" {
                let head = request("HEAD", "", Value::Null);
                let answer = site.sends(&reader, &target, &head).await;
                assert_eq!(answer.status, 400, "HEAD {target} {answer:?}");
            }
        }
    }
}

#[test]
fn the_isolation_test_asks_every_path_of_an_account() {
    let asked = all("{name}").into_iter();
    let asked: BTreeSet<String> = asked
        .map(|request| format!("/account/v1/accounts/{{account}}/{}", request.rest))
        .collect();
    assert_eq!(asked, ACCOUNT_PATHS.map(str::to_owned).into());
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
async fn a_portal_waits_for_its_services_names_and_not_for_ever() {
    let world = World::new("portal-names").await;
    world.applies(&world.installation());
    // No name server knows names of this domain (RFC 6761).
    let site = Site::before("history.invalid:8080", world).await;
    site.lacks(&["name of departements", "name of history"])
        .await;
    site.lacks(&[]).await;
}
