//! Headers of answers, each described once.

use serde_json::{Value, json};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
use utoipa::openapi::{ComponentsBuilder, ObjectBuilder, Ref, ResponseBuilder};
use water_domain::Format;
use water_http::Route;

/// Headers of every answer.
const EVERY: [&str; 2] = ["X-Request-Id", "Vary"];
/// Headers of every answer to an accepted request, whatever the service's answer, and of 429.
const LIMITS: [&str; 5] = [
    "RateLimit-Policy",
    "RateLimit",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
];

/// Returns the headers of a status: only records have links, and only histories a token and a total. The description
/// itself has no route, and no limits.
pub(super) fn for_status(status: u16, route: Option<&Route>) -> Vec<&'static str> {
    let formats = route.map(|route| route.formats).unwrap_or_default();
    let (own, limits): (&[&str], &[&str]) = match status {
        200 if formats.contains(&Format::NdJson) => (
            &[
                "ETag",
                "Cache-Control",
                "Accept-Ranges",
                "Link",
                "X-Changes-Token",
                "X-Total-Count",
            ],
            &LIMITS,
        ),
        200 if !formats.is_empty() => {
            (&["ETag", "Cache-Control", "Accept-Ranges", "Link"], &LIMITS)
        }
        200 => (&["ETag", "Cache-Control", "Accept-Ranges"], &LIMITS),
        304 => (&["ETag", "Cache-Control"], &LIMITS),
        401 | 403 => (&["WWW-Authenticate"], &[]),
        429 | 503 => (&["Retry-After"], &LIMITS),
        400 | 404 | 500 => (&[], &LIMITS),
        _ => (&[], &[]),
    };
    let limits: &[&str] = if route.is_some() { limits } else { &[] };
    let language: &[&str] = if status < 400 {
        &[]
    } else {
        &["Content-Language"]
    };
    [own, limits, language, &EVERY].concat()
}

/// Returns name, meaning and example of each header.
fn described() -> [(&'static str, &'static str, Value); 16] {
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
            "Accept-Ranges",
            "`none`: an answer comes whole, whatever `Range` asks for.",
            json!("none"),
        ),
        (
            "Vary",
            "What the answer depends on; a problem on `Accept-Language` too.",
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
            "On each page of a walk in CSV or NDJSON: keep that of the last page, for `changedSince`, later.",
            json!("opaque"),
        ),
        (
            "X-Total-Count",
            "On the first page of a walk through all rows in CSV or NDJSON: their number at that moment.",
            json!(1200),
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
        (
            "Retry-After",
            "Seconds to wait; of a full minute, until one of the slots that open: clients that are refused at the same \
             time are told different ones where they can be. Several clients add a random second.",
            json!(2),
        ),
        (
            "Content-Language",
            "Language of a problem's `title` and `detail`: `en` or `fr`.",
            json!("en"),
        ),
        (
            "WWW-Authenticate",
            "RFC 6750.",
            json!("Bearer realm=\"water-data\", error=\"invalid_token\""),
        ),
    ]
}

/// Adds every header as a component.
pub(super) fn components(components: ComponentsBuilder) -> ComponentsBuilder {
    described()
        .into_iter()
        .fold(components, |components, (name, meaning, example)| {
            let schema = ObjectBuilder::new();
            let schema = if example.is_number() {
                let int64 = SchemaFormat::KnownFormat(KnownFormat::Int64);
                schema.schema_type(Type::Integer).format(Some(int64))
            } else {
                schema.schema_type(Type::String)
            };
            let header = HeaderBuilder::new()
                .description(Some(meaning))
                .schema(Some(schema))
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
