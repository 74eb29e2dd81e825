//! Whole answers: every byte that the gate sends back, but for what no test can foresee.
//!
//! A date, a minted request id and the seconds until a window opens are replaced by `…` after their
//! form was checked; the fields of a head are sorted. Everything else is compared as it came.

use std::fmt;

use crate::site::Site;

/// The request id's place in a body.
const ID: &str = "<id>";
/// `Vary` and `X-Content-Type-Options` stand on every answer that the gate itself gives.
const ALWAYS: [&str; 4] = [
    "date: …",
    "vary: Authorization, Accept, Accept-Encoding",
    "x-content-type-options: nosniff",
    "x-request-id: <id>",
];

/// One whole answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Whole {
    line: String,
    fields: Vec<String>,
    body: String,
}

/// Every refusal of the gate: code, status line, title, detail, and the fields of its own.
type Refusal = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const CHALLENGE: &str = r#"www-authenticate: Bearer realm="water-data""#;
const INVALID_TOKEN: &str = r#"www-authenticate: Bearer realm="water-data", error="invalid_token""#;
const INVALID_REQUEST: &str =
    r#"www-authenticate: Bearer realm="water-data", error="invalid_request""#;

#[rustfmt::skip]
const REFUSALS: [Refusal; 17] = [
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
    ("invalid_request", "401 Unauthorized", "The Authorization header is repeated",
        "Send exactly one Authorization header.", &[INVALID_REQUEST]),
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

/// The answer to a request that is refused with this code.
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
        .with("content-type: application/problem+json");
    fields.iter().copied().fold(whole, Whole::with)
}

/// The answer of the HTTP parser to what it cannot read.
pub fn unread(status: &str) -> Whole {
    Whole::new(
        status,
        &["connection: close", "content-length: …", "date: …"],
        "",
    )
}

/// An answer of 200 with an empty JSON object, which leaves `remaining` requests in the minute.
pub fn served(remaining: u32) -> Whole {
    Whole::new("200 OK", &ALWAYS, "{}")
        .with("content-length: …")
        .with("content-type: application/json")
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

    /// The same with one field more.
    pub fn with(mut self, field: &str) -> Self {
        self.fields.push(field.to_owned());
        self.fields.sort();
        self
    }

    /// The same with the standing of an account on the plan of 120 a minute and 50 000 a day.
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

    /// The same as an answer to HEAD.
    pub fn without_body(mut self) -> Self {
        self.body.clear();
        self
    }

    /// The status, in digits.
    pub fn status(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }

    /// Whether it says that it is the last one.
    pub fn closes(&self) -> bool {
        self.fields.iter().any(|field| field == "connection: close")
    }

    /// Whether it comes from the parser.
    pub fn is_unread(&self) -> bool {
        self.fields.len() == 3 && self.closes()
    }

    /// Whether a request was charged for it, or refused because it could not be.
    pub fn is_charged(&self) -> bool {
        self.fields
            .iter()
            .any(|field| field.starts_with("ratelimit:"))
    }

    /// Whether its body begins like this; with nothing, whether it has none.
    pub fn has_body_like(&self, beginning: &str) -> bool {
        self.body.starts_with(beginning) && beginning.is_empty() == self.body.is_empty()
    }

    /// The same in HTTP/1.0.
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

impl Site {
    /// Sends bytes on a connection of their own, says that they are all, and reads every answer
    /// until the gate closes the connection.
    pub async fn answers(&self, bytes: impl AsRef<[u8]>) -> Vec<Whole> {
        let mut client = self.connect().await;
        client.send(bytes).await.unwrap();
        client.finish().await.unwrap();
        read(&client.closed().await.unwrap())
    }
}

/// All answers of a connection that has ended.
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
        // Only the answer to a HEAD has no body, whatever it says.
        let length = match tail.is_empty() || tail.starts_with("HTTP/1.") {
            true => 0,
            false => length,
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

/// A field without what a test cannot foresee.
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
