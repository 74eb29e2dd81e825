//! `GET /api/v1/openapi.json`: the API's description, OpenAPI 3.1, made from the code.
//!
//! Paths and parameters come from the route table, examples are domain values and the gate's own refusals. It is built
//! once, at start, and needs no key.

mod answers;
mod examples;
mod headers;
mod parameters;
mod problems;
mod records;

use bytes::Bytes;
use http::{HeaderValue, Response};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathItem, PathItemBuilder};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Deprecated, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder,
    PathsBuilder, ServerBuilder,
};
use water_http::representation::Conditions;
use water_http::route::{ROUTES, Route};
use water_http::{Representation, RequestHead};

use crate::route::OPENAPI_PATH;

/// Name of the only security scheme.
const API_KEY: &str = "apiKey";

/// Returns the document as it is served. It changes with releases only.
pub fn representation() -> Representation {
    let json = serde_json::to_vec(&document()).expect("the document is plain data");
    let cache = HeaderValue::from_static("public, max-age=300");
    Representation::prepared(json, cache).for_every_key()
}

/// Answers a request for the description.
pub fn answer(request: &RequestHead, description: &Representation) -> Option<Response<Bytes>> {
    let asked = request.only_reads() && request.uri.path() == OPENAPI_PATH;
    asked.then(|| description.answer(&Conditions::from_headers(&request.headers)))
}

fn document() -> OpenApi {
    let licence = LicenseBuilder::new()
        .name("The licence of each dataset, which its source names")
        .url(Some("/api/v1/sources"));
    let info = InfoBuilder::new()
        .title("Water Data API")
        .version("1.0")
        .description(Some(
            "Read-only water data: water stress and water risk per French département, and the \
             calling account's history of risk analyses and compliance audits.\n\n\
             **Sources and licences.** `GET /api/v1/sources` has of each dataset its source, \
             licence and date, and whether it is synthetic; every answer with records links to it. \
             Name them where you publish the data. The alert levels of the national register \
             VigiEau are under Licence Ouverte 2.0 (Etalab), which asks for the source and the \
             date of the last update.\n\n\
             **Whether something has changed** is what the `ETag` tells. `updatedAt` is the \
             newest as-of date that changed the content, never the time of a load. **How fresh** data is, \
             `asOf` in `/api/v1/sources` says, and of an alert level `levelAsOf`. For a second \
             after a load, a request may be answered the state before it though an earlier request \
             was answered the new one: several pods serve, and each looks for loads every second.\n\n\
             **Codes of départements** are text (`01`, `2A`) in every form. Say so to a reader that guesses \
             types: in pandas, `read_csv` and, for NDJSON, `read_json` with `lines=True` take `dtype={\"dept\": str, \"deptCode\": str}`.\n\n\
             **Problems** have `title` and `detail` in French if `Accept-Language` prefers it to English; \
             `code` is the same in both languages. Nothing else depends on `Accept-Language`.",
        ))
        .license(Some(licence.build()))
        .build();
    let mut paths = PathsBuilder::new();
    for route in ROUTES {
        paths = paths.path(route.path, reads(|method| operation(route, method)));
    }
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([ServerBuilder::new().url("/").build()]))
        .paths(paths.path(OPENAPI_PATH, reads(own_operation)))
        .components(Some(components().build()))
        .security(Some([SecurityRequirement::new::<_, [&str; 0], _>(
            API_KEY,
            [],
        )]))
        .build()
}

/// Returns both operations of a path: HEAD is answered as GET, without a body.
fn reads(operation: impl Fn(&str) -> OperationBuilder) -> PathItem {
    PathItemBuilder::new()
        .operation(HttpMethod::Get, operation("get"))
        .operation(HttpMethod::Head, operation("head"))
        .build()
}

/// Returns an operation of the description itself, which needs no key.
fn own_operation(method: &str) -> OperationBuilder {
    OperationBuilder::new()
        .operation_id(Some(format!("{method}Openapi")))
        .summary(Some("This description"))
        .parameters(Some(parameters::headers()))
        .responses(answers::for_description(method == "head"))
        .securities(Some([]))
}

fn operation(route: &Route, method: &str) -> OperationBuilder {
    let (word, summary) = match route.name {
        "stress" => (
            "Stress",
            "Water stress index and alert level per département",
        ),
        "risque" => ("Risque", "Water risk scores and rating per département"),
        "hydrorisk" => ("Hydrorisk", "The calling account's risk analyses"),
        "sources" => (
            "Sources",
            "Where each dataset comes from, and under which licence",
        ),
        _ => ("Conformite", "The calling account's compliance audits"),
    };
    OperationBuilder::new()
        .operation_id(Some(format!("{method}{word}")))
        .summary(Some(summary))
        .deprecated(route.deprecation.map(|_| Deprecated::True))
        .parameters(Some(parameters::for_route(route)))
        .responses(answers::for_route(route, method == "head"))
}

fn components() -> ComponentsBuilder {
    let key = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("API key")
        .description(Some("An API key of an account on a plan with API access."))
        .build();
    headers::components(answers::components(ComponentsBuilder::new()))
        .security_scheme(API_KEY, SecurityScheme::Http(key))
}

#[cfg(test)]
mod tests;
