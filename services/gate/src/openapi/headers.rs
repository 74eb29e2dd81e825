//! Headers of answers, each described once.

use serde_json::{Value, json};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ComponentsBuilder, ObjectBuilder, Ref, ResponseBuilder};
use water_domain::Format;

use crate::route::Route;

/// On every answer.
const EVERY: [&str; 2] = ["X-Request-Id", "Vary"];
/// On every answer to a request that was accepted, whatever the service said, and on 429.
const LIMITS: [&str; 5] = [
    "RateLimit-Policy",
    "RateLimit",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
];

/// The headers of a status: only records have links, and only histories a token.
pub(super) fn of(status: u16, route: &Route) -> Vec<&'static str> {
    let (own, limits): (&[&str], &[&str]) = match status {
        200 if route.formats.contains(&Format::NdJson) => (
            &["ETag", "Cache-Control", "Link", "X-Changes-Token"],
            &LIMITS,
        ),
        200 if !route.formats.is_empty() => (&["ETag", "Cache-Control", "Link"], &LIMITS),
        200 | 304 => (&["ETag", "Cache-Control"], &LIMITS),
        401 | 403 => (&["WWW-Authenticate"], &[]),
        429 | 503 => (&["Retry-After"], &LIMITS),
        400 | 404 | 500 => (&[], &LIMITS),
        _ => (&[], &[]),
    };
    [own, limits, &EVERY].concat()
}

/// Name, meaning, example.
fn described() -> [(&'static str, &'static str, Value); 13] {
    [
        (
            "ETag",
            "Names this answer's bytes; strong.",
            json!("\"8c3f0e2ab1d94e7f\""),
        ),
        (
            "Cache-Control",
            "How long the answer may be kept.",
            json!("private, max-age=60, must-revalidate"),
        ),
        (
            "Vary",
            "What the answer depends on.",
            json!("Authorization, Accept, Accept-Encoding"),
        ),
        (
            "Link",
            "RFC 8288: `describedby` is where the sources are; a history has `first`, `prev`, `next` and `last` too, \
             those that exist.",
            json!(
                "</api/v1/hydrorisk?limit=20&offset=20>; rel=\"next\", </api/v1/sources>; rel=\"describedby\""
            ),
        ),
        (
            "X-Changes-Token",
            "On the first page of a walk in CSV or NDJSON: for `changedSince`, later.",
            json!("opaque"),
        ),
        (
            "X-Request-Id",
            "The request's id, in the logs too.",
            json!("5f1c8a90b7d24e63-1a"),
        ),
        (
            "RateLimit-Policy",
            "Both limits: accepted requests `q` in `w` seconds.",
            json!("\"minute\";q=120;w=60, \"day\";q=50000;w=86400"),
        ),
        (
            "RateLimit",
            "What remains `r`, and seconds `t` until the next slot opens.",
            json!("\"minute\";r=119;t=60, \"day\";r=49999;t=3600"),
        ),
        (
            "X-RateLimit-Limit",
            "The limit of the window with fewer remaining.",
            json!(120),
        ),
        ("X-RateLimit-Remaining", "What remains in it.", json!(119)),
        (
            "X-RateLimit-Reset",
            "When its next slot opens, in seconds since the epoch.",
            json!(1_782_864_060),
        ),
        ("Retry-After", "Seconds to wait.", json!(2)),
        (
            "WWW-Authenticate",
            "RFC 6750.",
            json!("Bearer realm=\"water-data\", error=\"invalid_token\""),
        ),
    ]
}

/// Every header as a component.
pub(super) fn components(components: ComponentsBuilder) -> ComponentsBuilder {
    described()
        .into_iter()
        .fold(components, |components, (name, meaning, example)| {
            let kind = if example.is_number() {
                Type::Integer
            } else {
                Type::String
            };
            let header = HeaderBuilder::new()
                .description(Some(meaning))
                .schema(Some(ObjectBuilder::new().schema_type(kind)))
                .example(Some(example));
            components.header(name, header.build())
        })
}

/// Adds references to these headers.
pub(super) fn add(
    response: ResponseBuilder,
    names: impl IntoIterator<Item = &'static str>,
) -> ResponseBuilder {
    names.into_iter().fold(response, |response, name| {
        response.header_ref(name, Ref::new(format!("#/components/headers/{name}")))
    })
}
