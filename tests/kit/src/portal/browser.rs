//! A reader's browser: it keeps cookies, names its address, and follows nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use water_harness::{Answer, HttpClient};

use crate::Portal;

/// The field by which a page of the portal asks for a change.
pub const OWN: (&str, &str) = ("Sec-Fetch-Site", "same-origin");

/// A browser, signed in or not.
#[derive(Clone)]
pub struct Browser {
    /// The replica to which the ingress sends its requests.
    pub portal: SocketAddr,
    /// Cookies by name.
    pub cookies: BTreeMap<String, String>,
    /// Address, as the ingress names it.
    pub address: Option<String>,
}

/// A sign-in that has been sent to the provider.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// Parameters of the way to the provider.
    pub parameters: BTreeMap<String, String>,
    /// The parameter that comes back with the code.
    pub state: String,
    /// The claim that the token must have.
    pub nonce: String,
}

impl Browser {
    /// Makes a browser without cookies.
    pub fn new(portal: SocketAddr) -> Self {
        Self {
            portal,
            cookies: BTreeMap::new(),
            address: None,
        }
    }

    /// Sends a request with the cookies, and takes those of the answer.
    pub async fn ask(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut text = format!("{method} {target} HTTP/1.1\r\nHost: portal.example.org\r\n");
        for (name, value) in fields {
            text += &format!("{name}: {value}\r\n");
        }
        if let Some(address) = &self.address {
            text += &format!("X-Forwarded-For: {address}\r\n");
        }
        if !self.cookies.is_empty() {
            let pairs = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            text += &format!("Cookie: {}\r\n", pairs.collect::<Vec<_>>().join("; "));
        }
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        let mut client = HttpClient::connect(self.portal).await.unwrap();
        client.send(text + "\r\n" + body).await.unwrap();
        let answer = client.answer().await.unwrap();
        for (name, line) in &answer.headers {
            if name.eq_ignore_ascii_case("set-cookie") {
                self.take(line);
            }
        }
        answer
    }

    fn take(&mut self, line: &str) {
        let protected = ["Path=/", "Secure", "HttpOnly", "SameSite=Lax"];
        assert!(protected.iter().all(|word| line.contains(word)), "{line}");
        let (name, rest) = line.split_once('=').unwrap();
        assert!(name.starts_with("__Host-"), "{line}");
        self.cookies.remove(name);
        if !line.ends_with("Max-Age=0") {
            let value = rest.split(';').next().unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Returns the answer to a GET.
    pub async fn get(&mut self, target: &str) -> Answer {
        self.ask("GET", target, &[], "").await
    }

    /// Returns the body of `/account/v1/session`.
    pub async fn session(&mut self) -> Value {
        let answer = self.get("/account/v1/session").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Whether the cookies open a session.
    pub async fn is_signed_in(&mut self) -> bool {
        self.session().await["signedIn"] == true
    }

    /// Begins a sign-in that leads back `to` a page.
    pub async fn begin(&mut self, to: &str) -> SignIn {
        let answer = self.get(&format!("/auth/sign-in?to={to}")).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        let (_, query) = answer.header("location").unwrap().split_once('?').unwrap();
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let parameters: BTreeMap<_, _> = pairs.collect();
        SignIn {
            state: parameters["state"].clone(),
            nonce: parameters["nonce"].clone(),
            parameters,
        }
    }

    /// Comes back from the provider, which has this token for the code.
    pub async fn finish(&mut self, portal: &Portal, begun: &SignIn, token: &str) -> Answer {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let code = format!("code-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        portal.provider.give(&code, token);
        self.back(&begun.state, &code).await
    }

    /// Signs in with Anna's good claims, changed like this.
    pub async fn sign_in(&mut self, portal: &Portal, change: impl FnOnce(&mut Value)) -> Answer {
        let begun = self.begin("/docs").await;
        let mut claims = portal.claims(&begun.nonce);
        change(&mut claims);
        let token = portal.key.sign(&claims).unwrap();
        self.finish(portal, &begun, &token).await
    }

    /// Comes back from the provider with a state and a code.
    pub async fn back(&mut self, state: &str, code: &str) -> Answer {
        self.get(&format!("/auth/callback?state={state}&code={code}"))
            .await
    }

    /// Signs out; returns the next page.
    pub async fn sign_out(&mut self) -> String {
        let answer = self.ask("POST", "/auth/sign-out", &[OWN], "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        body["next"].as_str().unwrap().to_owned()
    }
}
