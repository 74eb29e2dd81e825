//! Query parameters and request headers, from the route table and the domain's bounds.

use serde_json::json;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
use utoipa::openapi::{ObjectBuilder, Required};
use water_domain::{Format, Page};
use water_http::Route;

/// Returns all parameters of a route.
pub(super) fn for_route(route: &Route) -> Vec<Parameter> {
    let query = route.parameters.iter().map(|name| query(name, route));
    query.chain(headers()).collect()
}

fn query(name: &str, route: &Route) -> Parameter {
    let integer = |format| {
        let integer = ObjectBuilder::new().schema_type(Type::Integer);
        integer.format(Some(SchemaFormat::KnownFormat(format)))
    };
    let (description, schema, example) = match name {
        "dept" => (
            "Code of a département; without it, all are answered. `1` is read as `01`, `2a` as `2A`.",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .pattern(Some("^([0-9]{1,2}|2[ABab]|9[78][0-9])$")),
            json!("34"),
        ),
        "limit" => (
            "Page size. JSON: 20 if left out; above 100 it is served as 100, and the body shows the size applied. CSV and \
             NDJSON: 1000 if left out; above 5000 it is served as 5000. Fewer rows than `limit` do not mean the end: a page \
             of 900 KiB has fewer. Only an answer without a `Link` with `rel=\"next\"` is the last one.",
            integer(KnownFormat::Int32).minimum(Some(1)),
            json!(Page::MAX_LIMIT),
        ),
        "offset" => (
            // No default in the schema: generated clients send it, with the other forms as well.
            "JSON only: how many items to pass over; 0 if left out. New rows shift the pages of a reader who is under way: a row \
             may be seen twice.",
            integer(KnownFormat::Int64)
                .minimum(Some(0))
                .maximum(Some(Page::MAX_OFFSET as usize)),
            json!(40),
        ),
        "cursor" => (
            "CSV and NDJSON only: where the page begins, from the `Link` with `rel=\"next\"` of the page before. Opaque. \
             Rows that are stored throughout a walk are seen exactly once.",
            ObjectBuilder::new().schema_type(Type::String),
            json!("opaque"),
        ),
        "changedSince" => (
            "CSV and NDJSON only: the `X-Changes-Token` of an earlier walk's last page. Answers the rows that were \
             inserted or changed since, and the ids that were deleted: NDJSON has a line \
             `{\"deleted\":{\"id\":\"…\"}}` for each, CSV a last column `deleted` with `true` beside \
             the id and `false` beside the rows. Opaque, never a time; good for 90 days.",
            ObjectBuilder::new().schema_type(Type::String),
            json!("opaque"),
        ),
        "format" => (
            "The form of the answer, for clients that cannot send `Accept`, over which it wins: `json`, `csv` (`text/csv`, \
             `application/csv`) or, for histories, `ndjson` (`application/x-ndjson`, `application/ndjson`, \
             `application/jsonl`). Another one is 400. Without it the form is that of `Accept`: what matches no form, or \
             JSON as well, is JSON.",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some(forms(route))),
            json!(Format::Csv.name()),
        ),
        other => unreachable!("the route table has an undescribed parameter: {other}"),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .example(Some(example))
        .build()
}

/// Returns the names of a route's formats.
fn forms(route: &Route) -> impl Iterator<Item = &'static str> {
    let all = [Format::Json]
        .into_iter()
        .chain(route.formats.iter().copied());
    all.map(Format::name)
}

/// Returns the request headers. `Accept` is not one of them: OpenAPI has it in the media types of the answers.
pub(super) fn headers() -> impl Iterator<Item = Parameter> {
    let headers = [
        (
            "X-Request-Id",
            "8 to 64 of `A-Za-z0-9._-`; another one is minted if it is not.",
        ),
        (
            "If-None-Match",
            "An `ETag` of an earlier answer: 304 while nothing has changed.",
        ),
        (
            "Accept-Encoding",
            "`gzip` or `br` for bodies of 1 KiB and more.",
        ),
        (
            "Accept-Language",
            "The language of problems: French if it prefers `fr` to `en`, else English.",
        ),
    ];
    headers.into_iter().map(|(name, description)| {
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .build()
    })
}
