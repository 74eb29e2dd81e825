//! Answers of a route, by status: bodies with examples, and headers.

use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::response::{Responses, ResponsesBuilder};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{ComponentsBuilder, ContentBuilder, Ref, RefOr, ResponseBuilder, Schema};
use water_domain::Format;
use water_http::{ProblemBody, Route};

use super::{examples, headers, problems, records};

/// Adds all schemas to which answers refer.
pub(super) fn components(components: ComponentsBuilder) -> ComponentsBuilder {
    components
        .schema_from::<records::StressList>()
        .schema_from::<records::StressRecord>()
        .schema_from::<records::Level>()
        .schema_from::<records::LevelSource>()
        .schema_from::<records::RiskList>()
        .schema_from::<records::RiskRecord>()
        .schema_from::<records::RiskRating>()
        .schema_from::<records::RiskAnalysisPage>()
        .schema_from::<records::RiskAnalysis>()
        .schema_from::<records::ComplianceAuditPage>()
        .schema_from::<records::ComplianceAudit>()
        .schema_from::<records::Deletion>()
        .schema_from::<records::DeletedRecord>()
        .schema_from::<records::SourceList>()
        .schema_from::<records::Source>()
        .schema_from::<records::Timestamp>()
        .schema_from::<ProblemBody<'_>>()
}

/// Returns all answers of a route; those to HEAD have no body.
pub(super) fn for_route(route: &Route, head: bool) -> Responses {
    let problems = problems::of_route(route);
    all(Some(route), success(route, head), problems, head)
}

/// Returns all answers with the description itself.
pub(super) fn for_description(head: bool) -> Responses {
    let mut success = response(None, 200, "This description");
    if !head {
        let body = content(utoipa::openapi::Object::new(), []);
        success = success.content("application/json", body);
    }
    all(None, success, problems::of_description(), head)
}

fn all(
    route: Option<&Route>,
    success: ResponseBuilder,
    problems: problems::ByStatus,
    head: bool,
) -> Responses {
    let mut responses = ResponsesBuilder::new().response("200", success).response(
        "304",
        response(route, 304, "Nothing has changed since that `ETag`"),
    );
    for (status, problems) in problems {
        let codes: Vec<_> = problems.iter().map(|problem| problem.code).collect();
        let description = format!("`{}`", codes.join("`, `"));
        let mut response = response(route, status.as_u16(), &description);
        if !head {
            let examples = problems
                .into_iter()
                .map(|problem| (problem.code, problem.body));
            let body = content(Ref::from_schema_name("Problem"), examples);
            response = response.content("application/problem+json", body);
        }
        responses = responses.response(status.as_str(), response);
    }
    responses.build()
}

fn response(route: Option<&Route>, status: u16, description: &str) -> ResponseBuilder {
    let response = ResponseBuilder::new().description(description);
    headers::add(response, headers::for_status(status, route))
}

fn success(route: &Route, head: bool) -> ResponseBuilder {
    let (description, schema, examples) = body(route);
    let response = response(Some(route), 200, description);
    if head {
        return response;
    }
    let response = response.content("application/json", content(schema, examples));
    route.formats.iter().fold(response, |response, &format| {
        let (kind, examples) = examples::text(route, format);
        response.content(kind, content(text(route, format), examples))
    })
}

/// Returns the schema of a body in another format than JSON.
fn text(route: &Route, format: Format) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    if format != Format::NdJson {
        let columns = typed(route, "read_csv(…");
        return text.description(Some(format!("RFC 4180, with a header line. {columns}")));
    }
    let record = if route.name == "hydrorisk" {
        named::<records::RiskAnalysis>()
    } else {
        named::<records::ComplianceAudit>()
    };
    let line = OneOfBuilder::new().item(record);
    let description = format!(
        "An object a line, ended by LF. `contentSchema` is that of a line; deletions come with `changedSince` only. {}",
        typed(route, "read_json(…, lines=True")
    );
    text.description(Some(description))
        .content_media_type(format.content_type())
        .content_schema(Some(line.item(named::<records::Deletion>())))
}

/// Says how a reader that guesses types, as pandas' does, keeps codes of départements as they are.
fn typed(route: &Route, reader: &str) -> String {
    let code = match route.name {
        "stress" | "risque" => "dept",
        _ => "deptCode",
    };
    format!(
        "`{code}` is text (`01`, `2A`): say so to a reader that guesses types, as in pandas with \
         `{reader}, dtype={{\"{code}\": str}})`."
    )
}

type Body = (&'static str, RefOr<Schema>, Vec<(&'static str, Value)>);

fn body(route: &Route) -> Body {
    match route.name {
        "stress" => {
            let record = examples::stress_record();
            let all = examples::list(&record);
            let one = examples::merged(&all, &record);
            (
                "Stress records",
                named::<records::StressList>(),
                vec![("all", all), ("dept", one)],
            )
        }
        "risque" => {
            let record = examples::risk_record();
            let examples = vec![("all", examples::list(&record)), ("dept", json!(record))];
            let either = OneOfBuilder::new()
                .item(named::<records::RiskList>())
                .item(named::<records::RiskRecord>());
            (
                "All risk records, or with `dept` the one",
                either.into(),
                examples,
            )
        }
        "hydrorisk" => {
            let page = examples::page(&examples::risk_analysis());
            (
                "A page, the newest first",
                named::<records::RiskAnalysisPage>(),
                vec![("page", page)],
            )
        }
        "sources" => (
            "Every loaded dataset",
            named::<records::SourceList>(),
            vec![("sources", json!({ "data": [examples::source()] }))],
        ),
        _ => {
            let page = examples::page(&examples::compliance_audit());
            let schema = named::<records::ComplianceAuditPage>();
            ("A page, the newest first", schema, vec![("page", page)])
        }
    }
}

fn named<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

fn content(
    schema: impl Into<RefOr<Schema>>,
    examples: impl IntoIterator<Item = (&'static str, Value)>,
) -> ContentBuilder {
    use utoipa::openapi::example::ExampleBuilder;
    let example = |value| ExampleBuilder::new().value(Some(value)).build();
    let examples = examples
        .into_iter()
        .map(|(name, value)| (name, example(value)));
    ContentBuilder::new()
        .schema(Some(schema))
        .examples_from_iter(examples)
}
