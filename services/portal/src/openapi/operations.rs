//! What an account's paths do, in words, and how each is described.

use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{ContentBuilder, Ref, Required, ResponseBuilder};
use water_gate::route::ROUTES;

/// What every path of an account begins with.
pub const ACCOUNT: &str = "/account/v1/accounts/{account}";

/// One operation, in words.
pub struct Described {
    /// The method.
    pub method: HttpMethod,
    /// The whole path.
    pub path: String,
    id: String,
    summary: String,
    /// The schema of the body that it takes.
    takes: Option<&'static str>,
    /// Its answers of success: status, what it means, the schema of the body.
    answers: &'static [(&'static str, &'static str, Option<&'static str>)],
    /// The statuses of its problems, beside those that every operation has.
    problems: &'static [(&'static str, &'static str)],
}

/// All of them.
pub fn all() -> Vec<Described> {
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

/// One as the document has it.
pub fn operation(described: &Described) -> OperationBuilder {
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
