//! What an account's paths do, in words.

use utoipa::openapi::path::HttpMethod;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use water_gate::route::ROUTES;

use super::described::{Described, Parameter};

/// What every path of an account begins with.
pub const ACCOUNT: &str = "/account/v1/accounts/{account}";

/// The problems that every operation has.
const ALWAYS: [(&str, &str); 6] = [
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

/// All of them.
pub fn all() -> Vec<Described> {
    let of = |method, path: &str, id: &str, summary: &str| {
        let mut described = Described::new(method, &format!("{ACCOUNT}{path}"), id, summary);
        described.parameters = parameters(path);
        if described.method == HttpMethod::Get {
            described.parameters.push(poll());
        }
        described.always = &ALWAYS;
        described
    };
    let mut operations = vec![
        Described {
            answers: &[("200", "Newest first", Some(("application/json", "KeyList")))],
            ..of(HttpMethod::Get, "/keys", "listKeys", "The account's keys")
        },
        Described {
            takes: Some(("application/json", "NewKey")),
            answers: &[
                ("201", "The key was made", Some(("application/json", "Key"))),
                (
                    "200",
                    "The account has a key with this hash already",
                    Some(("application/json", "Key")),
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
            takes: Some(("application/json", "Title")),
            answers: &[("200", "The key as it is", Some(("application/json", "Key")))],
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
            takes: Some(("application/json", "Rotation")),
            answers: &[(
                "200",
                "The key with the new hash, also when it has it already",
                Some(("application/json", "Key")),
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
            answers: &[(
                "200",
                "How both limits stand",
                Some(("application/json", "Quota")),
            )],
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
                Some(("application/json", "Usage")),
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

/// The field that tells a page's own question from one that its reader asks.
fn poll() -> Parameter {
    let meaning = "Whatever its value: a page asks again by itself, which does not put off the end of an idle session. \
                   Without it every question but that for the quota is a use of the session.";
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .examples(["1"]);
    Parameter::header("X-Poll", meaning, text)
}

/// The parameters of an account's path, which is given without the account.
fn parameters(path: &str) -> Vec<Parameter> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let mut parameters = vec![Parameter::path(
        "account",
        "An account of the session.",
        text(),
    )];
    if path.contains("{name}") {
        let name = Parameter::path("name", "A key's name, as the list tells it.", text());
        parameters.push(name);
    }
    match path {
        "/usage" => {
            let days = ObjectBuilder::new()
                .schema_type(Type::Integer)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
                .minimum(Some(1))
                .maximum(Some(35));
            parameters.push(Parameter::query(
                "days",
                "How many days; 30 without it.",
                days,
            ));
        }
        "/quota" => {
            let meaning = "A plan of one of the account's keys; the session's without it.";
            parameters.push(Parameter::query("plan", meaning, text()));
        }
        _ => {}
    }
    parameters
}
