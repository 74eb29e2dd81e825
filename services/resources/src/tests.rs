//! Rules of the whole schema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaPropsOrBool;

use super::*;

#[test]
fn every_string_list_and_map_is_bounded() {
    for definition in definitions() {
        let schema = definition.spec.versions[0].schema.clone().unwrap();
        let mut unbounded = Vec::new();
        let properties = schema.open_api_v3_schema.unwrap().properties.unwrap();
        for (name, property) in properties {
            collect_unbounded(&name, &property, &mut unbounded);
        }
        assert_eq!(
            unbounded,
            Vec::<String>::new(),
            "{}",
            definition.spec.names.kind
        );
    }
}

fn collect_unbounded(path: &str, schema: &JSONSchemaProps, unbounded: &mut Vec<String>) {
    let bounded = match schema.type_.as_deref() {
        Some("string") => schema.max_length.is_some() || schema.enum_.is_some(),
        Some("array") => schema.max_items.is_some(),
        Some("object") => schema.additional_properties.is_none() || schema.max_properties.is_some(),
        Some("integer") => {
            path.starts_with("status") || schema.minimum.is_some() && schema.maximum.is_some()
        }
        _ => true,
    };
    if !bounded {
        unbounded.push(path.to_owned());
    }
    for (name, property) in schema.properties.iter().flatten() {
        collect_unbounded(&format!("{path}.{name}"), property, unbounded);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        collect_unbounded(&format!("{path}[]"), items, unbounded);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        collect_unbounded(&format!("{path}{{}}"), values, unbounded);
    }
}

#[test]
fn an_object_that_nobody_has_looked_at_has_observed_no_generation() {
    for definition in definitions() {
        let schema = definition.spec.versions[0].schema.clone().unwrap();
        let properties = schema.open_api_v3_schema.unwrap().properties.unwrap();
        let default = properties["status"].default.clone().unwrap().0;
        assert_eq!(default, json!({ "observedGeneration": -1 }));
        let observed = &properties["status"].properties.as_ref().unwrap()["observedGeneration"];
        assert_eq!(observed.minimum, Some(-1.0));
    }
}
