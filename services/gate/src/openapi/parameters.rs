//! Query parameters and request headers, from the route table and the domain's bounds.

use serde_json::json;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, Required};
use water_domain::Page;

use crate::route::Route;

/// All parameters of a route.
pub(super) fn of(route: &Route) -> Vec<Parameter> {
    let query = route.parameters.iter().map(|name| query(name));
    query.chain(headers()).collect()
}

fn query(name: &str) -> Parameter {
    let integer = || ObjectBuilder::new().schema_type(Type::Integer);
    let (description, schema, example) = match name {
        "dept" => (
            "Code of a département; without it, all are answered. `1` is read as `01`, `2a` as `2A`.",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .pattern(Some("^([0-9]{1,2}|2[ABab]|9[78][0-9])$")),
            json!("34"),
        ),
        "limit" => (
            "Page size. Above the maximum of 100 it is clamped; the body shows the size applied.",
            integer()
                .minimum(Some(1))
                .default(Some(json!(Page::DEFAULT_LIMIT))),
            json!(Page::MAX_LIMIT),
        ),
        "offset" => (
            "How many items to pass over. New rows shift the pages of a reader who is under way: a row may be seen twice.",
            integer()
                .minimum(Some(0))
                .maximum(Some(Page::MAX_OFFSET as usize))
                .default(Some(json!(0))),
            json!(40),
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

fn headers() -> impl Iterator<Item = Parameter> {
    [
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
    ]
    .into_iter()
    .map(|(name, description)| {
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .build()
    })
}
