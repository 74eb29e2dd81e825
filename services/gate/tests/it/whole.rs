//! Whole answers: every byte that the gate sends back, except those that no test can predict.
//!
//! A date, a minted request id and the seconds until a window opens are replaced by `…` after a check of their form;
//! the fields of a head are sorted. Everything else is compared as received.

use std::fmt;

use water_harness::Answer;
use water_kit::Gate;

/// Placeholder for the request id in a body.
const ID: &str = "<id>";
/// Fields of every answer. Of the gate itself is `X-Content-Type-Options`.
const ALWAYS: [&str; 3] = [
    "date: …",
    "x-content-type-options: nosniff",
    "x-request-id: <id>",
];

/// A whole answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Whole {
    line: String,
    fields: Vec<String>,
    body: String,
}

/// A refusal of the gate: code, status line, title, detail, and its own fields.
type Refusal = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const CHALLENGE: &str = r#"www-authenticate: Bearer realm="water-data""#;
const INVALID_TOKEN: &str = r#"www-authenticate: Bearer realm="water-data", error="invalid_token""#;
const INSUFFICIENT_SCOPE: &str =
    r#"www-authenticate: Bearer realm="water-data", error="insufficient_scope""#;
const INVALID_REQUEST: &str =
    r#"www-authenticate: Bearer realm="water-data", error="invalid_request""#;

#[rustfmt::skip]
const REFUSALS: [Refusal; 19] = [
    ("invalid_query", "400 Bad Request", "The query cannot be decoded",
        "Encode the query as UTF-8 and percent-encode it: % and two hex digits.", &[]),
    ("body_not_allowed", "400 Bad Request", "The request must not have a body",
        "Send the request without a body, Transfer-Encoding or Content-Length.", &["connection: close"]),
    ("invalid_host", "400 Bad Request", "The Host header is missing or ambiguous",
        "Send exactly one Host header, the same as the target's authority.", &[]),
    ("key_in_query", "400 Bad Request", "The API key must not be in the query",
        "Send the key in the Authorization header, and replace this key: addresses are kept in logs and histories.", &[]),
    ("missing_credentials", "401 Unauthorized", "An API key is required",
        "Send the header `Authorization: Bearer <API_KEY>`.", &[CHALLENGE]),
    ("invalid_key", "401 Unauthorized", "The API key is not valid",
        "Check that the whole key was sent; if it was, it is unknown or revoked.", &[INVALID_TOKEN]),
    ("key_expired", "401 Unauthorized", "The API key has expired",
        "Create a new key or extend this one.", &[INVALID_TOKEN]),
    ("key_not_yet_valid", "401 Unauthorized", "The API key is not valid yet",
        "Use the key from its notBefore time on.", &[INVALID_TOKEN]),
    ("key_suspended", "401 Unauthorized", "The API key is suspended",
        "Resume the key or use another one.", &[INVALID_TOKEN]),
    ("invalid_request", "401 Unauthorized", "The Authorization header is repeated",
        "Send exactly one Authorization header.", &[INVALID_REQUEST]),
    ("plan_insufficient", "403 Forbidden", "API access requires the Enterprise plan",
        "The account's plan has no API access; upgrade it to Enterprise.", &[INSUFFICIENT_SCOPE]),
    ("not_found", "404 Not Found", "There is no such resource",
        "Ask for one of the paths in /api/v1/openapi.json.", &[]),
    ("method_not_allowed", "405 Method Not Allowed", "The method is not allowed",
        "The interface is read-only: use GET or HEAD.", &["allow: GET, HEAD"]),
    ("uri_too_long", "414 URI Too Long", "The request target is too long",
        "The path and query may have 2048 bytes together.", &[]),
    ("expectation_failed", "417 Expectation Failed", "The expectation is not supported",
        "Send no Expect header, or 100-continue.", &[]),
    ("rate_limited", "429 Too Many Requests", "Too many requests",
        "Too many requests with wrong credentials came from this address; wait as long as Retry-After says.", &["retry-after: 1"]),
    ("headers_too_large", "431 Request Header Fields Too Large", "The request head is too large",
        "The head may have 64 fields and 16 KiB.", &[]),
    ("internal", "500 Internal Server Error", "Internal error",
        "The failure has been recorded under the requestId; trying again is no use.", &[]),
    ("upstream_unavailable", "503 Service Unavailable", "The service is unavailable",
        "The service does not answer; try again after Retry-After.", &["retry-after: 2"]),
];

/// Returns the answer to a request that is refused with this code.
pub fn refusal(code: &str) -> Whole {
    let row = REFUSALS.into_iter().find(|row| row.0 == code);
    let (_, status, title, detail, fields) = row.expect("the code is in the table");
    let number = &status[..3];
    let body = format!(
        r#"{{"type":"urn:waterdata:problem:{code}","title":"{title}","status":{number},"detail":"{detail}","code":"{code}","requestId":"{ID}"}}"#
    );
    let whole = Whole::new(status, &ALWAYS, &body)
        .with("cache-control: no-store")
        .with("content-length: …")
        .with("content-type: application/problem+json")
        .with("content-language: en")
        .with("vary: Authorization, Accept, Accept-Encoding, Accept-Language");
    fields.iter().copied().fold(whole, Whole::with)
}

/// Returns the HTTP parser's answer to unreadable bytes.
pub fn unread(status: &str) -> Whole {
    Whole::new(
        status,
        &["connection: close", "content-length: …", "date: …"],
        "",
    )
}

/// Returns an answer of 200 with an empty JSON object, which leaves `remaining` requests in the minute.
pub fn served(remaining: u32) -> Whole {
    Whole::new("200 OK", &ALWAYS, "{}")
        .with("content-length: …")
        .with("content-type: application/json")
        .with("vary: Authorization, Accept, Accept-Encoding")
        .charged(remaining)
}

impl Whole {
    fn new(status: &str, fields: &[&str], body: &str) -> Self {
        Self {
            line: format!("HTTP/1.1 {status}"),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            body: body.to_owned(),
        }
    }

    /// Adds a field.
    pub fn with(mut self, field: &str) -> Self {
        self.fields.push(field.to_owned());
        self.fields.sort();
        self
    }

    /// Adds the limits' state of an account on the plan of 120 a minute and 50 000 a day.
    pub fn charged(self, remaining: u32) -> Self {
        let day = 49_880 + remaining;
        self.with(r#"ratelimit-policy: "minute";q=120;w=60, "day";q=50000;w=86400"#)
            .with(&format!(
                r#"ratelimit: "minute";r={remaining};t=…, "day";r={day};t=…"#
            ))
            .with("x-ratelimit-limit: 120")
            .with(&format!("x-ratelimit-remaining: {remaining}"))
            .with("x-ratelimit-reset: …")
    }

    /// Adds a sentence before the detail of a refusal.
    pub fn saying(mut self, sentence: &str) -> Self {
        let detail = format!(r#""detail":"{sentence} "#);
        self.body = self.body.replace(r#""detail":""#, &detail);
        self
    }

    /// Removes the body, as in an answer to HEAD.
    pub fn without_body(mut self) -> Self {
        self.body.clear();
        self
    }

    /// Returns the status, in digits.
    pub fn status(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }

    /// Whether the answer announces that it is the last one.
    pub fn closes(&self) -> bool {
        self.fields.iter().any(|field| field == "connection: close")
    }

    /// Whether the answer is the parser's.
    pub fn is_unread(&self) -> bool {
        self.fields.len() == 3 && self.closes()
    }

    /// Whether a request was charged for it, or refused because it could not be.
    pub fn is_charged(&self) -> bool {
        self.fields
            .iter()
            .any(|field| field.starts_with("ratelimit:"))
    }

    /// Whether the body begins like this; an empty text means an empty body.
    pub fn has_body_like(&self, beginning: &str) -> bool {
        self.body.starts_with(beginning) && beginning.is_empty() == self.body.is_empty()
    }

    /// Changes the version to HTTP/1.0.
    pub fn in_http_1_0(mut self) -> Self {
        self.line = self.line.replace("HTTP/1.1", "HTTP/1.0");
        self
    }
}

impl fmt::Debug for Whole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "\n{}\n{}\n\n{}\n",
            self.line,
            self.fields.join("\n"),
            self.body
        )
    }
}

/// Sends bytes on a new connection, closes its sending side, and reads every answer until the gate closes the
/// connection.
pub async fn all_answers(gate: &Gate, bytes: impl AsRef<[u8]>) -> Vec<Whole> {
    let mut client = gate.connect().await;
    client.send(bytes).await.unwrap();
    client.finish().await.unwrap();
    read(&client.closed().await.unwrap())
}

/// Returns the status and code of a problem.
pub fn problem(answer: &Answer) -> (u16, String) {
    let body = answer.json().unwrap();
    let code = body["code"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer:?}"));
    (answer.status, code.to_owned())
}

/// Returns a problem as [`problem`] reads it.
pub fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// Waits until the gate counts one request for which it could not connect to the history service in time, and so did
/// not wait for an answer until the deadline.
pub async fn gave_up_connecting(gate: &Gate) {
    let failure = r#"service_failures_total{service="history",reason="connect_slow"} 1"#;
    gate.shows(&[failure]).await;
}

/// Returns the number of requests of the tighter window that are left after this answer.
pub fn remaining(answer: &Answer) -> usize {
    let remaining = answer.header("x-ratelimit-remaining");
    remaining
        .unwrap_or_else(|| panic!("{answer:?}"))
        .parse()
        .unwrap()
}

/// Splits the bytes of a closed connection into its answers.
pub fn read(stream: &[u8]) -> Vec<Whole> {
    let mut rest = std::str::from_utf8(stream).unwrap();
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let (head, tail) = rest.split_once("\r\n\r\n").unwrap();
        let (line, fields) = head.split_once("\r\n").unwrap();
        let value = |name: &str| {
            let mut fields = fields.split("\r\n");
            fields.find_map(|field| field.strip_prefix(name)?.strip_prefix(": "))
        };
        let length: usize = value("content-length").unwrap_or("0").parse().unwrap();
        // Only an answer to HEAD has no body, whatever its length field.
        let length = if tail.is_empty() || tail.starts_with("HTTP/1.") {
            0
        } else {
            length
        };
        let (body, tail) = tail.split_at(length);
        let id = value("x-request-id").unwrap_or(ID);
        let mut fields: Vec<_> = fields.split("\r\n").map(foreseeable).collect();
        fields.sort();
        answers.push(Whole {
            line: line.to_owned(),
            fields,
            body: body.replace(id, ID),
        });
        rest = tail;
    }
    answers
}

/// Replaces the parts of a field that no test can predict.
fn foreseeable(field: &str) -> String {
    let (name, value) = field.split_once(": ").unwrap();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let seen = match name {
        "date" if value.len() == 29 && value.ends_with(" GMT") => "…".to_owned(),
        "content-length" | "x-ratelimit-reset" if digits(value) => "…".to_owned(),
        "x-request-id" => ID.to_owned(),
        "ratelimit" => {
            let windows = value.split(", ").map(|window| {
                let (standing, seconds) = window.rsplit_once(";t=").unwrap();
                assert!(digits(seconds), "{field}");
                format!("{standing};t=…")
            });
            windows.collect::<Vec<_>>().join(", ")
        }
        _ => value.to_owned(),
    };
    format!("{name}: {seen}")
}
