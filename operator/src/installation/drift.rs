//! Comparison of a live object with what was made: what is ours counts, what others added does not. Nor does it count
//! in which of several ways the API server writes one value.

use serde_json::Value;

/// Whether `live` has everything that is wanted. Items of a list are found by their name where they have one, so that
/// what others injected next to ours does not count.
pub fn is_as(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(key, value)| {
            let live = live.get(key).unwrap_or(&Value::Null);
            is_as(value, live)
                || (["requests", "limits"].contains(&key.as_str()) && are_equal(value, live))
        }),
        (Value::Array(wanted), Value::Array(live)) if is_named(wanted) => {
            wanted.iter().all(|item| {
                let found = live.iter().find(|live| live["name"] == item["name"]);
                found.is_some_and(|found| is_as(item, found))
            })
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted
                    .iter()
                    .zip(live)
                    .all(|(wanted, live)| is_as(wanted, live))
        }
        // The API server keeps nothing that is empty, and no zero where that is the same as nothing.
        (Value::String(wanted), Value::Null) => wanted.is_empty(),
        (Value::Array(wanted), Value::Null) => wanted.is_empty(),
        (Value::Number(wanted), Value::Null) => wanted.as_f64() == Some(0.0),
        _ => wanted == live,
    }
}

/// Whether quantities by their names are the wanted ones. The API server keeps `1024Mi` as `1Gi`.
fn are_equal(wanted: &Value, live: &Value) -> bool {
    let Some(all) = wanted.as_object() else {
        return false;
    };
    let mut both = all
        .iter()
        .map(|(name, wanted)| (quantity(wanted), quantity(&live[name.as_str()])));
    both.all(|(wanted, live)| wanted.is_some() && wanted == live)
}

/// The number that a quantity is. Ways to write one number give equal results: a decimal number is read
/// as the nearest one there is, and a power of two changes no digit.
fn quantity(value: &Value) -> Option<f64> {
    let text = value.as_str()?;
    let end = text.find(|character: char| character.is_ascii_alphabetic());
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    if let Some(binary) = suffix.strip_suffix('i') {
        let thousands = ["K", "M", "G", "T", "P", "E"].into_iter().zip(1..);
        let (_, power) = thousands
            .into_iter()
            .find(|(letter, _)| *letter == binary)?;
        return Some(number.parse::<f64>().ok()? * 1024_f64.powi(power));
    }
    let exponent = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => return None,
    };
    format!("{number}e{exponent}").parse().ok()
}

fn is_named(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| item["name"].is_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted() -> Value {
        json!({ "spec": { "ports": [{ "name": "http", "port": 80 }], "list": [1, 2], "none": [], "text": "" } })
    }

    #[test]
    fn defaults_and_additions_of_others_are_no_drift() {
        let live = json!({
            "spec": {
                "ports": [{ "name": "mesh", "port": 15 }, { "name": "http", "port": 80, "protocol": "TCP" }],
                "list": [1, 2],
                "type": "ClusterIP",
            },
            "status": {},
        });
        assert!(is_as(&wanted(), &live));
    }

    #[test]
    fn a_zero_that_the_api_server_leaves_out_is_no_drift() {
        let wanted = json!({ "minReadySeconds": 0, "replicas": 2 });
        assert!(is_as(&wanted, &json!({ "replicas": 2 })));
        assert!(!is_as(
            &wanted,
            &json!({ "minReadySeconds": 5, "replicas": 2 })
        ));
        assert!(!is_as(&wanted, &json!({ "minReadySeconds": 0 })));
    }

    #[test]
    fn a_quantity_is_the_same_however_it_is_written() {
        let is_same = |wanted: &str, live: &str| {
            let resources = |text: &str| json!({ "limits": { "memory": text } });
            is_as(&resources(wanted), &resources(live))
        };
        for (wanted, live) in [
            ("0.5", "500m"),
            ("0.7", "700m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("0.1Gi", "107374182400m"),
            ("3000000000", "3G"),
            ("1.1G", "1100M"),
            ("1000T", "1P"),
            ("1024Ti", "1Pi"),
            ("0.0005", "500u"),
            ("007", "7"),
        ] {
            assert!(is_same(wanted, live), "{wanted} is {live}");
        }
        for (wanted, live) in [
            ("1Gi", "1G"),
            ("500m", "501m"),
            ("1", "1k"),
            ("1", "one"),
            ("inf", "nan"),
        ] {
            assert!(!is_same(wanted, live), "{wanted} is not {live}");
        }
        let wanted = json!({ "requests": { "cpu": "1", "memory": "1Mi" } });
        assert!(!is_as(&wanted, &json!({ "requests": { "cpu": "1000m" } })));
        assert!(!is_as(&wanted, &json!({})));
        let image = |tag: &str| json!({ "image": { "tag": tag } });
        assert!(!is_as(&image("1000m"), &image("1")), "this is no quantity");
    }

    #[test]
    fn a_changed_added_or_missing_field_is_drift() {
        for spec in [
            json!({ "ports": [{ "name": "http", "port": 81 }], "list": [1, 2] }),
            json!({ "ports": [], "list": [1, 2] }),
            json!({ "ports": [{ "name": "http", "port": 80 }], "list": [1, 2, 3] }),
            json!({ "ports": [{ "name": "http", "port": 80 }], "list": [1, 2], "none": [{}] }),
            json!({ "list": [1, 2] }),
        ] {
            assert!(!is_as(&wanted(), &json!({ "spec": spec })), "{spec}");
        }
    }
}
