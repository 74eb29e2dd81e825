//! Names under which the portal is reached: those that are not its own lead to its own.

use water_harness::{Answer, HttpClient};
use water_kit::portal::{OWN, URL};

use crate::running::Running;

/// Names that reach the portal and are not its own.
const OTHERS: [&str; 5] = [
    "portal.example.org.",
    "portal.example.org:8443",
    "www.example.org",
    "10.0.0.1",
    "evil.example",
];

/// Sends a request under a name.
async fn ask(portal: &Running, method: &str, target: &str, host: &str) -> Answer {
    let mut client = HttpClient::connect(portal.browser().portal).await.unwrap();
    let fields = [("Host", host), OWN];
    client.request(method, target, &fields).await.unwrap()
}

#[tokio::test]
async fn a_page_and_a_sign_in_under_another_name_lead_to_the_portals_own() {
    let portal = Running::start().await;
    for host in OTHERS {
        for (method, target) in [
            ("GET", "/"),
            ("HEAD", "/docs"),
            ("GET", "/a/acme/map?by=flood&dept=34"),
            ("GET", "/?to=//evil.example"),
            ("GET", "/auth/sign-in?to=/docs"),
        ] {
            let answer = ask(&portal, method, target, host).await;
            assert_eq!(answer.status, 308, "{method} {target} at {host}");
            let address = format!("{URL}{target}");
            assert_eq!(answer.header("location"), Some(address.as_str()), "{host}");
            assert_eq!(answer.header("set-cookie"), None, "{host}");
            assert_eq!(answer.header("cache-control"), Some("no-store"), "{host}");
        }
    }
    for host in [
        "portal.example.org",
        "Portal.Example.ORG",
        "portal.example.org:443",
    ] {
        assert_eq!(
            ask(&portal, "GET", "/docs", host).await.status,
            200,
            "{host}"
        );
        let begun = ask(&portal, "GET", "/auth/sign-in", host).await;
        assert_eq!(begun.status, 303, "{host}");
    }
}

#[tokio::test]
async fn whatever_else_is_asked_for_under_another_name_is_answered_as_ever() {
    let portal = Running::start().await;
    for host in OTHERS {
        for (method, target, status) in [
            ("GET", "/account/v1/session", 200),
            ("GET", "/account/v1/accounts/acme/keys", 401),
            ("GET", "/auth/callback?state=none&code=none", 400),
            ("POST", "/auth/back-channel", 415),
            ("POST", "/auth/sign-out", 200),
            ("POST", "/docs", 405),
            ("GET", "//evil.example/docs", 404),
            ("GET", "/assets/none.js", 404),
        ] {
            let answer = ask(&portal, method, target, host).await;
            assert_eq!(answer.status, status, "{method} {target} at {host}");
            assert_eq!(
                answer.header("location"),
                None,
                "{method} {target} at {host}"
            );
        }
    }
}

#[tokio::test]
async fn the_target_of_a_request_is_never_where_it_leads_to() {
    let portal = Running::start().await;
    let answer = ask(
        &portal,
        "GET",
        "http://evil.example/docs?a=b",
        "evil.example",
    )
    .await;
    assert_eq!(answer.status, 308, "{answer:?}");
    let address = format!("{URL}/docs?a=b");
    assert_eq!(answer.header("location"), Some(address.as_str()));
}
