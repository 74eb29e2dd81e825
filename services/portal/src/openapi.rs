//! `GET /account/v1/openapi.json`: the portal's own API, OpenAPI 3.1, made from the code. It is
//! built once, at start, and needs no session: programs have the API of the gate.

mod account;
mod bodies;
mod described;
mod entrance;

use http::HeaderValue;
use utoipa::ToSchema;
use utoipa::openapi::path::PathItemBuilder;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathsBuilder, ServerBuilder,
};
use water_http::{ProblemBody, Representation};

use crate::keys::{Key, KeyList};
use crate::quota::Quota;
use crate::reader::Reader;
use crate::usage::Usage;

const SESSION: &str = "session";

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
    for described in entrance::all().into_iter().chain(account::all()) {
        let (path, method) = (described.path.clone(), described.method.clone());
        let item = PathItemBuilder::new().operation(method, described.operation());
        paths = paths.path(path, item.build());
    }
    let cookie =
        ApiKeyValue::with_description("__Host-water_session", "Set at sign-in, `/auth/sign-in`.");
    let components = ComponentsBuilder::new()
        .schema_from::<KeyList>()
        .schema_from::<Key>()
        .schema_from::<Quota>()
        .schema_from::<Usage>()
        .schema_from::<Reader<'_>>()
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
    Reader::schemas(&mut schemas);
    for (name, schema) in schemas {
        components = components.schema(name, schema);
    }
    components
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::account::ACCOUNT;
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
    fn every_operation_is_described() {
        let document = parsed();
        let paths = document["paths"].as_object().unwrap();
        let mut operations: Vec<String> = Vec::new();
        for (path, item) in paths {
            let path = path.strip_prefix(ACCOUNT).unwrap_or(path);
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
            "get /account/v1/openapi.json",
            "get /account/v1/session",
            "get /auth/callback",
            "get /auth/sign-in",
            "get /conformite",
            "get /hydrorisk",
            "get /keys",
            "get /quota",
            "get /risque",
            "get /sources",
            "get /stress",
            "get /usage",
            "patch /keys/{name}",
            "post /auth/back-channel",
            "post /auth/sign-out",
            "post /keys",
            "post /keys/{name}/rotation",
        ];
        assert_eq!(operations, expected);
    }

    #[test]
    fn what_needs_no_session_says_so_and_the_rest_needs_one() {
        let document = parsed();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let is_public = operation["security"] == serde_json::json!([{}]);
                assert_eq!(is_public, !path.starts_with(ACCOUNT), "{method} {path}");
            }
        }
    }

    #[test]
    fn every_question_about_an_account_may_say_that_it_is_a_poll() {
        let document = parsed();
        let paths = document["paths"].as_object().unwrap();
        let of_accounts = paths.iter().filter(|(path, _)| path.starts_with(ACCOUNT));
        let mut questions = 0;
        for get in of_accounts.filter_map(|(_, item)| item.get("get")) {
            let parameters = get["parameters"].as_array().unwrap();
            let poll = parameters.iter().find(|has| has["name"] == "X-Poll");
            assert_eq!(
                poll.map(|poll| &poll["in"]),
                Some(&"header".into()),
                "{get}"
            );
            questions += 1;
        }
        assert_eq!(questions, 8);
    }

    #[test]
    fn a_reader_has_the_members_of_the_answer() {
        let reader = &parsed()["components"]["schemas"]["Reader"];
        let text = reader.to_string();
        for member in ["signedIn", "keyPrefix"] {
            assert!(text.contains(member), "{member} in {text}");
        }
        let person = parsed()["components"]["schemas"]["Person"]["properties"].clone();
        for member in ["name", "subject", "expiresAt", "accounts"] {
            assert!(person[member].is_object(), "{member} in {person}");
        }
        let account = parsed()["components"]["schemas"]["Account"].clone();
        for member in ["id", "plan", "access", "role", "maxKeyDays"] {
            assert!(
                account["properties"][member].is_object(),
                "{member} in {account}"
            );
        }
        let required = account["required"].as_array().unwrap();
        assert!(required.contains(&"maxKeyDays".into()), "{account}");
    }
}
