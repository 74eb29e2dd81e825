//! One operation in words, and as the document has it.

use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::ObjectBuilder;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, Ref, Required, ResponseBuilder};

/// A media type, and the name of the schema of what has it.
type Content = (&'static str, &'static str);
/// A status, and what it means.
type Meaning = (&'static str, &'static str);

/// One operation, in words.
pub struct Described {
    /// The method.
    pub method: HttpMethod,
    /// The whole path.
    pub path: String,
    /// Its name for programs.
    pub id: String,
    /// What it does.
    pub summary: String,
    /// Whether it needs no session.
    pub public: bool,
    /// What stands in path and query.
    pub parameters: Vec<Parameter>,
    /// The body that it takes.
    pub takes: Option<Content>,
    /// Its answers that are no problems: status, what it means, the body.
    pub answers: &'static [(&'static str, &'static str, Option<Content>)],
    /// The problems that it shares with its neighbours.
    pub always: &'static [Meaning],
    /// The problems of its own.
    pub problems: &'static [Meaning],
}

/// One parameter.
pub struct Parameter {
    place: ParameterIn,
    name: &'static str,
    meaning: &'static str,
    schema: ObjectBuilder,
}

impl Parameter {
    /// A part of the path.
    pub fn path(name: &'static str, meaning: &'static str, schema: ObjectBuilder) -> Self {
        let place = ParameterIn::Path;
        Self {
            place,
            name,
            meaning,
            schema,
        }
    }

    /// A member of the query, which may be left out.
    pub fn query(name: &'static str, meaning: &'static str, schema: ObjectBuilder) -> Self {
        let place = ParameterIn::Query;
        Self {
            place,
            name,
            meaning,
            schema,
        }
    }

    /// A header field, which may be left out.
    pub fn header(name: &'static str, meaning: &'static str, schema: ObjectBuilder) -> Self {
        let place = ParameterIn::Header;
        Self {
            place,
            name,
            meaning,
            schema,
        }
    }

    fn build(self) -> ParameterBuilder {
        let required = match self.place {
            ParameterIn::Path => Required::True,
            _ => Required::False,
        };
        ParameterBuilder::new()
            .name(self.name)
            .parameter_in(self.place)
            .required(required)
            .description(Some(self.meaning))
            .schema(Some(self.schema))
    }
}

impl Described {
    /// An operation that needs a session, without parameters, body and answers yet.
    pub fn new(method: HttpMethod, path: &str, id: &str, summary: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            id: id.to_owned(),
            summary: summary.to_owned(),
            public: false,
            parameters: Vec::new(),
            takes: None,
            answers: &[],
            always: &[],
            problems: &[],
        }
    }

    /// As the document has it.
    pub fn operation(self) -> OperationBuilder {
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .summary(Some(self.summary));
        if self.public {
            operation = operation.security(SecurityRequirement::default());
        }
        for parameter in self.parameters {
            operation = operation.parameter(parameter.build());
        }
        if let Some((kind, schema)) = self.takes {
            let body = RequestBodyBuilder::new()
                .required(Some(Required::True))
                .content(kind, content(schema).build());
            operation = operation.request_body(Some(body.build()));
        }
        for (status, text, body) in self.answers {
            let mut response = ResponseBuilder::new().description(*text);
            if let Some((kind, schema)) = body {
                response = response.content(*kind, content(schema).build());
            }
            operation = operation.response(*status, response.build());
        }
        for (status, text) in self.always.iter().chain(self.problems) {
            let response = ResponseBuilder::new()
                .description(*text)
                .content("application/problem+json", content("Problem").build());
            operation = operation.response(*status, response.build());
        }
        operation
    }
}

fn content(schema: &str) -> ContentBuilder {
    ContentBuilder::new().schema(Some(Ref::from_schema_name(schema)))
}
