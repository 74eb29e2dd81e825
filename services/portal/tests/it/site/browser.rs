//! A browser: it keeps cookies, says where its requests come from, and follows nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use water_harness::{Answer, HttpClient};

use super::Site;

/// Fields of a page of ours that asks for a change.
pub const OWN: (&str, &str) = ("Sec-Fetch-Site", "same-origin");

#[derive(Clone)]
pub struct Browser {
    /// Where the ingress sends its requests.
    pub portal: SocketAddr,
    pub cookies: BTreeMap<String, String>,
    /// Where it is, as the ingress says.
    pub address: Option<String>,
}

/// A sign-in that has been sent to the provider.
#[derive(Clone, Debug)]
pub struct Begun {
    /// All parameters of the way to the provider.
    pub parameters: BTreeMap<String, String>,
    pub state: String,
    pub nonce: String,
}

impl Browser {
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
        let value = rest.split(';').next().unwrap();
        match line.ends_with("Max-Age=0") {
            true => self.cookies.remove(name),
            false => self.cookies.insert(name.to_owned(), value.to_owned()),
        };
    }

    pub async fn get(&mut self, target: &str) -> Answer {
        self.ask("GET", target, &[], "").await
    }

    /// What `/account/v1/session` says.
    pub async fn session(&mut self) -> Value {
        let answer = self.get("/account/v1/session").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_slice(&answer.body).unwrap()
    }

    pub async fn is_signed_in(&mut self) -> bool {
        self.session().await["signedIn"] == true
    }

    /// Clicks on "sign in".
    pub async fn begin(&mut self, to: &str) -> Begun {
        let answer = self.get(&format!("/auth/sign-in?to={to}")).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        let (_, query) = answer.header("location").unwrap().split_once('?').unwrap();
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let parameters: BTreeMap<_, _> = pairs.collect();
        Begun {
            state: parameters["state"].clone(),
            nonce: parameters["nonce"].clone(),
            parameters,
        }
    }

    /// Comes back from the provider, which has this token for the code.
    pub async fn finish(&mut self, site: &Site, begun: &Begun, token: &str) -> Answer {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let code = format!("code-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        site.provider.give(&code, token);
        self.back(&begun.state, &code).await
    }

    pub async fn back(&mut self, state: &str, code: &str) -> Answer {
        self.get(&format!("/auth/callback?state={state}&code={code}"))
            .await
    }

    /// Clicks on "sign out"; where to go next.
    pub async fn sign_out(&mut self) -> String {
        let answer = self.ask("POST", "/auth/sign-out", &[OWN], "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        body["next"].as_str().unwrap().to_owned()
    }
}
