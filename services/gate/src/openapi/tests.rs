//! The description, compared with the code that it describes.

use serde_json::{Map, Value, json};
use water_domain::Format;
use water_http::route::ServiceName;

use super::*;

fn parsed() -> Value {
    serde_json::to_value(document()).unwrap()
}

/// Returns the properties of a schema, in their order.
fn properties(schema: &str) -> Vec<String> {
    let document = parsed();
    let properties = &document["components"]["schemas"][schema]["properties"];
    properties.as_object().unwrap().keys().cloned().collect()
}

fn fields(record: Value) -> Vec<String> {
    let mut fields: Vec<_> = record.as_object().unwrap().keys().cloned().collect();
    fields.sort();
    fields
}

#[test]
fn a_schema_has_exactly_the_fields_of_its_record() {
    let records = [
        (
            "StressRecord",
            serde_json::to_value(examples::stress_record()),
        ),
        ("RiskRecord", serde_json::to_value(examples::risk_record())),
        (
            "RiskAnalysis",
            serde_json::to_value(examples::risk_analysis()),
        ),
        (
            "ComplianceAudit",
            serde_json::to_value(examples::compliance_audit()),
        ),
        ("Source", serde_json::to_value(examples::source())),
    ];
    for (schema, record) in records {
        let mut described = properties(schema);
        described.sort();
        assert_eq!(described, fields(record.unwrap()), "{schema}");
    }
}

/// Checks each object within a value.
fn each(value: &Value, check: &mut dyn FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            check(fields);
            fields.values().for_each(|value| each(value, check));
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, check)),
        _ => {}
    }
}

#[test]
fn enumerations_of_answers_are_open_and_name_their_values() {
    let document = parsed();
    let schemas = &document["components"]["schemas"];
    each(schemas, &mut |schema| {
        assert!(!schema.contains_key("enum"), "{schema:?}");
    });
    for (schema, first, last) in [("Level", "normal", "crise"), ("RiskRating", "A", "E")] {
        let values = schemas[schema]["x-extensible-enum"].as_array().unwrap();
        assert_eq!((&values[0], &values[4]), (&json!(first), &json!(last)));
        let description = schemas[schema]["description"].as_str().unwrap();
        assert!(description.contains("as the next higher one that you know"));
    }
}

#[test]
fn every_integer_says_how_large_it_may_be() {
    let document = parsed();
    each(&document, &mut |schema| {
        let sized = schema.contains_key("format");
        assert!(
            schema.get("type") != Some(&json!("integer")) || sized,
            "{schema:?}"
        );
    });
    let parameters = document["paths"]["/api/v1/hydrorisk"]["get"]["parameters"].as_array();
    let mut parameters = parameters.unwrap().iter();
    let offset = parameters.find(|parameter| parameter["name"] == "offset");
    assert_eq!(offset.unwrap()["schema"]["format"], "int64");
}

#[test]
fn a_line_of_ndjson_has_the_fields_of_a_record_or_of_a_deletion() {
    let document = parsed();
    for route in ROUTES
        .iter()
        .filter(|route| route.service == ServiceName::History)
    {
        let content = &document["paths"][route.path]["get"]["responses"]["200"]["content"];
        let Some(content) = content.get("application/x-ndjson") else {
            assert!(!route.formats.contains(&Format::NdJson));
            continue;
        };
        let said = content["schema"]["description"].as_str().unwrap();
        assert!(
            said.contains("lines=True, dtype={\"deptCode\": str}"),
            "{said}"
        );
        let kinds = content["schema"]["contentSchema"]["oneOf"].as_array();
        let kinds = kinds.unwrap().iter().map(|kind| {
            let reference = kind["$ref"].as_str().unwrap();
            let mut described = properties(reference.rsplit('/').next().unwrap());
            described.sort();
            described
        });
        let page = content["examples"]["pageOfChanges"]["value"]
            .as_str()
            .unwrap();
        let lines = page
            .lines()
            .map(|line| fields(serde_json::from_str(line).unwrap()));
        assert!(lines.eq(kinds), "{page}");
    }
}

#[test]
fn csv_names_the_column_to_be_read_as_text() {
    let document = parsed();
    for (path, column) in [
        ("/api/v1/stress", "dept"),
        ("/api/v1/risque", "dept"),
        ("/api/v1/hydrorisk", "deptCode"),
        ("/api/v1/conformite", "deptCode"),
    ] {
        let csv = &document["paths"][path]["get"]["responses"]["200"]["content"]["text/csv"];
        let said = csv["schema"]["description"].as_str().unwrap();
        let example = format!("dtype={{\"{column}\": str}}");
        assert!(said.contains(&example), "{said}");
        let page = csv["examples"]["page"]["value"].as_str().unwrap();
        let header = page.lines().next().unwrap();
        assert!(header.split(',').any(|name| name == column), "{header}");
    }
}

#[test]
fn a_page_of_fewer_rows_than_its_limit_is_not_said_to_be_the_last() {
    let document = parsed();
    for path in ["/api/v1/hydrorisk", "/api/v1/conformite"] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array();
        let mut parameters = parameters.unwrap().iter();
        let limit = parameters.find(|parameter| parameter["name"] == "limit");
        let said = limit.unwrap()["description"].as_str().unwrap();
        assert!(
            said.contains("Fewer rows than `limit` do not mean the end")
                && said.contains("Only an answer without a `Link` with `rel=\"next\"` is the last"),
            "{said}"
        );
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = parsed();
    each(&document, &mut |fields| {
        if let Some(Value::String(reference)) = fields.get("$ref") {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    });
}

#[test]
fn every_route_describes_its_parameters_problems_and_headers() {
    let document = parsed();
    let paths = document["paths"].as_object().unwrap();
    // The description's own path is one more.
    assert!(paths.len() == ROUTES.len() + 1 && paths.contains_key(OPENAPI_PATH));
    for route in ROUTES {
        let operation = &document["paths"][route.path]["get"];
        let parameters = operation["parameters"].as_array().unwrap();
        let named = |name: &&str| {
            parameters
                .iter()
                .any(|parameter| parameter["name"] == *name)
        };
        assert!(route.parameters.iter().all(named), "{}", route.path);
        for status in [
            "200", "304", "400", "401", "403", "404", "429", "500", "503",
        ] {
            assert!(
                operation["responses"][status].is_object(),
                "{} {status}",
                route.path
            );
        }
        let headers = &operation["responses"]["200"]["headers"];
        assert!(headers["RateLimit"].is_object() && headers["X-Request-Id"].is_object());
    }
}

#[test]
fn every_answer_with_a_body_has_an_example() {
    let document = parsed();
    for route in ROUTES {
        let responses = document["paths"][route.path]["get"]["responses"]
            .as_object()
            .unwrap();
        for (status, response) in responses {
            let kinds = response["content"].as_object().into_iter().flatten();
            for (kind, content) in kinds {
                let examples = content["examples"]
                    .as_object()
                    .map_or(0, serde_json::Map::len);
                assert!(examples > 0, "{} {status} {kind}", route.path);
            }
        }
    }
}

#[test]
fn the_key_is_asked_for_everywhere_but_here() {
    let document = parsed();
    assert_eq!(document["security"][0]["apiKey"], serde_json::json!([]));
    assert_eq!(
        document["components"]["securitySchemes"]["apiKey"]["scheme"],
        "bearer"
    );
    for method in ["get", "head"] {
        let own = &document["paths"][OPENAPI_PATH][method]["security"];
        assert_eq!(own, &serde_json::json!([]), "{method}");
    }
}

#[test]
fn the_description_has_the_answers_of_other_paths_but_those_of_keys_and_limits() {
    let document = parsed();
    for method in ["get", "head"] {
        let operation = &document["paths"][OPENAPI_PATH][method];
        let answers = operation["responses"].as_object().unwrap();
        let mut statuses: Vec<_> = answers.keys().map(String::as_str).collect();
        statuses.sort();
        let expected = ["200", "304", "400", "414", "417", "431", "500"];
        assert_eq!(statuses, expected, "{method}");
        for (status, answer) in answers {
            let headers = answer["headers"].as_object().unwrap();
            let has_body = method == "get" && status != "304";
            assert_eq!(
                answer.get("content").is_some(),
                has_body,
                "{method} {status}"
            );
            assert!(headers.contains_key("Vary") && !headers.contains_key("RateLimit"));
        }
        let headers = &answers["200"]["headers"];
        for name in ["ETag", "Cache-Control", "Accept-Ranges", "X-Request-Id"] {
            assert!(headers[name].is_object(), "{method} {name}");
        }
        let refused = answers["400"]["description"].as_str().unwrap();
        assert!(refused.contains("`invalid_parameter`"), "{refused}");
        let parameters = operation["parameters"].as_array().unwrap();
        assert!(
            parameters
                .iter()
                .all(|parameter| parameter["in"] == "header")
        );
    }
}

#[test]
fn every_form_of_a_route_is_described_with_what_it_takes() {
    let document = parsed();
    for route in ROUTES {
        let operation = &document["paths"][route.path]["get"];
        let content = operation["responses"]["200"]["content"]
            .as_object()
            .unwrap();
        assert_eq!(content.len(), 1 + route.formats.len(), "{}", route.path);
        let parameters = operation["parameters"].as_array().unwrap();
        let described = |name| {
            parameters
                .iter()
                .find(|parameter| parameter["name"] == name)
        };
        let forms = described("format").map(|format| format["schema"]["enum"].clone());
        let forms = forms.and_then(|forms| Some(forms.as_array()?.len()));
        let expected = (!route.formats.is_empty()).then_some(1 + route.formats.len());
        assert_eq!(forms, expected, "{}", route.path);
        // OpenAPI ignores parameters of these names.
        for name in ["Accept", "Content-Type", "Authorization"] {
            assert_eq!(described(name), None, "{}", route.path);
        }
    }
}

#[test]
fn the_description_names_the_licence_and_the_rule_of_dates() {
    let document = parsed();
    let said = document["info"]["description"].as_str().unwrap();
    for word in [
        "Licence Ouverte 2.0",
        "VigiEau",
        "/api/v1/sources",
        "`updatedAt`",
        "`asOf` in `/api/v1/sources` says, and of an alert level `levelAsOf`",
        "`ETag`",
        "each looks for loads every second",
    ] {
        assert!(said.contains(word), "{word}");
    }
    assert_eq!(document["info"]["license"]["url"], "/api/v1/sources");
    let source = &document["components"]["schemas"]["LevelSource"]["description"];
    assert!(
        source.to_string().contains("the stress index itself"),
        "{source}"
    );
}
