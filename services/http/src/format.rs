//! The form of an answer: which one a client prefers, and how the gate names it to a service.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName};
use water_domain::Format;

use crate::weights;

/// How the gate names a form other than JSON. What a client sends under this name stays outside.
pub const X_WATER_FORMAT: HeaderName = HeaderName::from_static("x-water-format");

/// The form that `Accept` prefers: JSON or one of `others`. What matches nothing is JSON, and so is
/// what likes JSON as much as another (RFC 9110 §12.5.1 leaves both to us): never 406.
pub fn preferred(headers: &HeaderMap, others: &[Format]) -> Format {
    match headers.get(ACCEPT) {
        // Nearly all requests, and nothing to look at.
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

/// By the media range that fits best, in thousandths; 0 if none fits. Parameters of a range other
/// than its weight are not compared: each media type has one form here.
fn weight(headers: &HeaderMap, format: Format) -> u16 {
    let lines = || headers.get_all(ACCEPT);
    let (kind, all_of_type) = match format {
        Format::Json => ("application/json", "application/*"),
        Format::Csv => ("text/csv", "text/*"),
        Format::NdJson => ("application/x-ndjson", "application/*"),
    };
    weights::of(lines(), kind)
        .or_else(|| weights::of(lines(), all_of_type))
        .or_else(|| weights::of(lines(), "*/*"))
        .unwrap_or(0)
}

/// The form that the gate names; one that is not known is JSON, as for a service of a version
/// before it.
pub(crate) fn named(headers: &HeaderMap) -> Format {
    let name = headers.get(X_WATER_FORMAT);
    name.and_then(|name| Format::from_header(name.to_str().ok()?))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(accept: &[&'static str]) -> Format {
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
        ] {
            assert_eq!(of(&[accept]), format, "{accept}");
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
            "text/csv;q=x",
            "image/png",
            "*",
            "text/csvx",
            "csv",
        ] {
            assert_eq!(of(&[accept]), Format::Json, "{accept}");
        }
        assert_eq!(of(&[]), Format::Json);
    }

    #[test]
    fn the_list_may_stand_on_several_lines() {
        assert_eq!(of(&["*/*;q=0.1", "application/x-ndjson"]), Format::NdJson);
        assert_eq!(of(&["*/*", "text/csv"]), Format::Json);
    }

    #[test]
    fn a_form_that_the_route_does_not_have_is_json() {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/csv"))]);
        assert_eq!(preferred(&headers, &[]), Format::Json);
        assert_eq!(preferred(&headers, &[Format::NdJson]), Format::Json);
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
