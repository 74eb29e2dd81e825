//! `GET /account/v1/openapi.json`: the portal's own API, OpenAPI 3.1, made from the code. It is built once, at start, and
//! needs no session: programs have the API of the gate.

mod bodies;

use http::HeaderValue;
use utoipa::ToSchema;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItemBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref,
    Required, ResponseBuilder, ServerBuilder,
};
use water_gate::route::ROUTES;
use water_http::{ProblemBody, Representation};

use crate::keys::{Key, KeyList};
use crate::quota::Quota;
use crate::usage::Usage;

const SESSION: &str = "session";
const ACCOUNT: &str = "/account/v1/accounts/{account}";

/// One operation, in words.
struct Described {
    method: HttpMethod,
    path: String,
    id: String,
    summary: String,
    /// The schema of the body that it takes.
    takes: Option<&'static str>,
    /// Its answers of success: status, what it means, the schema of the body.
    answers: &'static [(&'static str, &'static str, Option<&'static str>)],
    /// The statuses of its problems, beside those that every operation has.
    problems: &'static [(&'static str, &'static str)],
}

/// The document as it is served. It changes with releases only.
pub fn representation() -> Representation {
    let json = serde_json::to_vec(&document()).expect("the document is plain data");
    Representation::prepared(json, HeaderValue::from_static("public, max-age=300"))
}

fn document() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Water Data API: the account's settings")
        .version("1.0")
        .description(Some(
            "What the portal's own pages ask for. It is authenticated by the cookie of a browser session; programs use \
             API keys and the API at `/api/v1`. Requests that change something need `Sec-Fetch-Site: same-origin`, or \
             without that the portal's own `Origin`.\n\nAn account that is not the session's, a key of another account \
             and a key that does not exist are all answered 404, alike. Fields are only ever added.",
        ));
    let mut paths = PathsBuilder::new();
    for described in operations() {
        let item =
            PathItemBuilder::new().operation(described.method.clone(), operation(&described));
        paths = paths.path(described.path, item.build());
    }
    let cookie =
        ApiKeyValue::with_description("__Host-water_session", "Set at sign-in, `/auth/sign-in`.");
    let components = ComponentsBuilder::new()
        .schema_from::<KeyList>()
        .schema_from::<Key>()
        .schema_from::<Quota>()
        .schema_from::<Usage>()
        .schema_from::<ProblemBody<'_>>();
    let components = nested(bodies::components(components))
        .security_scheme(SESSION, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    OpenApiBuilder::new()
        .info(info.build())
        .servers(Some([ServerBuilder::new().url("/").build()]))
        .paths(paths.build())
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new::<_, [&str; 0], _>(
            SESSION,
            [],
        )]))
        .build()
}

/// The schemas that the named ones refer to.
fn nested(mut components: ComponentsBuilder) -> ComponentsBuilder {
    let mut schemas = Vec::new();
    KeyList::schemas(&mut schemas);
    Quota::schemas(&mut schemas);
    Usage::schemas(&mut schemas);
    for (name, schema) in schemas {
        components = components.schema(name, schema);
    }
    components
}

fn operations() -> Vec<Described> {
    let of = |method, path: &str, id: &str, summary: &str| Described {
        method,
        path: format!("{ACCOUNT}{path}"),
        id: id.to_owned(),
        summary: summary.to_owned(),
        takes: None,
        answers: &[],
        problems: &[],
    };
    let mut operations = vec![
        Described {
            answers: &[("200", "Newest first", Some("KeyList"))],
            ..of(HttpMethod::Get, "/keys", "listKeys", "The account's keys")
        },
        Described {
            takes: Some("NewKey"),
            answers: &[
                ("201", "The key was made", Some("Key")),
                (
                    "200",
                    "The account has a key with this hash already",
                    Some("Key"),
                ),
            ],
            problems: &[("409", "`too_many_keys`, `key_conflict`")],
            ..of(
                HttpMethod::Post,
                "/keys",
                "createKey",
                "Make a key by the hash of a text that the caller keeps",
            )
        },
        Described {
            takes: Some("Title"),
            answers: &[("200", "The key as it is", Some("Key"))],
            problems: &[("409", "`key_conflict`, `changed_meanwhile`")],
            ..of(
                HttpMethod::Patch,
                "/keys/{name}",
                "renameKey",
                "Give a key another title",
            )
        },
        Described {
            answers: &[(
                "202",
                "The key is `revoking` until every gate knows, then gone",
                None,
            )],
            problems: &[("409", "`changed_meanwhile`")],
            ..of(
                HttpMethod::Delete,
                "/keys/{name}",
                "revokeKey",
                "Revoke a key",
            )
        },
        Described {
            takes: Some("Rotation"),
            answers: &[(
                "200",
                "The key with the new hash, also when it has it already",
                Some("Key"),
            )],
            problems: &[(
                "409",
                "`changed_meanwhile` when `replaces` is not its key id, `overlap_running`, `key_conflict`",
            )],
            ..of(
                HttpMethod::Post,
                "/keys/{name}/rotation",
                "rotateKey",
                "Replace a key's text, beside which the one before works for the overlap",
            )
        },
        Described {
            answers: &[("202", "The text before is refused from now on", None)],
            problems: &[("409", "`key_conflict`, `changed_meanwhile`")],
            ..of(
                HttpMethod::Delete,
                "/keys/{name}/previous",
                "endOverlap",
                "End the overlap of a rotation",
            )
        },
        Described {
            answers: &[("200", "How both limits stand", Some("Quota"))],
            ..of(
                HttpMethod::Get,
                "/quota",
                "getQuota",
                "What is left of the plan; looking costs nothing",
            )
        },
        Described {
            answers: &[(
                "200",
                "Accepted and limited requests by UTC day, counted by the gates, to 15 s",
                Some("Usage"),
            )],
            ..of(
                HttpMethod::Get,
                "/usage",
                "getUsage",
                "The account's requests, day by day",
            )
        },
    ];
    operations.extend(ROUTES.iter().map(|route| {
        let summary = format!(
            "The answer of `GET {}`, with its parameters, forms and entity tags; not charged to the plan",
            route.path
        );
        Described {
            answers: &[
                ("200", "As `/api/v1/openapi.json` describes it", None),
                ("304", "Nothing has changed since that `ETag`", None),
            ],
            problems: &[("503", "`upstream_unavailable`, `dependency_unavailable`")],
            ..of(HttpMethod::Get, &format!("/{}", route.name), &format!("get_{}", route.name), &summary)
        }
    }));
    operations
}

fn operation(described: &Described) -> OperationBuilder {
    let mut operation = OperationBuilder::new()
        .operation_id(Some(&described.id))
        .summary(Some(&described.summary))
        .parameter(path_parameter("account", "An account of the session."));
    if described.path.contains("{name}") {
        operation = operation.parameter(path_parameter(
            "name",
            "A key's name, as the list tells it.",
        ));
    }
    if described.path.ends_with("/usage") {
        let days = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
            .minimum(Some(1))
            .maximum(Some(35));
        operation = operation.parameter(query_parameter(
            "days",
            "How many days; 30 without it.",
            days,
        ));
    }
    if described.path.ends_with("/quota") {
        let plan = ObjectBuilder::new().schema_type(Type::String);
        let text = "A plan of one of the account's keys; the session's without it.";
        operation = operation.parameter(query_parameter("plan", text, plan));
    }
    if let Some(schema) = described.takes {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema)));
        let body = RequestBodyBuilder::new()
            .required(Some(Required::True))
            .content("application/json", content.build());
        operation = operation.request_body(Some(body.build()));
    }
    for (status, text, schema) in described.answers {
        let mut response = ResponseBuilder::new().description(*text);
        if let Some(schema) = schema {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(*schema)));
            response = response.content("application/json", content.build());
        }
        operation = operation.response(*status, response.build());
    }
    let always = [
        (
            "400",
            "`invalid_field`, `invalid_body`, `invalid_parameter`, `key_in_request`",
        ),
        ("401", "`sign_in_required`"),
        ("403", "`cross_origin`, `read_only`, `plan_insufficient`"),
        ("404", "`not_found`"),
        ("429", "`rate_limited`, with `Retry-After`"),
        ("503", "`dependency_unavailable`, with `Retry-After`"),
    ];
    let own = described.problems.iter();
    let own = own.map(|(status, text)| (*status, *text));
    for (status, text) in always.into_iter().chain(own) {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem")));
        let response = ResponseBuilder::new()
            .description(text)
            .content("application/problem+json", content.build());
        operation = operation.response(status, response.build());
    }
    operation
}

fn path_parameter(name: &str, text: &str) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(text))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
}

fn query_parameter(name: &str, text: &str, schema: ObjectBuilder) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(text))
        .schema(Some(schema))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::keys::{CREATE, RENAME, ROTATE};

    fn parsed() -> Value {
        serde_json::to_value(document()).unwrap()
    }

    /// Every `$ref` in a document.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                let target = members.get("$ref").and_then(Value::as_str);
                found.extend(target.map(str::to_owned));
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn it_is_openapi_3_1_and_every_reference_leads_somewhere() {
        let document = parsed();
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn a_body_has_exactly_the_members_that_are_read() {
        let document = parsed();
        for (schema, members) in [("NewKey", CREATE), ("Title", RENAME), ("Rotation", ROTATE)] {
            let described = &document["components"]["schemas"][schema];
            let properties = described["properties"].as_object().unwrap().keys();
            let mut properties: Vec<&str> = properties.map(String::as_str).collect();
            let mut members = members.to_vec();
            properties.sort_unstable();
            members.sort_unstable();
            assert_eq!(properties, members, "{schema}");
            assert_eq!(described["additionalProperties"], false, "{schema}");
        }
    }

    #[test]
    fn every_operation_of_an_account_is_described() {
        let document = parsed();
        let paths = document["paths"].as_object().unwrap();
        let mut operations: Vec<String> = Vec::new();
        for (path, item) in paths {
            let path = path.strip_prefix(ACCOUNT).unwrap();
            operations.extend(
                item.as_object()
                    .unwrap()
                    .keys()
                    .map(|method| format!("{method} {path}")),
            );
        }
        operations.sort();
        let expected = [
            "delete /keys/{name}",
            "delete /keys/{name}/previous",
            "get /conformite",
            "get /hydrorisk",
            "get /keys",
            "get /quota",
            "get /risque",
            "get /sources",
            "get /stress",
            "get /usage",
            "patch /keys/{name}",
            "post /keys",
            "post /keys/{name}/rotation",
        ];
        assert_eq!(operations, expected);
    }
}
