//! The description against the code that it describes.

use serde_json::Value;

use super::*;

fn parsed() -> Value {
    serde_json::to_value(document()).unwrap()
}

/// The properties of a schema, in their order.
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

#[test]
fn the_levels_are_those_of_the_domain() {
    let document = parsed();
    let levels = document["components"]["schemas"]["Level"]["enum"]
        .as_array()
        .unwrap();
    let levels: Vec<_> = levels.iter().map(|level| level.as_str().unwrap()).collect();
    assert_eq!(
        levels,
        water_domain::Level::ALL.map(water_domain::Level::as_str)
    );
}

#[test]
fn every_reference_leads_somewhere() {
    fn check(document: &Value, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                fields.values().for_each(|value| check(document, value));
            }
            Value::Array(items) => items.iter().for_each(|item| check(document, item)),
            _ => {}
        }
    }
    let document = parsed();
    check(&document, &document);
}

#[test]
fn every_route_describes_its_parameters_problems_and_headers() {
    let document = parsed();
    for route in &ROUTES {
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
    for route in &ROUTES {
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
    assert_eq!(
        document["paths"][OPENAPI_PATH]["get"]["security"],
        serde_json::json!([])
    );
}

#[test]
fn every_form_of_a_route_is_described_with_what_it_takes() {
    let document = parsed();
    for route in &ROUTES {
        let operation = &document["paths"][route.path]["get"];
        let content = operation["responses"]["200"]["content"]
            .as_object()
            .unwrap();
        assert_eq!(content.len(), 1 + route.formats.len(), "{}", route.path);
        let mut parameters = operation["parameters"].as_array().unwrap().iter();
        let negotiates = parameters.any(|parameter| parameter["name"] == "Accept");
        assert_eq!(negotiates, !route.formats.is_empty(), "{}", route.path);
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
        "`ETag`",
        "each looks for loads every second",
    ] {
        assert!(said.contains(word), "{word}");
    }
    let level = &document["components"]["schemas"]["StressRecord"]["properties"]["level"];
    assert!(
        level.to_string().contains("derived from the index"),
        "{level}"
    );
}
