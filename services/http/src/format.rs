//! Format of an answer: the client's choice, and its name in a request from the gate to a service.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName};
use water_domain::Format;

use crate::problem::texts;
use crate::{Problem, Query, weights};

/// Parameter that names the format, for clients that cannot send `Accept`.
pub const PARAMETER: &str = "format";

/// Header in which the gate names a format other than JSON. It is never taken from a client.
pub const X_WATER_FORMAT: HeaderName = HeaderName::from_static("x-water-format");

/// Returns the requested format, JSON or one of `others`: by the parameter `format`, which is 400 if the route has no
/// such format, else by `Accept`. A route with JSON only ignores `Accept`, and does not have the parameter.
pub fn asked(query: &Query<'_>, headers: &HeaderMap, others: &[Format]) -> Result<Format, Problem> {
    if others.is_empty() {
        return Ok(Format::Json);
    }
    let Some(name) = query.get(PARAMETER)? else {
        return Ok(preferred(headers, others));
    };
    let format = Format::from_name(name);
    let is_served = |format: &Format| *format == Format::Json || others.contains(format);
    format.filter(is_served).ok_or_else(|| {
        let others = others.iter().map(|format| format.name());
        let names: Vec<&str> = others.chain([Format::Json.name()]).collect();
        Problem::invalid_parameter(PARAMETER, texts::one_of_formats(&names.join(", ")))
    })
}

/// Returns the format that `Accept` prefers: JSON or one of `others`. JSON also if nothing matches or another format
/// has the same weight (RFC 9110 §12.5.1 leaves both to us): never 406.
fn preferred(headers: &HeaderMap, others: &[Format]) -> Format {
    match headers.get(ACCEPT) {
        // Nearly all requests, without any parsing.
        None => return Format::Json,
        Some(value) if value == "*/*" || value == "application/json" => return Format::Json,
        Some(_) => {}
    }
    let (mut best, mut most) = (Format::Json, weight(headers, Format::Json));
    for &other in others {
        let weight = weight(headers, other);
        if weight > most {
            (best, most) = (other, weight);
        }
    }
    best
}

/// Returns the weight of the most specific media range that matches, in thousandths; 0 if none does. Parameters of a
/// range other than its weight are not compared: each media type has one form here. Common other names of a format
/// match too: a client that uses one would read JSON as one record.
fn weight(headers: &HeaderMap, format: Format) -> u16 {
    let lines = || headers.get_all(ACCEPT);
    let (kinds, all_of_type): (&[&str], _) = match format {
        Format::Json => (&["application/json"], "application/*"),
        Format::Csv => (&["text/csv", "application/csv"], "text/*"),
        Format::NdJson => (
            &[
                "application/x-ndjson",
                "application/ndjson",
                "application/jsonl",
            ],
            "application/*",
        ),
    };
    let named = kinds
        .iter()
        .filter_map(|kind| weights::first(lines(), kind));
    named
        .max()
        .or_else(|| weights::first(lines(), all_of_type))
        .or_else(|| weights::first(lines(), "*/*"))
        .unwrap_or(0)
}

/// Returns the format that the gate names. An unknown one is JSON, as for a service of an earlier version.
pub(crate) fn named(headers: &HeaderMap) -> Format {
    let name = headers.get(X_WATER_FORMAT);
    name.and_then(|name| Format::from_name(name.to_str().ok()?))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn negotiated(accept: &[&'static str]) -> Format {
        let lines = accept
            .iter()
            .map(|line| (ACCEPT, HeaderValue::from_static(line)));
        preferred(&HeaderMap::from_iter(lines), &[Format::Csv, Format::NdJson])
    }

    #[test]
    fn what_is_asked_for_with_the_highest_weight_is_answered() {
        for (accept, format) in [
            ("text/csv", Format::Csv),
            ("Text/CSV; header=present", Format::Csv),
            ("application/x-ndjson", Format::NdJson),
            ("application/json;q=0.5, text/csv;q=0.6", Format::Csv),
            ("application/json;q=0.6, text/csv;q=0.5", Format::Json),
            ("text/*", Format::Csv),
            ("text/csv;q=0.2, application/x-ndjson;q=0.3", Format::NdJson),
            ("*/*, application/json;q=0", Format::Csv),
            ("*/*;q=0.1, text/csv", Format::Csv),
            ("application/ndjson", Format::NdJson),
            ("application/jsonl", Format::NdJson),
            ("application/csv", Format::Csv),
            (
                "application/csv;q=0.2, Application/JSONL;q=0.3",
                Format::NdJson,
            ),
            (
                "application/x-ndjson;q=0, application/ndjson",
                Format::NdJson,
            ),
        ] {
            assert_eq!(negotiated(&[accept]), format, "{accept}");
        }
    }

    #[test]
    fn what_matches_nothing_or_json_alike_is_json() {
        for accept in [
            "",
            "*/*",
            "application/json",
            "application/*",
            "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8",
            "text/csv, application/json",
            "text/csv;q=0",
            "application/ndjson;q=0.5, application/json",
            "text/csv;q=x",
            "image/png",
            "*",
            "text/csvx",
            "csv",
        ] {
            assert_eq!(negotiated(&[accept]), Format::Json, "{accept}");
        }
        assert_eq!(negotiated(&[]), Format::Json);
    }

    #[test]
    fn the_list_may_stand_on_several_lines() {
        assert_eq!(
            negotiated(&["*/*;q=0.1", "application/x-ndjson"]),
            Format::NdJson
        );
        assert_eq!(negotiated(&["*/*", "text/csv"]), Format::Json);
    }

    #[test]
    fn a_form_that_the_route_does_not_have_is_json() {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/csv"))]);
        assert_eq!(preferred(&headers, &[]), Format::Json);
        assert_eq!(preferred(&headers, &[Format::NdJson]), Format::Json);
    }

    #[test]
    fn the_parameter_wins_over_accept_and_names_one_of_three_forms() {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/csv"))]);
        let asked = |query, others: &[Format]| {
            let query = Query::parse(Some(query)).unwrap();
            asked(&query, &headers, others).map_err(|problem| problem.code().as_str())
        };
        let all = &[Format::Csv, Format::NdJson];
        for (query, others, expected) in [
            ("", &all[..], Ok(Format::Csv)),
            ("format=ndjson", all, Ok(Format::NdJson)),
            ("format=json", all, Ok(Format::Json)),
            ("format=ndjson", &[Format::Csv], Err("invalid_parameter")),
            ("format=csv", &[], Ok(Format::Json)),
            ("format=xml", &[], Ok(Format::Json)),
            ("format=xml", all, Err("invalid_parameter")),
            ("format=", all, Err("invalid_parameter")),
            ("format=CSV", all, Err("invalid_parameter")),
            ("format=csv&format=csv", all, Err("invalid_parameter")),
        ] {
            assert_eq!(asked(query, others), expected, "{query} {others:?}");
        }
    }

    #[test]
    fn a_service_answers_the_form_that_the_gate_names() {
        for (name, format) in [
            ("csv", Format::Csv),
            ("ndjson", Format::NdJson),
            ("xml", Format::Json),
        ] {
            let headers = HeaderMap::from_iter([(X_WATER_FORMAT, HeaderValue::from_static(name))]);
            assert_eq!(named(&headers), format);
        }
        assert_eq!(named(&HeaderMap::new()), Format::Json);
    }
}
